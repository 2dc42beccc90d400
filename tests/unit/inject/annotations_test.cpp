// What the sources of users' annotations stand on: attribute sets, push and pop, threads' names, text that is kept, sources that act alone.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "hooks.hpp"
#include "inject/core/attributes.hpp"
#include "inject/core/capture.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/kept_memory.hpp"
#include "inject/core/push_depth.hpp"
#include "inject/core/source.hpp"
#include "inject/core/thread_names.hpp"
#include "inject/core/wide_text.hpp"

using namespace ringside;
using inject::AttributeSet;
using inject::HookScope;
using inject::intern_attributes;
using inject::ThreadLane;
using schema::AttributeId;
using schema::PayloadType;
using schema::SourceId;
using test::in_hook;
using test::Sandbox;
using test::SegmentView;

namespace {

const schema::AttributeEntry& entry_of(AttributeId id) {
    return reinterpret_cast<const schema::AttributeEntry*>(inject::segment_base() +
                                                           schema::kAttributesOffset)[id.value - 1];
}

void push(ThreadLane& lane, std::uint64_t domain, const char* name) {
    lane.begin_range(SourceId::kNvtx, 0, lane.intern_cached(name),
                     inject::push_key(SourceId::kNvtx, domain), 0);
}

bool pop(ThreadLane& lane, std::uint64_t domain) {
    const std::uint64_t key = inject::pop_key(SourceId::kNvtx, domain);
    return key != 0 && lane.end_range(key);
}

std::string thread_name(const SegmentView& view, std::uint32_t lane) {
    char text[schema::kThreadNameBytes + 1] = {};
    for (std::uint32_t i = 0; i < schema::kThreadNameBytes / 8; ++i) {
        const std::uint64_t word = view.lane(lane).thread_name[i].load();
        std::memcpy(text + 8 * i, &word, 8);
    }
    return text;
}

void named_while_recording(const Sandbox& box) {
    in_hook([](ThreadLane&) {});
    inject::name_thread(static_cast<std::uint32_t>(gettid()),
                        "a name that is longer than 31 bytes");
    EXPECT(thread_name(SegmentView(box.segments()[0]), 0) == "a name that is longer than 31 b");
}

}  // namespace

TEST_CASE(
    "push depths: each domain has its own counter, as long as there are some, whatever its "
    "number") {
    Sandbox box;
    box.run([&] {  // of its own process: they are never taken back
        std::set<std::uint32_t> counters{inject::PushKeys::no_domain(SourceId::kNvtx)};
        for (std::uint64_t domain = 1; domain <= inject::PushKeys::kOwn; ++domain) {
            const std::uint32_t counter = inject::push_counter(SourceId::kNvtx, domain << 20);
            EXPECT(counters.insert(counter).second);
            EXPECT(inject::push_counter(SourceId::kNvtx, domain << 20) == counter);
        }
        const std::uint32_t beyond = inject::push_counter(SourceId::kItt, 1 << 20);
        EXPECT(beyond < inject::PushKeys::kCounters);
        EXPECT(beyond >= inject::PushKeys::kCounters - inject::PushKeys::kShared);
    });
}

TEST_CASE("attributes: equal sets are one, different ones differ, an empty one is none") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            EXPECT(intern_attributes({}).value == 0);
            const AttributeSet set{lane.intern_cached("domain"), lane.intern_cached("category"),
                                   0xff00ff00, PayloadType::kSigned};
            const AttributeId id = intern_attributes(set);
            EXPECT(id.value != 0 && intern_attributes(set) == id);
            AttributeSet other = set;
            other.payload = PayloadType::kDouble;
            EXPECT(intern_attributes(other) != id);
            EXPECT(entry_of(id).domain.load() == set.domain.value);
            EXPECT(entry_of(id).category.load() == set.category.value);
            EXPECT(entry_of(id).colour.load() == 0xff00ff00);
            EXPECT(entry_of(id).payload.load() == 2);
        });
    });
}

TEST_CASE("attributes: where the table is full the colour is given up, and counted") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            AttributeSet set{lane.intern_cached("domain"), {}, 0, PayloadType::kNone};
            const AttributeId plain = intern_attributes(set);
            for (set.colour = 1; set.colour <= 2 * schema::kAttributeEntries; ++set.colour) {
                EXPECT(intern_attributes(set).value != 0);
            }
            EXPECT(intern_attributes(set) == plain);
        });
    });
    CHECK(SegmentView(box.segment_of(pid)).loss(schema::Loss::kNamesFull) > 0);
}

TEST_CASE("attributes: a forked child makes nothing real of a table that its parent has not used") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        in_hook([](ThreadLane& lane) { lane.intern_cached("name"); });
        const std::string path = box.segment_of(getpid());
        struct stat before {
        }, after{};
        EXPECT(stat(path.c_str(), &before) == 0);
        const pid_t child = fork();
        if (child == 0) {
            in_hook([](ThreadLane& lane) { lane.intern_cached("name"); });
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(stat(path.c_str(), &after) == 0);
        EXPECT(after.st_blocks == before.st_blocks);
    });
}

