// ITT without ITT: a copy of its static part made by hand, our functions called through its pointers.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hooks.hpp"
#include "inject/sources/itt/calls.hpp"
#include "inject/sources/itt/objects.hpp"

using namespace ringside;
using namespace ringside::inject::itt;
using schema::RecordKind;
using test::Sandbox;
using test::SegmentView;

// NOLINTNEXTLINE(readability-identifier-naming): the interface's own name
extern "C" void __itt_api_init(Global* global, int groups);

namespace {

void start_up() {}
void nothing() {}

/// One copy: two calls that we know, one that we don't.
struct Copy {
    AnyFunction begin = start_up, end = start_up, unknown = start_up;
    Api apis[4] = {{"__itt_task_begin", &begin, start_up, nothing, 0},
                   {"__itt_task_end", &end, start_up, nothing, 0},
                   {"__itt_of_the_future", &unknown, start_up, nothing, 0},
                   {nullptr, nullptr, nullptr, nullptr, 0}};
    Global global{};

    Copy() {
        global.version[0] = 3;
        global.apis = apis;
    }
};

}  // namespace

TEST_CASE("itt: what we know is ours, what we don't is switched off") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        Copy copy;
        __itt_api_init(&copy.global, ~0);
        EXPECT(copy.begin != start_up && copy.begin != nothing);
        EXPECT(copy.unknown == nothing);
        __itt_api_init(nullptr, ~0);
    });
}

TEST_CASE("itt: a process that is not traced has its calls switched off") {
    Sandbox box;
    box.run([&] {
        Copy copy;
        __itt_api_init(&copy.global, ~0);
        EXPECT(copy.begin == nothing && copy.end == nothing && copy.unknown == nothing);
    });
}

TEST_CASE("itt: domains and strings that the copy has made before are what it gets again") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        Copy copy;
        Domain domain{1, "made before", nullptr, 0, nullptr, nullptr};
        StringHandle text{"text before", nullptr, 0, nullptr, nullptr};
        copy.global.domains = &domain;
        copy.global.strings = &text;
        __itt_api_init(&copy.global, ~0);
        EXPECT(make_domain("made before") == &domain);
        EXPECT(make_string("text before") == &text);
        EXPECT(make_domain("new") == make_domain("new") && make_domain("new") != &domain);
        EXPECT(make_domain("new")->flags == 1);
        // A version whose lists may lie elsewhere.
        Copy newer;
        newer.global.version[0] = 4;
        newer.global.domains = reinterpret_cast<Domain*>(1);
        __itt_api_init(&newer.global, ~0);
    });
}

TEST_CASE("itt: tasks through the pointers become ranges") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        Copy copy;
        __itt_api_init(&copy.global, ~0);
        auto* begin = reinterpret_cast<void (*)(Domain*, Id, Id, StringHandle*)>(copy.begin);
        auto* end = reinterpret_cast<void (*)(Domain*)>(copy.end);
        end(make_domain("d"));
        begin(make_domain("d"), {}, {}, make_string("task"));
        begin(make_domain("d"), {}, {}, nullptr);
        end(make_domain("d"));
        end(make_domain("d"));
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 2);
    CHECK(records[0].name == "");
    CHECK(records[1].name == "task");
}

TEST_CASE("itt: events and pairs: numbers from 1, keys taken once, full tables counted") {
    Sandbox box;
    box.run([&] {
        EXPECT(make_event("first", 5) == 1);
        EXPECT(make_event("first and more", 5) == 1);
        EXPECT(make_event("second", 6) == 2);
        EXPECT(std::string(event_name(2)) == "second");
        EXPECT(event_name(0) == nullptr && event_name(3) == nullptr && event_name(-1) == nullptr);
        for (int i = 0; i < 2000; ++i) make_event(("event " + std::to_string(i)).c_str(), 64);
        EXPECT(make_event("one too many", 12) == 0);
        EXPECT(take_pair(7, 1) == 0);
        EXPECT(remember_pair(7, 70, 1) && remember_pair(8, 80, 1));
        EXPECT(take_pair(7, 1) == 70 && take_pair(7, 1) == 0 && take_pair(8, 1) == 80);
        std::uint32_t kept = 0;
        for (std::uint64_t i = 1; i < 100; ++i) kept += remember_pair(i * 4096, i, 1) ? 1 : 0;
        EXPECT(kept == 32);
    });
}

TEST_CASE("itt: pairs that no end was seen of give their places to the next capture") {
    for (std::uint64_t i = 1; i <= 32; ++i) CHECK(remember_pair(i * 4096, i, 5));
    CHECK_FALSE(remember_pair(33 * 4096, 33, 5));
    CHECK(take_pair(4096, 9) == 0);
    for (std::uint64_t i = 1; i <= 32; ++i) CHECK(remember_pair(i * 4096, 100 + i, 9));
    CHECK_FALSE(remember_pair(33 * 4096, 133, 9));
    for (std::uint64_t i = 1; i <= 32; ++i) {
        CHECK(take_pair(i * 4096, 5) == 0);
        CHECK(take_pair(i * 4096, 9) == 100 + i);
    }
}

TEST_CASE("itt: an id that begins again while it is being taken keeps its place") {
    constexpr std::uint64_t kRounds = 200000;
    std::atomic<std::uint64_t> round{0}, done{0};
    std::uint64_t lost = 0;
    std::thread beginner([&] {
        for (std::uint64_t i = 1; i <= kRounds; ++i) {
            while (round.load() != i) {
            }
            remember_pair(77, 2 * i + 1, 3);
            done.store(i);
        }
    });
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
        remember_pair(77, 2 * i, 3);
        round.store(i);
        const std::uint64_t first = take_pair(77, 3);
        while (done.load() != i) {
        }
        const std::uint64_t second = take_pair(77, 3);
        // Either the second was there first, in the place of the other, or it is there still.
        if (first == 2 * i ? second != 2 * i + 1 : first != 2 * i + 1 && second != 2 * i + 1)
            ++lost;
        while (take_pair(77, 3) != 0) {
        }
    }
    beginner.join();
    CHECK(lost == 0);
}

TEST_CASE("itt: captures with tasks in flight, one after the other, never fill the table") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        Copy copy;
        AnyFunction begin = start_up;
        copy.apis[0] = {"__itt_task_begin_overlapped", &begin, start_up, nothing, 0};
        __itt_api_init(&copy.global, ~0);
        auto* overlapped = reinterpret_cast<void (*)(Domain*, Id, Id, StringHandle*)>(begin);
        std::uint64_t id = 0;
        for (int capture = 0; capture < 12; ++capture) {
            box.set_capture(true);
            for (int i = 0; i < 1000; ++i)
                overlapped(make_domain("d"), {{++id, 0, 0}}, {}, make_string("task"));
            box.set_capture(false);
        }
        EXPECT(inject::g_process.header->losses[2].load() == 0);
    });
}
