#include "agent/control/at_once.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ringside::agent {

void at_once(std::size_t count, const std::function<void(std::size_t)>& work,
             const std::function<void(std::size_t done)>& told) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::size_t done = 0;
    std::exception_ptr thrown;
    const auto take = [&] {
        for (std::size_t n = next++; n < count; n = next++) {
            std::exception_ptr wrong;
            try {
                work(n);
            } catch (...) {
                wrong = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            if (!thrown) thrown = wrong;
            ++done;
            if (told) told(done);
        }
    };
    {
        std::vector<std::jthread> others;
        others.reserve(std::min(kMostAtOnce, count));
        try {
            while (others.size() + 1 < std::min(kMostAtOnce, count)) others.emplace_back(take);
        } catch (const std::system_error&) {
            // The limit of the user's processes: fewer are asked at once.
        }
        take();
    }
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ringside::agent