TEST_CASE("attributes: those of the parent are right in a forked child") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        AttributeId id;
        in_hook([&](ThreadLane& lane) {
            id = intern_attributes({lane.intern_cached("domain"), {}, 7, PayloadType::kNone});
        });
        const pid_t child = fork();
        if (child == 0) {
            in_hook([&](ThreadLane& lane) {
                EXPECT(entry_of(id).colour.load() == 7);
                EXPECT(entry_of(id).domain.load() == lane.intern_cached("domain").value);
            });
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    });
}

TEST_CASE("push and pop: each pop ends the innermost range of its own domain") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            EXPECT(!pop(lane, 1));
            push(lane, 1, "outer");
            push(lane, 2, "of the other domain");
            push(lane, 1, "inner");
            EXPECT(pop(lane, 1) && pop(lane, 1) && !pop(lane, 1) && pop(lane, 2));
        });
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 3);
    CHECK(records[0].name == "inner");
    CHECK(records[1].name == "outer");
    CHECK(records[2].name == "of the other domain");
}

TEST_CASE("push and pop: what is too deep is counted, and its pops end nothing else") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            for (std::uint32_t i = 0; i < schema::kOpenStackDepth + 3; ++i) push(lane, 1, "deep");
            for (int i = 0; i < 3; ++i) EXPECT(!pop(lane, 1));
            EXPECT(pop(lane, 1));
        });
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.loss(schema::Loss::kStackTooDeep) == 3);
    CHECK(view.lane(0).open_depth.load() == schema::kOpenStackDepth - 1);
}

TEST_CASE("push and pop: what was pushed in another capture is not there to pop") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) { push(lane, 1, "old"); });
        box.set_capture(false);
        box.set_capture(true);
        in_hook([](ThreadLane& lane) {
            EXPECT(!pop(lane, 1));
            push(lane, 1, "new");
            EXPECT(pop(lane, 1));
        });
    });
}

TEST_CASE("thread names: given before the first record, after it, and by another thread") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        named_while_recording(box);
        std::thread([&] {
            inject::name_thread(0, "before the first record");
            in_hook([](ThreadLane&) {});
            EXPECT(thread_name(SegmentView(box.segments()[0]), 1) == "before the first record");
            // By number: another thread's, here the one that is waiting.
            inject::name_thread(static_cast<std::uint32_t>(getpid()), "named by another");
        }).join();
        EXPECT(thread_name(SegmentView(box.segments()[0]), 0) == "named by another");
    });
}

TEST_CASE("wide text: becomes UTF-8; what is no character is replaced; cut at the longest name") {
    CHECK(std::string(inject::WideText(L"a\u00fc\u20ac\U0001f600").c_str()) ==
          "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
    const wchar_t bad[] = {L'x', static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x110000), 0};
    CHECK(std::string(inject::WideText(bad).c_str()) == "x\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(inject::WideText(nullptr).length() == 0);
    const std::wstring longest(schema::kMaxNameLength - 1, L'\u00fc');
    CHECK(inject::WideText(longest.c_str()).length() <= schema::kMaxNameLength);
}

TEST_CASE("kept memory: zeroed, aligned, apart; when it is used up nothing is handed out") {
    auto* first = static_cast<char*>(inject::keep(3));
    auto* second = static_cast<char*>(inject::keep(1));
    REQUIRE((first != nullptr && second != nullptr));
    CHECK(second - first == 16);
    CHECK(first[0] == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(second) % 16 == 0);
    CHECK(std::string(inject::keep_text("text and more", 4)) == "text");
    CHECK(inject::keep(std::size_t{1} << 40) == nullptr);
}

TEST_CASE("sources that act alone: a level, no thread; a forked child records at once") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        EXPECT(!inject::any_source_ready());
        EXPECT(inject::announce_source(SourceId::kNvtx, schema::SourceLevel::kFull, ""));
        EXPECT(!inject::any_source_present());
        const auto& status =
            inject::g_process.header->sources[static_cast<std::uint32_t>(SourceId::kNvtx)];
        EXPECT(status.level.load() == static_cast<std::uint32_t>(schema::SourceLevel::kFull));
        const pid_t child = fork();
        if (child == 0) {
            EXPECT(inject::has_segment());
            box.set_capture(true);
            in_hook([](ThreadLane&) {});
            _exit(0);
        }
        int waited = 0;
        EXPECT(waitpid(child, &waited, 0) == child && waited == 0);
    });
}

TEST_CASE("sources that act alone: one that the capture leaves out records nothing") {
    Sandbox box;
    box.control().source_mask.store(1u << static_cast<std::uint32_t>(SourceId::kItt));
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        {
            const HookScope left_out(SourceId::kNvtx);
            EXPECT(!left_out);
            const HookScope wanted(SourceId::kItt);
            EXPECT(static_cast<bool>(wanted));
        }
        EXPECT(inject::g_process.header->losses[4].load() == 0);
    });
}
