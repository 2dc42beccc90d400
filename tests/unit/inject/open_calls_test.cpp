// The page of open calls: what a hook's thread does, and the agent's eye on it.
#include "inject/core/open_calls.hpp"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "inject/core/capture.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/process.hpp"
#include "inject/core/thread_entry.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::SourceId;
using schema::GroupState;
using schema::OpenCall;
using schema::Ticks;
using test::Sandbox;
using test::SegmentView;

namespace {

template <std::uint32_t kWords>
std::string text_of(const schema::SourcedText<kWords>& text) {
    char bytes[kWords * 8];
    for (std::uint32_t i = 0; i < kWords; ++i) {
        const std::uint64_t word = text.words[i].load();
        std::memcpy(bytes + std::size_t{8} * i, &word, 8);
    }
    return {bytes, strnlen(bytes, text.kMaxBytes)};
}

template <std::uint32_t kWords>
SourceId source_of(const schema::SourcedText<kWords>& text) {
    return static_cast<SourceId>(text.words[kWords - 1].load() >> 56);
}

schema::OpenCallsPage& page() {
    return *reinterpret_cast<schema::OpenCallsPage*>(inject::segment_base() +
                                                     schema::kOpenCallsOffset);
}

std::int32_t tid() {
    return static_cast<std::int32_t>(syscall(SYS_gettid));
}

void load(const Sandbox& box) {
    EXPECT(box.load());
    inject::watch_forks();
}

std::uint32_t owned() {
    std::uint32_t count = 0;
    for (const OpenCall& call : page().calls) count += call.owner.load() != 0 ? 1 : 0;
    return count;
}

inject::GroupFacts group(std::uint64_t id) {
    return {SourceId::kMpi, id, "world", 4, 1, 2};
}

}  // namespace

TEST_CASE("open calls: a killed process's page says what it was in, since when, with whom") {
    Sandbox box;
    const pid_t pid = box.run_killed(SIGKILL, [&] {
        load(box);
        GroupState* state = inject::claim_group({SourceId::kTorch, 77, "default_pg", 4, 1, 2});
        EXPECT(inject::advance_group(state, 77, 5));
        inject::begin_open_call(inject::own_open_call(),
                                {SourceId::kMpi, "MPI_Allreduce", 77, 5, 3, 9}, Ticks{1234});
        raise(SIGKILL);
    });

    const SegmentView view(box.segment_of(pid));
    const auto& seen = *reinterpret_cast<const schema::OpenCallsPage*>(
        reinterpret_cast<const std::byte*>(&view.header()) + schema::kOpenCallsOffset);
    const OpenCall& call = seen.calls[0];
    CHECK(call.version.load() == 2);
    CHECK(call.owner.load() == pid);
    CHECK(call.begin.load() == 1234);
    CHECK(call.group.load() == 77);
    CHECK(call.sequence.load() == 5);
    CHECK(call.peer.load() == 3);
    CHECK(call.tag.load() == 9);
    CHECK(text_of(call.function) == "MPI_Allreduce");
    CHECK(source_of(call.function) == SourceId::kMpi);
    const GroupState& state = seen.groups[0];
    CHECK(state.version.load() == 2);
    CHECK(state.group.load() == 77);
    CHECK(state.last.load() == 5);
    CHECK(state.size.load() == 4);
    CHECK(state.rank.load() == 1);
    CHECK(state.job_rank.load() == 2);
    CHECK(text_of(state.label) == "default_pg");
    CHECK(source_of(state.label) == SourceId::kTorch);
}

TEST_CASE("open calls: a thread has one entry, in no call once it has ended") {
    Sandbox box;
    box.run([&] {
        load(box);
        OpenCall* call = inject::own_open_call();
        EXPECT(call != nullptr && call == inject::own_open_call());
        inject::begin_open_call(call, {SourceId::kMpi, "MPI_Recv"}, Ticks{1});
        EXPECT(call->peer.load() == schema::kNoPeer && call->tag.load() == schema::kAnyTag);
        inject::end_open_call(call);
        EXPECT(call->begin.load() == 0 && call->owner.load() == tid());
        EXPECT(owned() == 1);
    });
}

TEST_CASE("open calls: texts that are too long are cut, and the source stays") {
    Sandbox box;
    box.run([&] {
        load(box);
        OpenCall* call = inject::claim_open_call();
        const std::string text = "a_function_of_24_letters";
        inject::begin_open_call(call, {SourceId::kTorch, text.c_str()}, Ticks{1});
        EXPECT(text_of(call->function) == text.substr(0, 23));
        EXPECT(source_of(call->function) == SourceId::kTorch);
    });
}

