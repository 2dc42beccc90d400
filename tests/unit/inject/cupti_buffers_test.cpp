// The pool that CUPTI writes into: bounded, each buffer out once, back again.
#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "inject/sources/cupti/buffers.hpp"

using namespace ringside::inject::cupti;

TEST_CASE("cupti buffers: each is out once, and none beyond the limit") {
    REQUIRE(prepare_buffers());
    std::set<std::uint8_t*> out;
    for (std::uint32_t i = 0; i < kBuffers; ++i) out.insert(take_buffer(kBuffers));
    CHECK(out.size() == kBuffers);
    CHECK(out.count(nullptr) == 0);
    CHECK(take_buffer(kBuffers) == nullptr);
    CHECK(buffers_out() == kBuffers);
    std::uint8_t* beyond = take_buffer(kBuffersOfOld);
    REQUIRE(beyond != nullptr);
    CHECK(out.count(beyond) == 0);
    CHECK(give_back_buffer(beyond));
    for (std::uint8_t* buffer : out) {
        buffer[0] = buffer[kBufferBytes - 1] = 1;
        CHECK(give_back_buffer(buffer));
    }
    CHECK(buffers_out() == 0);
    trim_buffers();
    CHECK((*out.begin())[0] == 0);
}

TEST_CASE("cupti buffers: what is none of ours is not taken") {
    REQUIRE(prepare_buffers());
    std::uint8_t other = 0;
    CHECK_FALSE(give_back_buffer(&other));
    CHECK_FALSE(give_back_buffer(nullptr));
}

TEST_CASE("cupti buffers: threads that take and give back never have one twice") {
    REQUIRE(prepare_buffers());
    std::vector<std::thread> threads;
    std::atomic<int> shared{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 5000; ++i) {
                std::uint8_t* buffer = take_buffer(kBuffers);
                if (buffer == nullptr) continue;
                *buffer = static_cast<std::uint8_t>(t);
                if (*buffer != t) ++shared;
                give_back_buffer(buffer);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(shared == 0);
    CHECK(buffers_out() == 0);
}
