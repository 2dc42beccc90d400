// What a source needs whose framework calls it, and tells after the fact: it is ready at its call, has turns while attached, and writes
// under the word of a capture that has ended.
#include <doctest/doctest.h>

#include <atomic>

#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "sandbox.hpp"
#include "schema/gpu_record.hpp"

using namespace ringside;
using inject::HookScope;
using inject::Place;
using schema::RecordKind;
using test::eventually;
using test::Sandbox;
using test::SegmentView;

namespace {

std::atomic<bool> g_called{false};
std::atomic<int> g_attached{0};
std::atomic<int> g_turns{0};
std::atomic<int> g_turns_after{0};
std::atomic<bool> g_detached{false};
std::atomic<std::uint32_t> g_word{0};

const inject::Source kCaller = {
    schema::SourceId::kCupti,
    "caller",
    [] { return g_called.load(); },
    [] {},
    [](const inject::AttachRequest& request) {
        g_word = request.word;
        ++g_attached;
    },
    [] { g_detached = true; },
    [] { ++(g_detached ? g_turns_after : g_turns); },
    true,
};
const inject::Source kOther = {
    schema::SourceId::kTorch,
    "other",
    [] { return true; },
    [] {},
    [](const inject::AttachRequest&) { EXPECT(false); },
    [] {},
};

void load(const Sandbox& box) {
    static const inject::Source* sources[] = {&kOther, &kCaller};
    EXPECT(box.load());
    inject::set_sources(sources, 2);
}

schema::GpuKernelRecord kernel(std::uint64_t begin, std::uint32_t name) {
    schema::GpuKernelRecord record{};
    record.header = schema::RecordHeader{RecordKind::kGpuKernel, 3, 0x50, {name}}.pack();
    record.begin = begin;
    record.end = begin + 10;
    return record;
}

void write(std::uint32_t word, const schema::GpuKernelRecord& record) {
    const HookScope hook(HookScope::Under{word});
    EXPECT(hook);
    hook.lane().put_whole(&record, 3, {record.begin});
}

}  // namespace

TEST_CASE("told later: a framework that calls us is ready at once, others are left for later") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        load(box);
        inject::catch_up(Place::kFrameworkCall);
        EXPECT(g_attached == 0);
        g_called = true;
        inject::catch_up(Place::kFrameworkCall);
        EXPECT(g_attached == 1);
        EXPECT(g_word == word);
    });
}

TEST_CASE("told later: an attached source has turns, and none before or after") {
    Sandbox box;
    box.control();
    box.run([&] {
        static const inject::Source* sources[] = {&kCaller};
        EXPECT(box.load());
        inject::set_sources(sources, 1);
        g_called = true;
        inject::allow_helper_thread(true);
        inject::ensure_helper_thread();
        inject::wake_helper_thread();
        EXPECT(g_turns == 0);
        box.set_capture(true);
        EXPECT(eventually([] { return g_turns >= 3; }));
        box.set_capture(false);
        EXPECT(eventually([] { return g_detached.load(); }));
        inject::wake_helper_thread();
        EXPECT(g_turns_after == 0);
    });
}

TEST_CASE("told later: a record is written under the word of a capture that has ended") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        load(box);
        write(word, kernel(100, 0));
        box.set_capture(false);
        EXPECT(!HookScope());
        write(word, kernel(200, 0));
        EXPECT(!HookScope(HookScope::Under{0}));
        const SegmentView view(box.segments()[0]);
        const auto records = view.records(0);
        EXPECT(records.size() == 2);
        EXPECT(records[1].header.kind == RecordKind::kGpuKernel);
        EXPECT(records[1].words[1] == 200);
        EXPECT(records[1].words[2] == 210);
    });
}

TEST_CASE("told later: a thread that recorded under a capture's word goes on in the next one") {
    Sandbox box;
    const std::uint32_t first = box.set_capture(true);
    box.run([&] {
        load(box);
        write(first, kernel(100, 0));
        box.set_capture(false);
        write(first, kernel(150, 0));
        const std::uint32_t second = box.set_capture(true);
        {
            const HookScope hook;
            EXPECT(hook);
            EXPECT(hook.word() == second);
            hook.lane().mark(schema::SourceId::kApi, 0, {}, 1, 2);
        }
        const SegmentView view(box.segments()[0]);
        EXPECT(view.records(0).size() == 3);
    });
}

TEST_CASE("told later: a name without a table entry goes with its record") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        load(box);
        for (int i = 0; i < 9000; ++i) {
            const HookScope hook(HookScope::Under{word});
            EXPECT(hook);
            const std::string name = "name " + std::to_string(i);
            const auto id = hook.lane().intern(name.c_str(), name.size());
            if (id != schema::kInlineName) continue;
            const auto record = kernel(100, id.value);
            hook.lane().put_whole(&record, 3, {record.begin});
            const SegmentView view(box.segments()[0]);
            EXPECT(view.records(0).back().name == "<inline>" + name);
            return;
        }
        EXPECT(false);  // the table has no end
    });
}
