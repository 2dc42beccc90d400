// A segment in a file of memory, and the process that writes it: honest where an order says so, then with its own count of what it
// wrote, and anything else where it does not. One file for all inputs of a run; reset() makes it new.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "schema/segment.hpp"
#include "tests/fuzz/script.hpp"

namespace ringside::tests::fuzz {

inline constexpr std::uint64_t kFileBytes = 1 << 20;
inline constexpr std::uint32_t kLanes = 4;
inline constexpr schema::SegmentId kForgedId{7, 100, 1};

class ForgedSegment {
public:
    /// Makes the file beneath a new directory in $TMPDIR, else /dev/shm; the destructor removes both.
    ForgedSegment();
    ~ForgedSegment();
    ForgedSegment(const ForgedSegment&) = delete;
    ForgedSegment& operator=(const ForgedSegment&) = delete;

    int directory() const { return directory_.get(); }
    const std::string& directory_path() const { return path_; }

    /// Lays the segment out anew as the script's head says.
    void reset(const Script& script);
    /// What the process does. @param step  one of the process's orders
    void act(const Step& step);

    std::uint32_t lanes() const { return lanes_; }
    std::uint32_t capacity_cells(std::uint32_t lane) const { return book_[lane].capacity; }
    /// Records that an honest lane has written, those that found no room included.
    std::uint64_t written(std::uint32_t lane) const { return book_[lane].written; }
    /// Those of them that found no room.
    std::uint64_t dropped(std::uint32_t lane) const { return book_[lane].dropped; }
    /// Whether every word of the lane, and every word that says where it lies, is an honest process's.
    bool honest(std::uint32_t lane) const { return honest_ && book_[lane].honest; }
    /// The file has never been shorter than the agent thinks.
    bool whole() const { return whole_; }
    /// The next of the clock's ticks.
    std::uint64_t tick() { return ++clock_; }

private:
    struct LaneBook {
        std::uint64_t offset = 0;
        std::uint32_t capacity = 0;
        std::uint64_t written = 0;
        std::uint64_t dropped = 0;
        bool honest = true;
    };

    void lay_out_header();
    void lay_out_lane(std::uint32_t index, std::uint32_t capacity, std::uint64_t position);
    void clear();
    void record(const Step& step);
    void put_honestly(std::uint32_t lane, const schema::Cell* cells, std::uint32_t count);
    void place(std::uint32_t lane, std::uint64_t position, const schema::Cell& cell);
    void open_range(const Step& step);
    void name(const Step& step);
    void thread(const Step& step);
    void cells(const Step& step);
    void word(const Step& step);
    void truncate(const Step& step);
    void drop(std::uint32_t lane, std::uint64_t records);

    /// A part of the file that may be written, null where it has been cut off.
    template <class T>
    T* at(std::uint64_t offset) {
        if (offset + sizeof(T) > file_bytes_) return nullptr;
        touched_.set(offset / schema::kPageBytes);
        touched_.set((offset + sizeof(T) - 1) / schema::kPageBytes);
        return reinterpret_cast<T*>(base_ + offset);
    }
    schema::LaneHeader* lane_header(std::uint32_t lane) {
        return at<schema::LaneHeader>(book_[lane].offset);
    }
    schema::LaneHeader* used_lane(std::uint32_t lane);

    std::string path_;
    agent::FileHandle directory_;
    agent::FileHandle file_;
    std::byte* base_ = nullptr;
    std::bitset<kFileBytes / schema::kPageBytes> touched_;
    bool touched_by_agent_anywhere_ = false;  ///< it believed a lane to lie where none does

    std::uint64_t file_bytes_ = 0;
    std::uint32_t lanes_ = 0;
    std::array<LaneBook, kLanes> book_;
    bool honest_ = true;
    bool whole_ = true;
    std::uint64_t clock_ = 0;
    std::uint32_t names_ = 0;
    std::uint32_t name_bytes_ = 0;
};

}  // namespace ringside::tests::fuzz
