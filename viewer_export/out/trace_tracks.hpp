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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viewer_export/model/job.hpp"

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
    bool thread;  ///< a thread of the process, under its own number
    std::string lane =
        {};  ///< whose records its ranges are: node.process.lane; empty: no one lane's
};

/// A record's id for ever is this and, after a dot, its position in the lane.
std::string lane_text(const model::Job& job, model::Index lane);

/// What lies on the rows of one thread or stream: an index into Job's vector of its kind.
enum class ItemKind : std::uint8_t { kRange, kCall, kWork };
struct Item {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    model::Index index;
    ItemKind kind;
};

/// A thread or a stream: its first row, and how many follow at once.
struct Rows {
    model::Index process;
    model::Index lane;  ///< kNone: a stream, or a thread without one
    std::uint32_t track;
    std::uint32_t more = 0;
    std::vector<Item> items = {};  ///< by begin, outer before inner; empty: just the lane's ranges
};

/// A row for each of `events` (by begin, outer before inner: ranges of one lane, items), from 0, so that those of one row nest.
/// @return empty: all fit on one row
template <class Event>
std::vector<std::uint16_t> nesting_rows(std::span<const Event> events);
inline std::vector<std::uint16_t> nesting_rows(const std::vector<model::Range>& ranges) {
    return nesting_rows(std::span<const model::Range>(ranges));
}

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
    Tracks(const model::Job& job, const std::vector<bool>& drawn);

    std::uint32_t group(model::Index process) const { return groups_of_[process]; }
    std::uint32_t lane_track(model::Index lane) const { return lane_tracks_[lane]; }
    std::uint32_t range_track(model::Index lane, model::Index range) const {
        const auto& rows = lane_rows_[lane];
        return lane_tracks_[lane] + (rows.empty() ? 0 : rows[range]);
    }
    std::uint32_t half_track(model::Index half) const { return half_tracks_[half]; }
    std::uint32_t async_track(model::Index range) const { return async_tracks_[range]; }
    std::uint32_t call_track(model::Index call) const { return call_tracks_[call]; }
    std::uint32_t work_track(model::Index work) const { return work_tracks_[work]; }
    /// Threads and streams, in the order of their tracks.
    const std::vector<Rows>& rows() const { return rows_; }
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
    void add_threads(const model::Job& job);
    void add_devices(const model::Job& job);
    void add_streams(const model::Job& job);
    void place(const model::Job& job, Rows rows, const std::string& name);
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
    std::vector<Group> groups_;
    std::vector<std::uint32_t> groups_of_;  ///< by process
    std::vector<std::uint32_t> next_virtual_;
    std::vector<std::uint32_t> lane_tracks_;
    std::vector<std::vector<std::uint16_t>> lane_rows_;
    std::vector<std::uint32_t> half_tracks_;
    std::vector<std::uint32_t> async_tracks_;
    std::vector<std::uint32_t> call_tracks_;
    std::vector<std::uint32_t> work_tracks_;
    std::vector<Rows> rows_;
    std::vector<Device> devices_;
    std::map<std::pair<model::Index, std::uint32_t>, std::uint32_t>
        device_of_context_;  ///< by process
    std::vector<Track> tracks_;
};

}  // namespace ringside::viewer_export::trace