TEST_CASE("open calls: what an ended thread had is free again, a lane or not") {
    Sandbox box;
    box.run([&] {
        inject::prepare_thread_exit();
        load(box);
        for (int i = 0; i < 100; ++i) {
            std::thread([] {
                OpenCall* call = inject::own_open_call();
                EXPECT(call != nullptr);
                inject::begin_open_call(call, {SourceId::kMpi, "MPI_Recv"}, Ticks{1});
            }).join();
        }
        EXPECT(owned() == 0);
        EXPECT(page().calls[0].begin.load() == 0);
    });
}

TEST_CASE("open calls: a full page gives none until one is released") {
    Sandbox box;
    box.run([&] {
        load(box);
        std::set<OpenCall*> calls;
        for (std::uint32_t i = 0; i < schema::kOpenCalls; ++i)
            calls.insert(inject::claim_open_call());
        EXPECT(calls.size() == schema::kOpenCalls && !calls.contains(nullptr));
        EXPECT(inject::claim_open_call() == nullptr);
        EXPECT(inject::own_open_call() == nullptr);
        inject::begin_open_call(nullptr, {SourceId::kMpi, "MPI_Recv"}, Ticks{1});
        inject::end_open_call(nullptr);
        inject::release_open_call(nullptr);
        OpenCall* const one = *calls.begin();
        inject::release_open_call(one);
        EXPECT(inject::own_open_call() == one);
    });
}

TEST_CASE("open calls: threads that claim and release at once never share an entry") {
    Sandbox box;
    box.run([&] {
        load(box);
        std::atomic<bool> shared{false};
        std::atomic<int> holders[schema::kOpenCalls]{};
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 20000; ++i) {
                    OpenCall* call = inject::claim_open_call();
                    if (call == nullptr) continue;
                    auto& holder = holders[call - page().calls];
                    if (holder.fetch_add(1) != 0) shared = true;
                    inject::begin_open_call(call, {SourceId::kMpi, "MPI_Isend"}, Ticks{1});
                    holder.fetch_sub(1);
                    inject::release_open_call(call);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT(!shared && owned() == 0);
    });
}

TEST_CASE("open calls: who reads between two equal, even versions reads one call") {
    Sandbox box;
    box.run([&] {
        load(box);
        OpenCall* call = inject::claim_open_call();
        std::atomic<bool> stop{false};
        std::thread writer([&] {
            const char* const names[] = {"aaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbb"};
            for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i)
                inject::begin_open_call(call, {SourceId::kMpi, names[i % 2], i, i}, Ticks{i});
        });
        int whole = 0;
        while (whole < 20000) {
            const std::uint32_t version = call->version.load(std::memory_order_acquire);
            const std::uint64_t begin = call->begin.load(std::memory_order_acquire);
            const std::uint64_t of = call->group.load(std::memory_order_acquire);
            const std::uint64_t sequence = call->sequence.load(std::memory_order_acquire);
            const std::string name = text_of(call->function);
            if ((version & 1) != 0 || version == 0 ||
                version != call->version.load(std::memory_order_acquire))
                continue;
            ++whole;
            EXPECT(begin == of && of == sequence);
            EXPECT(name == std::string(22, begin % 2 == 0 ? 'a' : 'b'));
        }
        stop = true;
        writer.join();
    });
}

TEST_CASE(
    "open calls: the page counts as the process's memory, and beyond the budget there is none") {
    Sandbox box;
    box.run([&] {
        load(box);
        const std::uint64_t before = inject::g_process.header->real_bytes.load();
        EXPECT(inject::own_open_call() != nullptr);
        EXPECT(inject::g_process.header->real_bytes.load() == before + schema::kPageBytes);
    });
    box.control().process_budget_bytes = 100;
    box.run([&] {
        load(box);
        EXPECT(inject::own_open_call() == nullptr && inject::claim_open_call() == nullptr);
        EXPECT(inject::claim_group(group(1)) == nullptr);
        EXPECT(!inject::advance_group(nullptr, 1, 1));
        inject::release_group(nullptr, 1);
    });
}

TEST_CASE("open calls: a process without a segment has none") {
    Sandbox box;
    box.run([&] {
        EXPECT(inject::own_open_call() == nullptr && inject::claim_open_call() == nullptr);
        EXPECT(inject::claim_group(group(1)) == nullptr);
    });
}

