// Where each event is drawn: process and thread numbers of a trace, and rows on which nothing overlaps in part (Perfetto drops what does,
// without a word in the picture).
//
//   process 1 (worker0)   thread 4711          ranges that nest
//                         thread 4711, row 2   ranges that overlap the first row's in part
//                         rpc out 1, 2 ...     client halves; as many rows as are in flight at once
//                         rpc in 1, 2 ...      server halves
//                         async 1, 2 ...       async ranges
//                         iterations           ProfilerStep#N between boundaries
//   GPU 0 of process 1    stream 7, stream 20  kernels, copies, memsets; rows 2, 3 ... where they overlap in part
//                         waits                synchronisations, CUDA events
//
// Calls of CUDA and overheads lie on their thread's row, between its ranges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "viewer_export/model/gpu_projection.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/steps.hpp"

namespace ringside::viewer_export::trace {

/// What bears rows: a process, or one of the devices that it uses.
struct Group {
    std::uint32_t pid;
    std::string name;
    std::string labels;
    std::int32_t sort_index;
};

/// Numbers of one row.
struct Track {
    std::uint32_t group;  ///< Tracks::groups
    std::uint32_t pid;
    std::uint32_t tid;
    std::string name;
    std::int32_t sort_index;
    bool thread;                        ///< a thread of the process, under its own number
    model::Index lane = model::kNone;   ///< whose records its ranges are, or a stream's work
    model::Index calls = model::kNone;  ///< whose records the calls of CUDA on it are
};

/// A record's id for ever is this and, after a dot, its position in the lane.
std::string lane_text(const model::Job& job, model::Index lane);

/// A thread or a stream: its first row, and how many follow at once.
struct Rows {
    model::Index process;
    model::Index lane;  ///< kNone: a stream, or a thread without one
    std::uint32_t track;
    std::uint32_t more = 0;
    bool mixed = false;  ///< ranges of the lane are not all that lies there: trace_items.hpp
    std::pair<model::Index, model::Index> projections = {};  ///< Tracks::projections(): from, to
};

/// Rows for what comes by begin, outer before inner, so that what is on one row nests.
class Nesting {
public:
    /// @return the row, from 0
    std::uint32_t place(std::int64_t begin_ns, std::int64_t end_ns) {
        for (std::uint32_t row = 0;; ++row) {
            if (row == stacks_.size()) stacks_.emplace_back();
            std::vector<std::int64_t>& stack = stacks_[row];
            while (!stack.empty() && stack.back() <= begin_ns) stack.pop_back();
            // As many rows would be a hostile dump's: there the last one takes what it gets.
            if (!stack.empty() && end_ns > stack.back() && row < kLast) continue;
            stack.push_back(end_ns);
            return row;
        }
    }
    /// How many follow the first.
    std::uint32_t more() const {
        return stacks_.empty() ? 0 : static_cast<std::uint32_t>(stacks_.size() - 1);
    }

private:
    static constexpr std::uint32_t kLast = 0xffff;
    std::vector<std::vector<std::int64_t>> stacks_;  ///< ends of what is open on each row
};

/// Packs intervals, given in order of begin, onto as few rows as it takes with no two of a row touching.
class RowPacker {
public:
    /// @return the row, from 0
    std::uint32_t place(std::int64_t begin_ns, std::int64_t end_ns);
    std::uint32_t rows() const { return rows_; }

private:
    struct Busy {
        std::int64_t end_ns;
        std::uint32_t row;
        bool operator>(const Busy& other) const {
            return end_ns != other.end_ns ? end_ns > other.end_ns : row > other.row;
        }
    };
    std::vector<Busy> busy_;           // a heap, first to end on top
    std::vector<std::uint32_t> free_;  // a heap, lowest on top
    std::uint32_t rows_ = 0;
};

/// The layout of a whole job.
class Tracks {
public:
    /// @param drawn  of Job::processes: those that are
    /// @param steps  theirs
    /// @param cuda_sync  TraceOptions'
    Tracks(const model::Job& job, const std::vector<bool>& drawn,
           const std::vector<model::Steps>& steps, bool cuda_sync);

