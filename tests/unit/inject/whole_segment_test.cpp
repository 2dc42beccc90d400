// What lies behind a segment's header is mapped when it is needed first.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include "inject/core/fork.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/core/process.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::HookScope;
using test::Sandbox;
using test::SegmentView;

namespace {

void record(const char* text) {
    HookScope hook;
    EXPECT(static_cast<bool>(hook));
    hook.lane().mark(schema::SourceId::kApi, 0, hook.lane().intern(text, 3), 1, 0);
}

/// Bytes of address room that this process has of files beneath `root`.
std::vector<std::uint64_t> mapped_of(const std::string& root, int pid) {
    std::vector<std::uint64_t> sizes;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(root) == std::string::npos ||
            line.find("." + std::to_string(pid) + ".") == std::string::npos)
            continue;
        std::uint64_t begin = 0, end = 0;
        EXPECT(std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2);
        sizes.push_back(end - begin);
    }
    return sizes;
}

using Sizes = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("whole segment: a process that records nothing has the header's page alone") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(box.load());
        EXPECT(inject::segment_base() == nullptr);
        EXPECT((mapped_of(box.root(), getpid()) == Sizes{schema::kPageBytes}));
        box.set_capture(true);
        EXPECT(inject::segment_base() == nullptr);
        record("one");
        EXPECT(inject::segment_base() != nullptr);
        EXPECT(mapped_of(box.root(), getpid()).size() == 2);
        // The same page twice: what one way writes the other reads.
        auto* header = reinterpret_cast<schema::SegmentHeader*>(inject::segment_base());
        inject::g_process.header->next_key.store(4711);
        EXPECT(header->next_key.load() == 4711);
    });
}

TEST_CASE("whole segment: a call that is open maps it, too") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(box.load());
        EXPECT(inject::own_open_call() != nullptr);
        EXPECT(inject::segment_base() != nullptr);
    });
}

TEST_CASE("whole segment: threads that need it at once map one") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) threads.emplace_back([] { record("one"); });
        for (std::thread& thread : threads) thread.join();
        EXPECT(mapped_of(box.root(), getpid()).size() == 2);
    });
}

TEST_CASE(
    "whole segment: a child has its own in the parent's place, whether the parent's was whole or "
    "not") {
    for (const bool whole : {false, true}) {
        Sandbox box;
        box.set_capture(true);
        box.run([&] {
            EXPECT(box.load());
            inject::watch_forks();
            if (whole) record("one");
            const std::byte* base = inject::segment_base();
            const auto* header = inject::g_process.header;
            const pid_t parent = getpid();
            const pid_t forked = fork();
            if (forked == 0) {
                EXPECT(inject::g_process.header == header);
                EXPECT(inject::g_process.header->pid == getpid());
                EXPECT(inject::segment_base() == base);
                EXPECT(mapped_of(box.root(), parent).empty());
                EXPECT(mapped_of(box.root(), getpid()).size() == (whole ? 2 : 1));
                record("two");
                _exit(0);
            }
            int status = -1;
            EXPECT(waitpid(forked, &status, 0) == forked && status == 0);
            const auto records = SegmentView(box.segment_of(forked)).records(0);
            EXPECT(records.size() == 1 && records[0].name == "two");
        });
    }
}

TEST_CASE(
    "whole segment: where there is no address room for it nothing is recorded, and that is "
    "counted") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        const rlimit full{1 << 30, RLIM_INFINITY};
        EXPECT(setrlimit(RLIMIT_AS, &full) == 0);
        {
            HookScope hook;
            EXPECT(!hook);
        }
        EXPECT(inject::segment_base() == nullptr);
        constexpr auto kRefused = static_cast<std::uint32_t>(schema::Loss::kLaneRefused);
        EXPECT(inject::g_process.header->losses[kRefused].load() == 1);
    });
}
