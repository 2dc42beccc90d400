#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "inject/core/attributes.hpp"
#include "inject/core/intern.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::HookScope;
using inject::ThreadLane;
using schema::NameId;
using schema::SourceId;
using test::Sandbox;
using test::SegmentView;

namespace {

template <class Body>
void with_lane(Body body) {
    HookScope hook;
    EXPECT(static_cast<bool>(hook));
    body(hook.lane());
}

NameId intern(ThreadLane& lane, const std::string& text) {
    return lane.intern(text.data(), text.size());
}

/// Fills the area of the names' bytes to the last one: large names first, then small ones into what is left.
void fill_table(ThreadLane& lane) {
    for (const std::size_t length : {std::size_t{1000}, std::size_t{5}}) {
        for (std::uint32_t i = 0;; ++i) {
            std::string text = std::to_string(i);
            text.insert(0, length - text.size(), 'n');
            if (intern(lane, text) == schema::kInlineName) break;
        }
    }
}

}  // namespace

TEST_CASE("names: one text has one id, whoever interns it and whatever lies behind it") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            const NameId id = intern(lane, "aten::add");
            EXPECT(intern(lane, "aten::add") == id);
            EXPECT(lane.intern("aten::add_", 9) == id);
            EXPECT(lane.intern_cached("aten::add") == id);
            EXPECT(intern(lane, "aten::add_") != id);
            EXPECT(intern(lane, "") != schema::kNoName);
            EXPECT(intern(lane, "") != id);
        });
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().names_used.load() == 3 + 1);  // and "?"
    });
}

TEST_CASE("names: the same bytes with two attributes are two names") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            const NameId plain = lane.intern("x", 1);
            const NameId other = lane.intern("x", 1, schema::AttributeId{3});
            EXPECT(plain != other);
            EXPECT(lane.intern("x", 1, schema::AttributeId{3}) == other);
        });
    });
}

TEST_CASE("names: a cached address that holds another text now is not believed") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            char text[32] = "first";
            const NameId first = lane.intern_cached(text);
            std::strcpy(text, "firs");
            const NameId shorter = lane.intern_cached(text);
            std::strcpy(text, "first and more");
            const NameId longer = lane.intern_cached(text);
            EXPECT(first != shorter);
            EXPECT(first != longer);
            std::strcpy(text, "first");
            EXPECT(lane.intern_cached(text) == first);
            lane.mark(SourceId::kApi, 0, longer, 0, 0);
        });
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 1);
    CHECK(records[0].name == "first and more");
}

TEST_CASE(
    "names: of every length up to the limit they read back, beyond it they are cut and counted") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            for (const std::size_t length : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 1023, 1024, 1025})
                lane.mark(SourceId::kApi, 0, intern(lane, std::string(length, 'n')), length, 0);
        });
    });
    const SegmentView view(box.segment_of(pid));
    for (const test::ReadRecord& record : view.records(0)) {
        const std::size_t length = record.words[2];
        CHECK(record.name == std::string(length > 1024 ? 1024 : length, 'n'));
    }
    CHECK(view.loss(schema::Loss::kNamesFull) == 1);
    CHECK(view.header().names_used.load() == 12 + 1);  // and "?"
}

TEST_CASE("names: when the table is full the bytes stand before the record") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            fill_table(lane);
            lane.mark(SourceId::kApi, 0, intern(lane, "not in the table"), 1, 0);
            lane.mark(SourceId::kApi, 0, intern(lane, std::string(500, 'x')), 2, 0);
            lane.mark(SourceId::kApi, 0, schema::kInlineName, 3, 0);  // without bytes: no name
        });
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 3);
    CHECK(records[0].name == "<inline>not in the table");
    CHECK(records[1].name == "<inline>" + std::string(schema::kMaxInlineNameBytes, 'x'));
    CHECK(records[2].name == "");
    CHECK(SegmentView(box.segment_of(pid)).lane(0).records.load() == 3);
}

TEST_CASE("names: one that memory is refused for takes no room, however often it comes") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            const schema::SegmentHeader& header = *inject::g_process.header;
            for (std::uint32_t i = 0; header.name_bytes_used.load() < 63 * 1024; ++i)
                intern(lane, std::to_string(i) + std::string(900, 'n'));
            const std::uint32_t used = header.name_bytes_used.load();
            box.control().process_budget_bytes.store(header.real_bytes.load());
            const std::string hot(1000, 'h');
            for (int i = 0; i < 5000; ++i) EXPECT(intern(lane, hot) == schema::kInlineName);
            EXPECT(header.name_bytes_used.load() == used);
            box.control().process_budget_bytes.store(0);
            EXPECT(intern(lane, hot) != schema::kInlineName);
            EXPECT(header.name_bytes_used.load() == used + 1001);
        });
    });
}

TEST_CASE("names: a label that finds the table full is unknown, not none, and each is counted") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            const NameId known = inject::intern_label(lane, "known");
            EXPECT(known != inject::unknown_name());
            fill_table(lane);
            EXPECT(inject::intern_label(lane, "") == schema::kNoName);
            EXPECT(inject::intern_label(lane, "known") == known);
            EXPECT(inject::label_of(intern(lane, "[[2, 3]]")) == inject::unknown_name());
            inject::RpcBegin begin;
            begin.module = inject::intern_label(lane, "the service");
            begin.peer = inject::intern_label(lane, "the peer");
            begin.function = intern(lane, "the method");
            lane.rpc_begin(begin);
            const auto attributes = inject::intern_attributes({begin.peer, {}, 0, {}});
            EXPECT(attributes.value != 0);  // of a domain that is unknown
        });
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.loss(schema::Loss::kAttributesLost) == 3);
    const auto records = view.records(0);
    REQUIRE(records.size() == 1);
    CHECK(records[0].name == "<inline>the method");
    const std::uint64_t peer_and_self = records[0].words[8];
    CHECK(view.name({static_cast<std::uint32_t>(peer_and_self)}) == "?");
}

TEST_CASE("names: open ranges keep their inline names, in whichever order they end") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            fill_table(lane);
            for (std::uint64_t key = 1; key <= 3; ++key) {
                const NameId name = intern(lane, "open range " + std::to_string(key));
                EXPECT(name == schema::kInlineName);
                lane.begin_range(SourceId::kTorch, 0, name, key, key);
            }
            EXPECT(lane.end_range(1));
            EXPECT(lane.end_operator(3, {0, 0, 0, 0}));
            EXPECT(lane.end_range(2));
        });
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 3);
    CHECK(records[0].name == "<inline>open range 1");
    CHECK(records[1].name == "<inline>open range 3");
    CHECK(records[2].name == "<inline>open range 2");
}

TEST_CASE("names: an RPC whose function is inline keeps it, its other names are left out") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        with_lane([&](ThreadLane& lane) {
            fill_table(lane);
            inject::RpcBegin begin;
            begin.function = intern(lane, "the function");
            EXPECT(begin.function == schema::kInlineName);
            lane.rpc_begin(begin);
            begin.function = intern(lane, "the function");
            begin.peer = intern(lane, "the peer");
            lane.rpc_begin(begin);
        });
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 2);
    CHECK(records[0].name == "<inline>the function");
    CHECK(records[1].name == "");
    CHECK(records[1].words[8] == 0);
}
