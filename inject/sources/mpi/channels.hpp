// Which message of its channel a message is, and the ids that both of its ends derive from that. A channel is (communicator, sender, receiver, tag);
// MPI delivers what is sent in one in order, so its n-th send is its n-th receive.
#pragma once

#include <cstdint>

#include "inject/sources/mpi/growing_table.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject::mpi {

/// A message's way. Ranks are those of the world.
struct Channel {
    std::uint64_t comm = 0;  ///< id of the communicator
    std::int32_t sender = 0, receiver = 0, tag = 0;
};

constexpr std::uint64_t channel_hash(const Channel& channel) {
    const std::uint64_t ends = static_cast<std::uint64_t>(channel.sender) << 32 |
                               static_cast<std::uint32_t>(channel.receiver);
    return schema::mix64(schema::mix64(channel.comm ^ ends) ^
                         static_cast<std::uint32_t>(channel.tag));
}

/// Equal at both ends of a message, whatever the library. Never 0.
/// @param number  which message of its channel, from 1
constexpr schema::SpanId message_span(std::uint64_t channel_hash, std::uint64_t number) {
    const std::uint64_t span = schema::mix64(channel_hash ^ number * 0x9e3779b97f4a7c15ull);
    return {span == 0 ? 1 : span};
}

/// How many messages of a channel have been posted: a process that sends to itself counts both ends.
template <std::uint32_t kFirstBits, std::uint32_t kTables>
class ChannelCounts {
public:
    enum class End : std::uint64_t { kSend = 0, kReceive = 0x5851f42d4c957f2dull };

    /// @return the next message's number, from 1; 0: there is no place for this channel
    std::uint64_t next(std::uint64_t channel_hash, End end) {
        auto* const count = table_.find_or_add(key(channel_hash, end));
        return count == nullptr ? 0 : count->fetch_add(1, std::memory_order_relaxed) + 1;
    }
    /// The message `number` is never coming: the next one has its number, unless one has been numbered since.
    void take_back(std::uint64_t channel_hash, End end, std::uint64_t number) {
        auto* const count = table_.find(key(channel_hash, end));
        if (count != nullptr)
            count->compare_exchange_strong(number, number - 1, std::memory_order_relaxed);
    }

private:
    static std::uint64_t key(std::uint64_t channel_hash, End end) {
        const std::uint64_t key = channel_hash ^ static_cast<std::uint64_t>(end);
        return key == 0 ? 1 : key;
    }
    GrowingTable<kFirstBits, kTables, true> table_;
};

}  // namespace ringside::inject::mpi
