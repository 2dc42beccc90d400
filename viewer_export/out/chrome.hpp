// The job as a Chrome trace in Kineto's layout: for Perfetto, TensorBoard's plugin and HTA. Streamed to a temporary file beside the
// target, renamed when whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct ChromeOptions {
    std::string trace_name = {};  ///< empty: the path
    model::Tell tell = {};        ///< events written, of about so many
};

/// What was written. slices = ranges + asyncs + rpc_halves + iterations.
struct ChromeCounts {
    std::uint64_t slices = 0;  ///< X events
    std::uint64_t ranges = 0;  ///< on threads, open ones included
    std::uint64_t asyncs = 0;
    std::uint64_t rpc_halves = 0;
    std::uint64_t iterations = 0;  ///< ProfilerStep#N between two boundaries
    std::uint64_t instants =
        0;  ///< marks and boundaries; trace_processor counts them as slices too
    std::uint64_t counters = 0;
    std::uint64_t rpc_requests = 0;  ///< flows, caller to callee
    std::uint64_t rpc_replies = 0;   ///< flows, callee to caller
    std::uint64_t fwdbwd = 0;        ///< flows, forward to backward
    std::uint64_t lost = 0;          ///< records that the dumps lack
    std::uint64_t bytes = 0;
};

/// Writes the whole job; times are as loaded (LoadRequest::corrected).
/// @errors Input: the target can't be written; nothing is left there then
schema::Result<ChromeCounts> write_chrome(const model::Job& job, const std::filesystem::path& path,
                                          const ChromeOptions& options = {});

}  // namespace ringside::viewer_export
