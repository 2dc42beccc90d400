// What a client has asked for and does not read: libzmq bounds it by messages alone, and a message may be megabytes.
#pragma once

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

}  // namespace ringside::agent
