// Iterations: what lies between one boundary and the next of its kind, in each process. They are in no list: boundaries of a kind lie side by side in
// Job::values, in the order of time.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

struct Step {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t number;  ///< of the boundary that begins it
    Index boundary;        ///< that one, in Job::values
};

/// The steps of one kind of boundary in one process, one after the other without a gap.
struct Steps {
    Index process;
    Index boundary;  ///< Job::names
    /// These are its iterations: of the kind that was asked for, else of the most frequent.
    bool chosen;
    Index first;  ///< boundary, in Job::values
    Index count;  ///< one or more; a boundary more

    Step at(const Job& job, std::size_t step) const {
        const Index from = first + static_cast<Index>(step);
        return {job.values[from].ns, job.values[from + 1].ns, job.values[from].value, from};
    }
    std::int64_t begin_ns(const Job& job) const { return job.values[first].ns; }
    std::int64_t end_ns(const Job& job) const { return job.values[first + count].ns; }
};

/// By process and name. Linear in the job's values.
std::vector<Steps> steps_of(const Job& job);

}  // namespace ringside::viewer_export::model
