// One process as the engine follows it: its segment while it is mapped, its drainer, its part of the running capture.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/attach/mapped_segment.hpp"
#include "agent/attach/process_life.hpp"
#include "agent/drain/process_drainer.hpp"

namespace ringside::agent {

/// Those of a process's losses that stand for a record which was never written.
std::uint64_t passed_over(std::span<const std::uint64_t> losses);

struct TrackedProcess {
    explicit TrackedProcess(std::unique_ptr<MappedSegment> mapped);

    bool alive() const { return segment != nullptr && !ending; }
    /// Whether some source found its framework in the process.
    bool has_framework() const { return !facts.sources.empty(); }
    /// Whether one of them attaches when a capture asks, and says so when it has; the others look at the word by themselves.
    bool must_attach() const;
    /// Whether a capture waits until it has attached: one that is gone or damaged never will.
    bool can_attach() const { return alive() && !segment->broken(); }
    /// Reads the header anew.
    void refresh();
    /// What it was in at `ticks` and still is; of one that has ended, what it was in then.
    OpenFacts open_at(std::uint64_t ticks);
    /// What a selection looks at; its texts are the process's.
    Candidate candidate() const;
    /// The facts as a dump tells them: what each source reached in the capture, not that it let go at its end.
    SegmentFacts facts_in_capture() const;

    /// What its hooks passed over in the capture, by schema::Loss.
    std::array<std::uint64_t, schema::kLossCounters> losses_in_capture() const;
    /// Those of them that stand for a record which was never written.
    std::uint64_t passed_over() const;

    schema::SegmentId id;
    std::unique_ptr<MappedSegment> segment;  ///< null once it is drained and removed
    std::unique_ptr<ProcessLife> life;
    ProcessDrainer drainer;
    SegmentFacts facts;
    OpenFacts last_open;  ///< once it has ended
    std::optional<Ending> ending;
    std::string
        damage;  ///< of its segment when that was removed (MappedSegment::damage); empty: none
    std::uint64_t end_ticks = 0;  ///< when the agent saw it
    bool left_behind =
        false;  ///< dead when found, with records that no agent before us took, or of our capture

    // In the running, else in the last capture.
    bool in_capture = false;
    std::uint32_t index = 0;
    bool attached = false;
    bool came_late =
        false;  ///< into a capture of some processes, which begins by flagging those that are there
    Nanoseconds waited{
        0};  ///< for it to attach, in vain; 0: it was not waited for, or it came in time
    std::int64_t start_delay_ns = -1;
    /// What its hooks had passed over before the capture: none of it.
    std::array<std::uint64_t, schema::kLossCounters> losses_before{};
    std::optional<ProcessFacts> told;           ///< as the dump's last Process chunk says
    std::vector<SourceFacts> reached;           ///< sources that were on in it, as they last were
    std::optional<IterationReport> iterations;  ///< once it is over, where some were asked for
};

}  // namespace ringside::agent
