// A node's job for the bench: a live segment in its own job directory, in which this process attaches as a shim does and writes ranges and calls.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "agent/attach/process_life.hpp"
#include "schema/ticks.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

namespace ringside::bench {

using namespace ringside::agent;

inline constexpr std::uint32_t kLaneCells = 4096;

/// The worker of a node calls that of the next node of this process.
inline std::string worker_name(int node) {
    return "worker" + std::to_string(node);
}

class Job {
public:
    /// @param previous, next  the nodes whose worker calls this one, and which this one calls
    Job(const std::string& directory, int node, int previous, int next)
        : segment_(directory, spec(node)),
          control_(directory),
          lane_(segment_.add_lane(kLaneCells)) {
        range_ = segment_.intern("step");
        call_ = segment_.intern("rpc");
        self_ = segment_.intern(worker_name(node));
        caller_ = segment_.intern(worker_name(previous));
        callee_ = segment_.intern(worker_name(next));
    }

    /// What a shim's helper thread does: repeats the word once it has acted on it.
    void attach() {
        const std::uint32_t word = control_.word();
        if (segment_.header()->attached_word.load() == word) return;
        segment_.header()->capture_clock = schema::take_snapshot(schema::TicksSource::kTsc);
        segment_.header()->attached_word.store(word, std::memory_order_release);
    }

    /// A range, and a whole call to the next node.
    void write(Job& callee, std::uint64_t span) {
        const std::uint64_t now = agent::testing::ticks_now();
        lane_.range(range_, now, now + 100);
        lane_.rpc_begin(call_, now, span, false, self_, callee_, span);
        callee.lane_.rpc_begin(callee.call_, now + 1000, span, true, callee.self_, callee.caller_,
                               span);
        callee.lane_.rpc_end(now + 2000, span);
        lane_.rpc_end(now + 3000, span);
    }
    bool recording() const { return (control_.word() & 1) != 0; }

private:
    static agent::testing::SegmentSpec spec(int node) {
        agent::testing::SegmentSpec spec;
        spec.pid_namespace = own_pid_namespace();
        spec.pid = static_cast<std::uint32_t>(::getpid());
        spec.start_ticks = static_cast<std::uint64_t>(node) + 1;
        return spec;
    }

    agent::testing::FakeSegment segment_;
    agent::testing::FakeControl control_;
    agent::testing::FakeLane& lane_;
    std::uint32_t range_ = 0, call_ = 0, self_ = 0, caller_ = 0, callee_ = 0;
};

}  // namespace ringside::bench
