// How many requests each process served at once, as time went on: from the contexts of its threads. A request counts once however many threads work
// for it, and not while none does (an asynchronous function that waits for its own calls).
//
//   thread 1   [ a      ][ c       ]
//   thread 2       [ b      ]                1 2 1.. at once; max 2; c came while two were served: it waited for a thread
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "viewer_export/model/call_times.hpp"
#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// How long requests waited that came in the same circumstances.
struct Waits {
    std::uint64_t requests = 0;
    Durations queued;
    Durations rest;
};

struct ServiceLoad {
    static constexpr std::size_t kParts = 60;

    Index process;
    std::uint64_t requests = 0;            ///< that a thread has worked for
    std::int64_t begin_ns = 0;             ///< from the first thread that took one
    std::int64_t end_ns = 0;               ///< to the last one that let go
    std::vector<std::int64_t> at_once_ns;  ///< [n]: the time in which n were served
    std::vector<std::uint32_t>
        parts;                    ///< the most at once in each of kParts equal parts of the time
    Waits at_max;                 ///< those that came while as many as ever were served
    Waits below;                  ///< the others
    std::int64_t unknown_ns = 0;  ///< of threads' time in which nobody knows for whom they worked

    std::size_t most() const { return at_once_ns.size() - 1; }
    std::int64_t duration_ns() const { return end_ns - begin_ns; }
    double mean() const;
};

/// By process; those that served none are left out. Loglinear in the requests.
/// @param counts  of Job::calls: which ones count
std::vector<ServiceLoad> service_loads(const Job& job,
                                       const std::function<bool(const Call&)>& counts);

}  // namespace ringside::viewer_export::model