TEST_CASE("open calls: a forked child starts afresh, its parent stays in its call") {
    Sandbox box;
    box.set_capture(true);  // so that the child gets its segment at once
    box.run([&] {
        load(box);
        OpenCall* call = inject::own_open_call();
        EXPECT(inject::claim_group(group(7)) != nullptr);
        inject::begin_open_call(call, {SourceId::kMpi, "MPI_Recv"}, Ticks{5});
        const pid_t child = fork();
        if (child == 0) {
            inject::release_open_call(call);  // the parent's: nothing is there
            OpenCall* own = inject::own_open_call();
            EXPECT(own != nullptr && own->owner.load() == tid() && owned() == 1);
            EXPECT(page().groups[0].group.load() == 0);
            _exit(0);
        }
        int status = 1;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(call->begin.load() == 5 && call->owner.load() == tid());
    });
}

TEST_CASE("open calls: a child that no handler saw leaves its parent's entries alone") {
    Sandbox box;
    box.run([&] {
        load(box);
        OpenCall* call = inject::own_open_call();
        inject::begin_open_call(call, {SourceId::kMpi, "MPI_Recv"}, Ticks{5});
        const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        if (child == 0) {
            EXPECT(inject::own_open_call() == nullptr && inject::claim_open_call() == nullptr);
            EXPECT(inject::claim_group(group(7)) == nullptr);
            inject::release_open_call(call);
            syscall(SYS_exit_group, 0);
        }
        int status = 1;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(call->begin.load() == 5 && owned() == 1);
        EXPECT(page().groups[0].group.load() == 0);
    });
}

TEST_CASE("groups: one state a group, which only moves on, and is free when it is released") {
    Sandbox box;
    box.run([&] {
        load(box);
        GroupState* state = inject::claim_group(group(7));
        EXPECT(state != nullptr && state == inject::claim_group(group(7)));
        EXPECT(inject::advance_group(state, 7, 3) && inject::advance_group(state, 7, 2));
        EXPECT(state->last.load() == 3);
        inject::release_group(state, 8);
        EXPECT(state->group.load() == 7);
        inject::release_group(state, 7);
        EXPECT(state->group.load() == 0 && (state->version.load() & 1) == 0);
        EXPECT(!inject::advance_group(state, 7, 4));
        EXPECT(inject::claim_group(group(9)) == state && state->last.load() == 0);
    });
}

TEST_CASE("groups: where none is free, the one that was not used for longest makes room") {
    Sandbox box;
    box.run([&] {
        load(box);
        std::vector<GroupState*> states(schema::kGroupStates + 1);
        for (std::uint64_t id = 1; id <= schema::kGroupStates; ++id)
            states[id] = inject::claim_group(group(id));
        for (std::uint64_t id = 1; id <= schema::kGroupStates; ++id)
            if (id != 5) EXPECT(inject::advance_group(states[id], id, 1));
        GroupState* fresh = inject::claim_group(group(100));
        EXPECT(fresh == states[5] && fresh->group.load() == 100);
        EXPECT(!inject::advance_group(states[5], 5, 2));
        // All are used again but one: it is the next.
        for (std::uint64_t id = 1; id <= schema::kGroupStates; ++id)
            if (id != 5 && id != 9) EXPECT(inject::advance_group(states[id], id, 2));
        EXPECT(inject::claim_group(group(101)) == states[9]);
    });
}

TEST_CASE("groups: threads that claim and advance at once leave each state whole") {
    Sandbox box;
    box.run([&] {
        load(box);
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 6; ++t) {
            threads.emplace_back([t] {
                // More groups than there is room for.
                for (std::uint64_t i = 1; i < 20000; ++i) {
                    const std::uint64_t id = (i * 7 + t) % 40 + 1;
                    const std::string label = "group " + std::to_string(id);
                    GroupState* state = inject::claim_group(
                        {SourceId::kMpi, id, label.c_str(), static_cast<std::uint32_t>(id), 0, 0});
                    if (state != nullptr) inject::advance_group(state, id, i);
                    if (i % 5 == 0) inject::release_group(state, id);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (const GroupState& state : page().groups) {
            EXPECT((state.version.load() & 1) == 0);
            if (state.group.load() == 0) continue;
            EXPECT(state.size.load() == state.group.load());
            EXPECT(text_of(state.label) == "group " + std::to_string(state.group.load()));
        }
    });
}
