// What a client has asked for and does not read: libzmq bounds it by messages alone, and a message may be megabytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace ringside::agent {

/// Letters below this are bounded by libzmq's queue: 64 of them a connection.
inline constexpr std::size_t kSmallLetter = 4096;
/// Unsent of one connection when one more is posted: beyond that it is dropped, as where libzmq's queue is full. Of all together, and of each where that is exceeded.
inline constexpr std::size_t kMostUnsent = std::size_t{4} << 20;
inline constexpr std::size_t kMostUnsentOfAll = std::size_t{64} << 20;
inline constexpr std::size_t kUnsentInACrowd = std::size_t{64} << 10;

/// @thread thread-safe
class UnsentLetters {
public:
    UnsentLetters();
    /// @return what holds the letter's place until it is released, by whichever thread; null: it is not to be sent
    std::shared_ptr<void> hold(const std::string& identity, std::size_t bytes);

private:
    struct State;
    std::shared_ptr<State>
        state_;  // it outlives us: libzmq's thread may be the last one to release
};

/// Bounds what is in memory and not yet on the network, whoever it is for: parts of files, what a relay passes on.
/// @thread thread-safe
class UnsentBytes {
public:
    static constexpr std::size_t kMost = std::size_t{8} << 20;

    explicit UnsentBytes(std::size_t most = kMost) : most_(most) {}
    /// @return what holds the place, until it is released by whichever thread; null: there is none
    std::shared_ptr<void> hold(std::size_t bytes);

private:
    const std::size_t most_;
    // It outlives us: libzmq's thread may be the last one to release.
    std::shared_ptr<std::atomic<std::size_t>> held_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace ringside::agent
