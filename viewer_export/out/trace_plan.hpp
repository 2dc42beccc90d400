// What a time line shows, decided before anything is written and the same in every format: whose events, from which instant on, on which rows,
// with which arrows; and what events are called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/model/work_name.hpp"
#include "viewer_export/out/trace.hpp"
#include "viewer_export/out/trace_arrows.hpp"
#include "viewer_export/out/trace_collectives.hpp"
#include "viewer_export/out/trace_steps.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

/// Kineto's categories, and ours: rpc, iteration.
enum class Category : std::uint8_t {
    kCpuOp,
    kUserAnnotation,
    kGpuAnnotation,
    kRpc,
    kIteration,
    kInstant,
    kRuntime,
    kDriver,
    kKernel,
    kCopy,
    kMemset,
    kWait,
    kCudaEvent,
    kOverhead,
};
inline constexpr std::string_view kCategoryNames[] = {
    "cpu_op",     "user_annotation",   "gpu_user_annotation", "rpc",
    "iteration",  "cpu_instant_event", "cuda_runtime",        "cuda_driver",
    "kernel",     "gpu_memcpy",        "gpu_memset",          "cuda_sync",
    "cuda_event", "overhead"};
inline constexpr std::size_t kCategories = std::size(kCategoryNames);

/// Where a name is none of the job's it is an iteration's, which no other has: not worth keeping.
constexpr bool names_each(Category category) {
    return category == Category::kUserAnnotation || category == Category::kGpuAnnotation;
}

/// When the first event of `processes` began (empty: of all); 0: there is none.
std::int64_t first_ns(const model::Job& job, const std::vector<bool>& processes = {});

Category category_of(const model::Range& range);
Category category_of(const model::GpuWork& work);

/// What there is of a process in a file of one rank, or of all in a merged one.
struct Plan {
    Plan(const model::Job& of, const TraceOptions& options);
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    bool draws_lane(model::Index lane) const { return drawn[job.lanes[lane].process]; }
    /// A number for a range that no other in the file has: Kineto's external id, by which a call of CUDA finds its operator.
    std::uint64_t external_id(model::Index lane, model::Index range) const {
        return lane_first[lane] + range + 1;
    }
    /// The same for an iteration. @param boundary  Job::values: what begins it
    std::uint64_t external_id(model::Index boundary) const { return ranges + boundary + 1; }

    const model::Job& job;
    std::vector<bool> drawn;  ///< by process
    std::int64_t
        base_ns;  ///< times are relative: an epoch in microseconds loses its nanoseconds in the doubles that readers keep
    bool cuda_sync;
    std::vector<model::Steps> kinds;  ///< of steps
    Tracks tracks;
    std::vector<Steps> steps;
    Arrows arrows;
    TraceCollectives collectives;
    model::RpcNames names;
    mutable model::WorkNames work_names;  ///< what it remembers is no one's state
    std::vector<std::uint64_t> lane_first;
    std::uint64_t ranges = 0;  ///< of the job
    std::uint64_t elements;    ///< about as many as will be written
};

/// Why an event has no end; "" where it has one.
std::string_view end_text(const model::Job& job, model::End end, model::Index process);
std::string_view status_text(schema::RpcStatus status);
std::string_view state_text(const model::Call& call);

}  // namespace ringside::viewer_export::trace
