// A trace's dump, cut out of an armed agent's window: what lies there from its first tick on, and what is drained until its stop. A thread of
// its own copies block by block, so that the drain goes on at its pace; whole frames that lie inside the range pass undecoded.
//
//   lanes -> window -> excerpt -> dump
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/dump/dump_writer.hpp"
#include "agent/window/window.hpp"
#include "schema/dump_generated.h"

namespace ringside::agent {

/// What became of one process's records in an excerpt.
struct ExcerptCount {
    std::uint64_t kept = 0;
    std::uint64_t lost = 0;
    std::uint64_t bytes = 0;  ///< of its blocks
};

/// @thread main thread (the engine's callers, one at a time), but for bytes(), kept() and lost(): thread-safe
class Excerpt {
public:
    Excerpt(Window& window, std::unique_ptr<DumpWriter> writer);
    /// Ends the copying if it still goes on.
    ~Excerpt();
    Excerpt(const Excerpt&) = delete;
    Excerpt& operator=(const Excerpt&) = delete;

    /// Takes a process in; before its first block comes into the window, or before start().
    /// @param facts  its index is the window's
    /// @return its index in the dump
    std::uint32_t include(ProcessFacts facts);
    /// @return its index in the dump; none: it is not in
    std::optional<std::uint32_t> index_of(std::uint32_t window_index) const;
    std::uint32_t included() const;

    /// Writes the header and holds what the range may need.
    /// @param header  its start: from where on records are kept; no earlier than what the window holds
    void begin(const DumpHeader& header);
    bool begun() const { return begun_; }
    /// Begins to copy: who is in it is known.
    void start();
    /// The range ends; what is copied already stays.
    /// @return the stop, no earlier than what was copied
    std::uint64_t set_stop(std::uint64_t stop_ticks);
    /// All that the range may hold is in the window now, the last open ranges too.
    void mark_end() { window_.store().mark_end(); }
    /// Tells a process as it is at the end.
    void tell_last(ProcessFacts facts);
    /// What lanes lost in the range (LossLog::within).
    void count_losses(const std::vector<LaneLoss>& losses);
    /// Waits until all is copied.
    void join();
    /// The footer and the final name; after join().
    /// @param footer  without its lanes: those are filled in here
    DumpReceipt finish(DumpFooter footer);

    const TickRange& range() const { return range_; }
    /// After join(). @param window_index  of a process
    ExcerptCount count(std::uint32_t window_index) const;
    /// After join(): whether the dump holds the record.
    bool holds(std::uint32_t window_index, schema::LaneId lane, std::uint64_t position) const;
    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    std::uint64_t kept() const { return kept_.load(std::memory_order_relaxed); }
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

private:
    struct Included {
        std::uint32_t index = 0;  ///< the dump's
        ProcessFacts facts;
        bool told = false;
        std::bitset<schema::kNameEntries + 1> names;
        std::bitset<schema::kAttributeEntries + 1> attributes;
    };
    /// One thread's turn on a lane: its account, and which positions of it the dump holds.
    struct LaneSum {
        LaneAccount account;
        std::uint64_t bytes = 0;
        std::uint64_t first = 0;
        std::uint64_t last = 0;
    };
    using LaneKey =
        std::pair<std::uint32_t, schema::LaneId>;  ///< the process's index is the window's

    void copy_all();
    void copy(const FrameRef& frame);
    void copy_names(const fbs::Names& names);
    void copy_blocks(const fbs::Blocks& blocks, const FrameRef& frame);
    void settle(const std::vector<Block>& blocks, bool kept, std::uint64_t sealed_ticks);
    Included* included_of(std::uint32_t window_index);
    void tell(Included& process);
    LaneSum& lane_of(std::uint32_t window_index, schema::LaneId lane, std::int32_t tid);
    void lose(LaneAccount& account, std::uint64_t records, std::uint64_t first, std::uint64_t last);
    void publish();

    Window& window_;
    std::unique_ptr<DumpWriter> writer_;
    std::thread thread_;
    PieceCursor cursor_;
    bool begun_ = false;

    mutable std::mutex mutex_;  ///< guards what both the copier and the callers touch while it runs
    TickRange range_;
    std::uint64_t copied_until_ = 0;
    std::map<std::uint32_t, std::unique_ptr<Included>> included_;  ///< by the window's index

    std::map<LaneKey, LaneSum> lanes_;  ///< the copier's; the callers' after join()
    std::vector<std::uint8_t> buffer_;
    std::uint64_t damaged_records_ = 0;
    std::string damaged_piece_;
    std::atomic<std::uint64_t> bytes_{0}, kept_{0}, lost_{0};
};

}  // namespace ringside::agent
