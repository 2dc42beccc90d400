// Where each event is drawn: process and thread numbers of a Chrome trace, and rows on which nothing overlaps in part (Perfetto drops what
// does, without a word in the picture).
//
//   process 1 (worker0)   thread 4711          ranges that nest
//                         thread 4711, row 2   ranges that overlap the first row's in part
//                         rpc out 1, 2 ...     client halves; as many rows as are in flight at once
//                         rpc in 1, 2 ...      server halves
//                         async 1, 2 ...       async ranges
//                         iterations           ProfilerStep#N between boundaries
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::chrome {

/// Numbers of one row.
struct Track {
    std::uint32_t pid;
    std::uint32_t tid;
    std::string name;
    std::int32_t sort_index;
};

/// A row for each of `ranges` (of one lane, as Lane::ranges), from 0, so that those of one row nest.
/// @return empty: all fit on one row
std::vector<std::uint16_t> nesting_rows(std::span<const model::Range> ranges);

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
    explicit Tracks(const model::Job& job);

    std::uint32_t pid(model::Index process) const { return pids_[process]; }
    std::uint32_t lane_track(model::Index lane) const { return lane_tracks_[lane]; }
    /// Rows of a lane's ranges, empty where one is enough.
    const std::vector<std::uint16_t>& rows(model::Index lane) const { return lane_rows_[lane]; }
    std::uint32_t range_track(model::Index lane, model::Index range) const {
        const auto& rows = lane_rows_[lane];
        return lane_tracks_[lane] + (rows.empty() ? 0 : rows[range]);
    }
    std::uint32_t half_track(model::Index half) const { return half_tracks_[half]; }
    std::uint32_t async_track(model::Index range) const { return async_tracks_[range]; }
    /// A row of a process for what it repeats under `name`.
    std::uint32_t add_row(model::Index process, std::string name);

    const std::vector<Track>& all() const { return tracks_; }

private:
    std::uint32_t add(model::Index process, std::uint32_t tid, std::string name);
    std::uint32_t virtual_tid(model::Index process) {
        return kFirstVirtualTid + next_virtual_[process]++;
    }
    void add_threads(const model::Job& job);
    template <class Event>
    void pack(const std::vector<Event>& events, const std::vector<model::Index>& order,
              const std::vector<model::Index>& process_of, const char* name,
              std::vector<std::uint32_t>& tracks);

    /// Beyond any thread's number (pid_max is at most 2^22), within what a signed 32-bit reader takes.
    static constexpr std::uint32_t kFirstVirtualTid = 0x40000000;

    std::vector<std::uint32_t> pids_;
    std::vector<std::uint32_t> next_virtual_;
    std::vector<std::uint32_t> lane_tracks_;
    std::vector<std::vector<std::uint16_t>> lane_rows_;
    std::vector<std::uint32_t> half_tracks_;
    std::vector<std::uint32_t> async_tracks_;
    std::vector<Track> tracks_;
};

}  // namespace ringside::viewer_export::chrome
