// The arrows of a time line: a request and its reply, forward to backward, a call of CUDA to what it launched. Each has a number of its own, and is
// told at its two slices, where they are written: what is kept is a bit a range.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/trace_forwards.hpp"

namespace ringside::viewer_export::trace {

/// A point in a slice.
struct Tip {
    std::int64_t ns;
    std::int64_t begin_ns;  ///< of the slice
    std::int64_t end_ns;
};

/// Readers drop an arrow that points back in time, which clocks of two nodes can make of any arrow. Within the bound it is drawn a little
/// later or earlier inside its slices; beyond that (uncorrected clocks) from the later to the earlier.
struct Arrow {
    std::int64_t from_ns;
    std::int64_t to_ns;
    bool turned;  ///< drawn from the second to the first
};
Arrow drawn_forward(Tip from, Tip to);

/// What a slice has to tell of an arrow.
struct Flow {
    const char* category;
    std::uint64_t id;
    std::int64_t ns;
    bool leaves;          ///< else it arrives
    bool at_end = false;  ///< of the slice
};

class Arrows {
public:
    Arrows(const model::Job& job, const std::vector<bool>& drawn);

    /// The request that joins a half to the other one, and its reply.
    std::optional<Flow> request_of(model::Index half) const;
    std::optional<Flow> reply_of(model::Index half) const;
    /// From or to a call's work.
    Flow leaving(const model::GpuCall& call, model::Index work) const;
    Flow arriving(const model::GpuCall& call, model::Index work) const;
    /// From a forward operator to the backward one of its sequence, told at both.
    std::optional<Flow> of_operator(RangeAt at) const;
    std::uint64_t backwards() const { return backwards_; }
    /// A number beyond all of its arrows'.
    std::uint64_t next() const { return first_launch() + job_.gpu_work.size(); }

private:
    const model::Call* joined(model::Index half) const;
    Arrow launch(const model::GpuCall& call, model::Index work) const;

    // Numbers: of requests and replies, of forward operators, of launches.
    std::uint64_t first_forward() const { return 2 * std::uint64_t{job_.calls.size()} + 1; }
    std::uint64_t first_launch() const { return first_forward() + ranges_; }

    const model::Job& job_;
    const std::vector<bool>& drawn_;
    ForwardIndex forwards_;
    std::vector<std::uint64_t> lane_first_;  ///< of the job's ranges
    std::uint64_t ranges_ = 0;
    std::vector<std::vector<bool>> tied_;  ///< by lane: of its ranges; empty: none
    std::uint64_t backwards_ = 0;
};

}  // namespace ringside::viewer_export::trace
