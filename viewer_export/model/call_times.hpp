// How long a call took, where: one set of numbers for every view that shows it.
//
//   caller   |---------------------- caller ----------------------|
//   callee        arrives |-- queued --|------ service ------| answer       rest = caller - service: the network and the queue
//            |- request - |                                  |- reply -|    two clocks: right within the bound
//
// Of a message there is the time of the call that sends, and the way from its begin to where the receive was seen to complete.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// None: not known, or it did not come to that.
struct CallTimes {
    std::optional<std::int64_t> caller_ns;  ///< it has ended there, well or not
    std::optional<std::int64_t> queued_ns;  ///< from its arrival until a thread took it
    std::optional<std::int64_t>
        service_ns;  ///< from then to its answer; from its arrival where no thread's context tells
    std::optional<std::int64_t> rest_ns;  ///< only where that answer is the one that the caller had
    std::optional<std::int64_t>
        request_ns;  ///< one way; none where the two clocks were not compared
    std::optional<std::int64_t> reply_ns;
    std::int64_t bound_ns = 0;  ///< of request and reply: 0 on one node
};

CallTimes call_times(const Job& job, const Call& call);

/// The stretches in which threads worked for a server half, by begin.
std::span<const Serving> servings_of(const Job& job, Index half);

/// Durations, asked for their percentiles by nearest rank: the least one that at least `percent` % of all do not exceed.
class Durations {
public:
    void add(std::optional<std::int64_t> ns) {
        if (ns) all_.push_back(*ns);
    }
    std::size_t size() const { return all_.size(); }
    /// @return none where there are none
    std::optional<std::int64_t> percentile(std::uint64_t percent);

private:
    std::vector<std::int64_t> all_;
};

}  // namespace ringside::viewer_export::model
