// What a device's time went to: computation, communication, copies, nothing; over all of its work and in each iteration. The sums are
// HolisticTraceAnalysis' (get_temporal_breakdown, get_comm_comp_overlap), by device time.
//
//   stream 7    [copy][ mm    ][ relu  ]                    compute        xxxxxxxxxxxxxxxx      some kernel that is no communication's
//   stream 20                      [ nccl      ]            communication            xxxxxxxxxxxx
//               |     |            |    |      |   |        exposed                        xxxxxx  of it beside no computation
//               copies compute          exposed idle        copies    xxxx                         copies and memsets beside neither
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"
#include "viewer_export/model/steps.hpp"

namespace ringside::viewer_export::model {

/// An interval of a device: time = compute + exposed + copies + idle.
struct GpuTime {
    std::int64_t time_ns = 0;
    std::int64_t compute_ns = 0;
    std::int64_t communication_ns = 0;
    std::int64_t exposed_ns = 0;  ///< of communication
    std::int64_t copies_ns = 0;

    std::int64_t busy_ns() const { return compute_ns + exposed_ns + copies_ns; }
    std::int64_t idle_ns() const { return time_ns - busy_ns(); }
    std::int64_t overlapped_ns() const { return communication_ns - exposed_ns; }
    void add(const GpuTime& other);
};

/// Of DeviceSplit: all that the process uses, taken as one: it computes where any of them does.
inline constexpr std::uint32_t kAllDevices = std::numeric_limits<std::uint32_t>::max();

/// One device as one process used it.
struct DeviceSplit {
    Index process;
    std::uint32_t device;
    GpuTime whole;  ///< from the begin of its first work to the end of its last one
    std::vector<GpuTime>
        steps;  ///< in each of its process' chosen steps; work that crosses a boundary is cut there
    GpuTime in_steps;  ///< their sum
};

struct GpuSplit {
    std::vector<DeviceSplit>
        devices;  ///< by rank, process and device; kAllDevices last, where a process uses several
    std::vector<Steps> steps;  ///< the chosen ones, by process
    /// @return null: that process has no iterations
    const Steps* steps_of(Index process) const;
};

/// One walk over the work: time by its number and what is under way at once, memory by devices and iterations.
GpuSplit split_gpu(const Job& job, const Tell& tell = {});

}  // namespace ringside::viewer_export::model
