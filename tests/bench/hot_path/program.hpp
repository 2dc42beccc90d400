// The traced program that the modes of hot_path.cpp share, its place on the machine, and the modes themselves.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "blocks.hpp"
#include "variants.hpp"

namespace ringside::bench {

/// @param only  the variants whose name contains it: for a profiler
int measure_pairs(int rounds, const std::string& only);
/// uftrace must record the process.
int measure_beside_uftrace(int rounds);
int measure_threads(int rounds);
/// @param agent  it captures; it is stopped and goes on again
int measure_drained(int rounds, pid_t agent);
int flood(long records);

inline constexpr std::uint32_t kRecords = schema::kDefaultFirstLaneKib * 1024 / schema::kCellBytes;
/// Of a tight block: about 0.5 ms, and what the smallest lane holds.
inline constexpr long kTightPairs = kRecords - 2048;

inline void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

/// The machine's processors that this process may use.
inline std::vector<int> processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    std::vector<int> found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
    }
    return found;
}

inline std::uint32_t own_tid() {
    return static_cast<std::uint32_t>(::syscall(SYS_gettid));
}

/// A program's ranges, by each way that it may take; all of them know the same names.
struct Program {
    Names names;
    FloorRing ring{kRecords};
    Floor floor{ring};
    FloorPutTogether floor_put{names, ring};
    KeptName kept{names};
    std::unique_ptr<RegisteredName> registered;
    NvtxName nvtx{names};
    ApiName api{names};
    ApiPutTogether api_put{names};

    Program() {
        if (!start_nvtx()) give_up("NVTX: no shim has taken its tables; preload one");
        registered = std::make_unique<RegisteredName>(names);
    }
};

/// Everything is recorded once, so that the lane and the names are there.
inline OwnLane own_lane(const std::string& directory, Program& program) {
    tight(program.kept)(1);
    return OwnSegment(directory).lane_of(own_tid());
}

}  // namespace ringside::bench
