// ITT without ITT: a copy of its static part made by hand, our functions called through its pointers.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <string>

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
        EXPECT(take_pair(7) == 0);
        EXPECT(remember_pair(7, 70) && remember_pair(8, 80));
        EXPECT(take_pair(7) == 70 && take_pair(7) == 0 && take_pair(8) == 80);
        std::uint32_t kept = 0;
        for (std::uint64_t i = 1; i < 100; ++i) kept += remember_pair(i * 4096, i) ? 1 : 0;
        EXPECT(kept == 32);
    });
}