    std::uint32_t group(model::Index process) const { return groups_of_[process]; }
    std::uint32_t lane_track(model::Index lane) const { return lane_tracks_[lane]; }
    std::uint32_t half_track(model::Index half) const { return half_tracks_[half]; }
    std::uint32_t async_track(model::Index range) const { return async_tracks_[range]; }
    /// Threads and streams, in the order of their tracks.
    const std::vector<Rows>& rows() const { return rows_; }
    /// Where in rows() a call lies, a piece of work.
    model::Index rows_of(const model::GpuCall& call) const;
    model::Index rows_of(const model::GpuWork& work) const;
    /// Users' ranges as devices ran them; those of one stream's rows, from and to.
    const std::vector<model::Projection>& projections() const { return projections_; }
    std::pair<model::Index, model::Index> projections_of(model::Index rows) const {
        return rows_[rows].projections;
    }
    /// A process's iterations; null: it has none.
    const model::Steps* iterations_of(model::Index process) const;
    /// It lies on a row of a device's.
    bool draws_on_device(const model::GpuWork& work) const;
    /// The device whose group this is.
    struct Device {
        model::Index process;
        std::uint32_t device;
        std::uint32_t group;
    };
    const std::vector<Device>& devices() const { return devices_; }
    /// The device that a piece of work belongs to: its own or, where it names none, its context's.
    std::uint32_t device_of(const model::GpuWork& work) const;
    /// A row of a process for what it repeats under `name`.
    std::uint32_t add_row(model::Index process, std::string name);

    const std::vector<Group>& groups() const { return groups_; }
    const std::vector<Track>& all() const { return tracks_; }

private:
    void add_processes(const model::Job& job);
    /// What the first track of Rows will be.
    struct Place {
        std::uint32_t group;
        std::int64_t tid;  ///< negative: one that no thread has
        std::string name;
        bool thread;
        model::Index lane;
        model::Index calls;
    };
    void add_threads(const model::Job& job, std::vector<Place>& places);
    void add_devices(const model::Job& job);
    void add_streams(const model::Job& job, std::vector<Place>& places);
    void add_projections(const model::Job& job);
    void count_rows(const model::Job& job);
    void add_tracks(const std::vector<Place>& places);
    void add_halves(const model::Job& job);
    void add_asyncs(const model::Job& job);
    std::uint32_t add(std::uint32_t group, std::uint32_t tid, std::string name, bool thread);
    std::uint32_t virtual_tid(std::uint32_t group) {
        return kFirstVirtualTid + next_virtual_[group]++;
    }
    template <class Event>
    void pack(const std::vector<Event>& events, const std::vector<model::Index>& order,
              const std::vector<model::Index>& process_of, const char* name,
              std::vector<std::uint32_t>& tracks);

    /// Beyond any thread's number (pid_max is at most 2^22), within what a signed 32-bit reader takes.
    static constexpr std::uint32_t kFirstVirtualTid = 0x40000000;

    const std::vector<bool>& drawn_;
    const std::vector<model::Steps>& steps_;
    const bool cuda_sync_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> groups_of_;  ///< by process
    std::vector<std::uint32_t> next_virtual_;
    std::vector<std::uint32_t> lane_tracks_;
    std::vector<model::Index> lane_rows_;
    std::vector<std::uint32_t> half_tracks_;
    std::vector<std::uint32_t> async_tracks_;
    std::vector<Rows> rows_;
    std::map<std::pair<model::Index, std::uint32_t>, model::Index>
        thread_rows_;  ///< by process and tid, the first
    std::map<std::tuple<model::Index, std::uint32_t, std::uint64_t>, model::Index>
        stream_rows_;  ///< by process, device and stream
    std::vector<model::Projection> projections_;
    std::vector<Device> devices_;
    std::map<std::pair<model::Index, std::uint32_t>, std::uint32_t>
        device_of_context_;  ///< by process
    std::vector<Track> tracks_;
};

}  // namespace ringside::viewer_export::trace
