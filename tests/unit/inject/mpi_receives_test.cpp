// Which message a receive is: numbers of channels, and of receives that take any source or tag.
#include <doctest/doctest.h>

#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "inject/sources/mpi/channels.hpp"
#include "inject/sources/mpi/receives.hpp"

using namespace ringside::inject::mpi;
using ringside::schema::Ticks;

namespace {

/// One communicator of a receiver: numbers are its own count a channel.
struct Receiver {
    ReceiveOrder order;
    std::map<std::pair<int, int>, std::uint64_t> counts;
    bool appended = false;

    auto number() {
        return [this](std::int32_t source, std::int32_t tag) { return ++counts[{source, tag}]; };
    }
    std::uint64_t post(std::int32_t source, std::int32_t tag, Posted& posted) {
        return order.post(source, tag, &posted, number(), &appended);
    }
    /// @return what could be recorded
    std::vector<Posted*> complete(Posted& posted, std::int32_t source, std::int32_t tag) {
        std::vector<Posted*> done;
        Posted* next = order.complete(&posted, source, tag, Ticks{7}, 0, number());
        for (; next != nullptr; next = next->next) done.push_back(next);
        return done;
    }
};

}  // namespace

TEST_CASE("mpi receives: with source and tag given each takes its channel's next number") {
    Receiver receiver;
    Posted posted;
    CHECK(receiver.post(1, 5, posted) == 1);
    CHECK(receiver.post(1, 5, posted) == 2);
    CHECK(receiver.post(2, 5, posted) == 1);
    CHECK_FALSE(receiver.appended);
    CHECK(receiver.order.empty());
}

TEST_CASE("mpi receives: one that takes any source is numbered when it completes") {
    Receiver receiver;
    Posted any;
    CHECK(receiver.post(kAny, 5, any) == 0);
    CHECK(receiver.appended);
    const auto done = receiver.complete(any, 3, 5);
    REQUIRE(done.size() == 1);
    CHECK(done[0] == &any);
    CHECK(any.number == 1);
    CHECK(receiver.order.empty());
}

TEST_CASE("mpi receives: behind a wildcard that could take its message one waits for its number") {
    Receiver receiver;
    Posted any, given;
    receiver.post(kAny, 5, any);
    CHECK(receiver.post(1, 5, given) == 0);
    // It completes first: the wildcard may have taken channel 1's first message, and be told later.
    CHECK(receiver.complete(given, 1, 5).empty());
    const auto done = receiver.complete(any, 1, 5);
    REQUIRE(done.size() == 2);
    CHECK(done[0] == &any);
    CHECK(any.number == 1);
    CHECK(given.number == 2);
}

TEST_CASE("mpi receives: behind a wildcard of another tag one is numbered at once") {
    Receiver receiver;
    Posted any, given;
    receiver.post(kAny, 5, any);
    CHECK(receiver.post(1, 6, given) == 1);
    CHECK_FALSE(receiver.appended);
}

TEST_CASE(
    "mpi receives: a wildcard that turns out to be another channel's lets those behind it go") {
    Receiver receiver;
    Posted any, given;
    receiver.post(kAny, kAny, any);
    receiver.post(1, 5, given);
    CHECK(receiver.complete(any, 2, 9) == std::vector<Posted*>{&any});
    CHECK(given.number == 1);  // known before it completes
    CHECK(receiver.complete(given, 1, 5) == std::vector<Posted*>{&given});
}

TEST_CASE("mpi receives: a cancelled one takes no number, and those behind it go on") {
    Receiver receiver;
    Posted any, given;
    receiver.post(kAny, 5, any);
    receiver.post(1, 5, given);
    CHECK(receiver.complete(given, 1, 5).empty());
    Posted* done = nullptr;
    REQUIRE(receiver.order.drop(&any, receiver.number(), &done));
    CHECK(done == &given);
    CHECK(given.number == 1);
    CHECK(receiver.order.empty());
}

TEST_CASE("mpi receives: completions in any order give the numbers of the posts") {
    Receiver receiver;
    Posted posted[4];
    for (Posted& one : posted) receiver.post(kAny, 5, one);
    for (const int i : {3, 1, 2}) CHECK(receiver.complete(posted[i], 1, 5).empty());
    CHECK(receiver.complete(posted[0], 1, 5).size() == 4);
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(posted[i].number == i + 1);
}

TEST_CASE("mpi channels: ids depend on each part of the channel, and on the number") {
    const Channel channel{7, 1, 2, 3};
    const auto span = message_span(channel_hash(channel), 1);
    CHECK(span == message_span(channel_hash(channel), 1));
    CHECK(span != message_span(channel_hash(channel), 2));
    CHECK(span != message_span(channel_hash({8, 1, 2, 3}), 1));
    CHECK(span != message_span(channel_hash({7, 2, 1, 3}), 1));
    CHECK(span != message_span(channel_hash({7, 1, 2, 4}), 1));
}

TEST_CASE("mpi channels: many are counted, beyond the first table; full ones say so") {
    using Counts = ChannelCounts<3, 4>;
    static Counts counts;
    std::uint64_t kept = 0, refused = 0;
    std::vector<std::uint64_t> known;
    for (std::uint64_t i = 1; i <= 200; ++i) {
        const std::uint64_t hash = channel_hash({i, 0, 1, 0});
        if (counts.next(hash, Counts::End::kSend) == 1) {
            ++kept;
            known.push_back(hash);
        } else {
            ++refused;
        }
    }
    CHECK(kept > 8);
    CHECK(refused > 0);
    CHECK(kept <= 8 + 16 + 32 + 64);
    for (const std::uint64_t hash : known) CHECK(counts.next(hash, Counts::End::kSend) == 2);
}

TEST_CASE("mpi channels: a process that sends to itself counts both ends") {
    using Counts = ChannelCounts<4, 2>;
    static Counts counts;
    CHECK(counts.next(99, Counts::End::kSend) == 1);
    CHECK(counts.next(99, Counts::End::kReceive) == 1);
    counts.take_back(99, Counts::End::kReceive, 1);
    CHECK(counts.next(99, Counts::End::kReceive) == 1);
    // One that is not the last keeps its number.
    counts.next(99, Counts::End::kReceive);
    counts.take_back(99, Counts::End::kReceive, 1);
    CHECK(counts.next(99, Counts::End::kReceive) == 3);
}

TEST_CASE("mpi channels: threads that meet in one table lose nothing") {
    using Counts = ChannelCounts<3, 8>;
    static Counts counts;
    constexpr std::uint64_t kChannels = 300;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (std::uint64_t i = 1; i <= kChannels; ++i)
                counts.next(channel_hash({i, 0, 1, 0}), Counts::End::kSend);
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::uint64_t i = 1; i <= kChannels; ++i)
        CHECK(counts.next(channel_hash({i, 0, 1, 0}), Counts::End::kSend) == 5);
}

TEST_CASE("mpi receives: where one's place is not known none is numbered any more") {
    Receiver receiver;
    Posted any, given;
    CHECK(receiver.post(kAny, 5, any) == 0);
    CHECK(receiver.order.post(1, 5, nullptr, receiver.number(), &receiver.appended) == 0);
    CHECK_FALSE(receiver.order.empty());
    CHECK(receiver.complete(any, 1, 5).empty());
    CHECK(receiver.post(1, 5, given) == 0);
    CHECK_FALSE(receiver.appended);
    CHECK(receiver.counts.empty());
    receiver.order.reset();
    CHECK(receiver.post(1, 5, given) == 1);
}
