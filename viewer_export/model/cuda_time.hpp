// For whom the GPU worked, and how long, as torch's table asks it: what each range of a thread launched, itself and with all inside it, and what
// each request did. A thread's calls of CUDA are ranges among its others, as there.
//
// A piece of work has its duration (total), and its share of the time that its device was busy (self): of each moment every piece under way
// has an equal part. So shares never sum to more than the device was busy, however many streams run at once; work that is alone has all of it.
//
//   stream 7    [  relu 40 ns      ]               relu: 20 alone + half of 20 = 30
//   stream 20          [ nccl 60 ns            ]   nccl: half of 20 + 40 alone = 50, together the 80 ns that the device was busy
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/nesting.hpp"

namespace ringside::viewer_export::model {

struct CudaTime {
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
};

/// One thread's calls of CUDA, by begin, outer before inner.
struct ThreadCalls {
    Index process;
    std::vector<Index> calls;  ///< Job::gpu_calls
};

/// A thread's ranges with its calls of CUDA among them, as Lane::ranges.
struct ThreadRanges {
    std::vector<Range> ranges;
    std::vector<Index> calls;  ///< of each: Job::gpu_calls; kNone: a range of the thread's own
};

class CudaTimes {
public:
    explicit CudaTimes(const Job& job);

    /// @param work  of Job::gpu_work; what is not on a device has no time
    const CudaTime& of_work(Index work) const { return works_[work]; }
    /// @param call  of Job::calls
    /// @return the durations of what was launched while it was served, and while what it called then was
    std::int64_t of_request(Index call) const { return requests_.empty() ? 0 : requests_[call]; }
    /// @return empty where the lane's thread made none
    std::span<const Index> calls_of(Index lane) const;
    /// Of threads that recorded nothing else.
    const std::vector<ThreadCalls>& other_threads() const { return others_; }
    ThreadRanges with_calls(std::span<const Range> ranges, std::span<const Index> calls) const;
    /// What each range launched. Total: what calls in it and its children launched; self: without the children's. A call's own is the range's around it,
    /// as torch has it; a folded range's self stands with the one it is folded into. Linear.
    /// @param nesting  nest() of the same ranges
    std::vector<CudaTime> of_ranges(const ThreadRanges& thread, const Nesting& nesting) const;

private:
    void share_out();
    void add_to_requests();
    void sort_calls();

    const Job& job_;
    std::vector<CudaTime> works_;
    std::vector<CudaTime> launched_;              // by Job::gpu_calls
    std::vector<std::int64_t> requests_;          // by Job::calls; empty: no work
    std::vector<std::vector<Index>> lane_calls_;  // by lane; empty: no calls
    std::vector<ThreadCalls> others_;
};

}  // namespace ringside::viewer_export::model
