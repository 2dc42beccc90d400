// Waiting for what another thread or process does.
#pragma once

#include <chrono>
#include <thread>

namespace ringside::test {

/// Asks each millisecond until `condition` holds. @return false after twenty seconds without
template <class Condition>
bool eventually(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return condition();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace ringside::test
