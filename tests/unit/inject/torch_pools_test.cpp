// The tables of calls in flight and the wrapped std::function, against libstdc++'s own.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "inject/core/pools.hpp"
#include "inject/core/wrapped_function.hpp"

namespace {

using namespace ringside::inject;

KeyedTable<std::uint64_t, 2> g_table;
KeyedTable<std::uint64_t, 64> g_shared;

int g_calls = 0;
int g_seen = 0;
using Pool = FunctionPool<int, 2>;
Pool g_pool;

void count_and_call(const void* storage) {
    Pool::Entry* const entry = Pool::entry_of(storage);
    ++g_calls;
    g_seen = entry->extra;
    reinterpret_cast<void (*)(const void*)>(entry->original.invoker)(&entry->original);
}

StdFunction* raw(std::function<void()>& function) {
    static_assert(sizeof(std::function<void()>) == sizeof(StdFunction));
    return reinterpret_cast<StdFunction*>(&function);
}

// What a callee does that takes the function by value and keeps it.
std::function<void()> take(StdFunction* wrapper) {
    return std::exchange(*reinterpret_cast<std::function<void()>*>(wrapper), nullptr);
}

TEST_CASE("keyed table: a value is taken once, and a new one replaces an old one of its key") {
    g_table.clear();
    std::uint64_t value = 0;
    CHECK_FALSE(g_table.take(7, &value));
    CHECK(g_table.put(7, 70));
    CHECK(g_table.put(7, 71));
    CHECK(g_table.take(7, &value));
    CHECK(value == 71);
    CHECK_FALSE(g_table.take(7, &value));
}

TEST_CASE("keyed table: full sets refuse, cleared ones don't") {
    g_table.clear();
    std::uint32_t kept = 0;
    for (std::uint64_t key = 2; key < 2000; ++key) kept += g_table.put(key, key);
    CHECK(kept == 8 * (2 + 16));
    g_table.clear();
    CHECK(g_table.put(5, 5));
    g_table.clear();
}

TEST_CASE("keyed table: a value is found by what it holds") {
    g_table.clear();
    g_table.put(5, 50);
    g_table.put(6, 60);
    std::uint64_t value = 0;
    CHECK(g_table.take_if([](std::uint64_t& v) { return v == 60; }, &value));
    CHECK(value == 60);
    CHECK_FALSE(g_table.take(6, &value));
    CHECK(g_table.take(5, &value));
}

TEST_CASE("keyed table: of two threads that take one value one gets it") {
    constexpr std::uint64_t kKeys = 20000;
    std::atomic<std::uint64_t> next{1};
    std::atomic<std::uint64_t> taken{0}, wrong{0};
    const auto taker = [&] {
        for (std::uint64_t key = 2; key < kKeys; ++key) {
            while (next.load(std::memory_order_acquire) < key) std::this_thread::yield();
            std::uint64_t value = 0;
            if (g_shared.take(key, &value)) {
                taken.fetch_add(1);
                if (value != key * 3) wrong.fetch_add(1);
            }
        }
    };
    std::thread a(taker), b(taker);
    std::uint64_t kept = 0;
    for (std::uint64_t key = 2; key < kKeys; ++key) {
        kept += g_shared.put(key, key * 3);
        next.store(key, std::memory_order_release);
    }
    a.join(), b.join();
    CHECK(taken.load() == kept);
    CHECK(wrong.load() == 0);
    g_shared.clear();
}

TEST_CASE("wrapped function: it is called through us, survives its source, and dies once") {
    auto counted = std::make_shared<int>(0);
    g_calls = 0;
    std::function<void()> kept;
    {
        std::function<void()> source = [counted] { ++*counted; };
        StdFunction wrapper;
        REQUIRE(g_pool.wrap(raw(source), reinterpret_cast<void*>(count_and_call), 42, &wrapper) !=
                nullptr);
        CHECK_FALSE(static_cast<bool>(source));
        kept = take(&wrapper);
        Pool::destroy(&wrapper);
    }
    CHECK(counted.use_count() == 2);
    kept();
    std::function<void()> copy = kept;
    kept = nullptr;
    copy();
    CHECK(*counted == 2);
    CHECK(g_calls == 2);
    CHECK(g_seen == 42);
    copy = nullptr;
    CHECK(counted.use_count() == 1);
}

TEST_CASE("wrapped function: small functors that lie in place are moved too") {
    int hits = 0;
    std::function<void()> source = [&hits] { ++hits; };
    StdFunction wrapper;
    REQUIRE(g_pool.wrap(raw(source), reinterpret_cast<void*>(count_and_call), 1, &wrapper) !=
            nullptr);
    take (&wrapper)();
    Pool::destroy(&wrapper);
    CHECK(hits == 1);
}

TEST_CASE("wrapped function: a full pool leaves the function as it was, and has room again later") {
    std::vector<std::function<void()>> held;
    StdFunction wrapper;
    for (int i = 0; i < 2; ++i) {
        std::function<void()> source = [] {};
        REQUIRE(g_pool.wrap(raw(source), reinterpret_cast<void*>(count_and_call), 0, &wrapper) !=
                nullptr);
        held.push_back(take(&wrapper));
    }
    std::function<void()> third = [] {};
    CHECK(g_pool.wrap(raw(third), reinterpret_cast<void*>(count_and_call), 0, &wrapper) == nullptr);
    CHECK(static_cast<bool>(third));
    held.clear();
    CHECK(g_pool.wrap(raw(third), reinterpret_cast<void*>(count_and_call), 0, &wrapper) != nullptr);
    Pool::destroy(&wrapper);
}

}  // namespace
