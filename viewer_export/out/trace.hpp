// The job as a time line for others' viewers: in Chrome's JSON as Kineto lays it out (Perfetto, TensorBoard's plugin, HTA), and as
// Perfetto's own packets. One walk over the job decides what is drawn where (trace_walk.hpp); a format only writes. Both are streamed to a
// temporary file beside the target, renamed when whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct TraceOptions {
    std::string trace_name = {};       ///< empty: the path
    model::Tell tell = {};             ///< events written, of about so many
    std::vector<bool> processes = {};  ///< which of Job::processes are drawn; empty: all
    bool cuda_sync = true;             ///< waits and CUDA events are drawn, too
};

/// What was written. slices = ranges + asyncs + rpc_halves + iterations + gpu_calls + gpu_work +
/// gpu_annotations.
struct TraceCounts {
    std::uint64_t slices = 0;
    std::uint64_t ranges = 0;  ///< on threads, open ones included
    std::uint64_t asyncs = 0;
    std::uint64_t rpc_halves = 0;
    std::uint64_t iterations = 0;       ///< ProfilerStep#N between two boundaries
    std::uint64_t gpu_calls = 0;        ///< of CUDA's runtime and driver
    std::uint64_t gpu_work = 0;         ///< kernels, copies, memsets; waits, events and overheads
    std::uint64_t gpu_annotations = 0;  ///< users' ranges and iterations as streams ran them
    std::uint64_t instants =
        0;  ///< marks and boundaries; trace_processor counts them as slices too
    std::uint64_t counters = 0;      ///< that the job recorded
    std::uint64_t derived = 0;       ///< points of counters that are made here: trace_counters.hpp
    std::uint64_t rpc_requests = 0;  ///< flows, caller to callee
    std::uint64_t rpc_replies = 0;   ///< flows, callee to caller
    std::uint64_t fwdbwd = 0;        ///< flows, forward to backward
    std::uint64_t launches = 0;      ///< flows (ac2g), call to kernel, copy or memset
    std::uint64_t collectives = 0;   ///< flows, the last one to arrive to who waited for it
    std::uint64_t left_out = 0;      ///< waits and CUDA events that nobody asked for
    std::uint64_t lost = 0;          ///< records that the dumps lack
    std::uint64_t bytes = 0;         ///< of the file
};

/// Kineto's JSON; gzipped where the path ends in `.gz`. Times are as loaded (LoadRequest::corrected).
/// @errors Input: the target can't be written; nothing is left there then
schema::Result<TraceCounts> write_chrome(const model::Job& job, const std::filesystem::path& path,
                                         const TraceOptions& options = {});

/// Perfetto's packets.
/// @errors as write_chrome
schema::Result<TraceCounts> write_perfetto(const model::Job& job, const std::filesystem::path& path,
                                           const TraceOptions& options = {});

}  // namespace ringside::viewer_export
