// Drains all lanes of one process and keeps its part of a capture: accounts, names, RPC halves, sealed blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "agent/drain/lane_drainer.hpp"

namespace ringside::agent {

class ProcessDrainer {
public:
    /// @param segment  borrowed: may go before this; then release_segment() is called first
    explicit ProcessDrainer(MappedSegment& segment) : segment_(&segment) {}

    struct Pass {
        std::uint64_t cells = 0;  ///< taken
        double fullest =
            0;  ///< how full the fullest lane was, 0 to 1; 1 too where one waits for the sink
        double most_held = 0;  ///< of a lane: what was taken and is not the producer's again
        bool waits = false;    ///< a released lane waits to be given back with its last block
    };

    /// A capture takes this process in, as its `index`-th.
    void start(std::uint32_t index);
    /// Goes on with its part of a capture that another agent began.
    /// @param accounts  as the dump's blocks say
    /// @param carries   where its lanes' blocks end; by lane index
    /// @param bytes     of those blocks
    void resume(std::uint32_t index, std::vector<LaneAccount> accounts,
                std::map<std::uint32_t, LaneCarry> carries, std::uint64_t bytes);
    /// The capture is over: what comes is thrown away, and what is unwritten with it (a window's, which is not finished).
    /// Sums, names and halves stay until the next one takes it in: whoever asks after processes is told of them.
    void stop(DrainBuffers& buffers);

    /// Takes what all lanes have committed.
    /// @param fresh_lanes  lanes seen for the first time were made while this agent watched
    /// @param enough_bytes  of a lane's block: the rest waits until that has gone to the sink, while it is still in the core's cache
    Pass drain(DrainBuffers& buffers, const TickRange& range, std::uint64_t now_ticks,
               bool fresh_lanes, std::size_t enough_bytes = ~std::size_t{0});
    /// Drains until nothing is left: for a process that writes no more.
    void drain_all(DrainBuffers& buffers, const TickRange& range, std::uint64_t now_ticks,
                   bool fresh_lanes);
    /// Closes the blocks under construction. @param last  with the open ranges of lanes that have no new record, too
    void seal(DrainBuffers& buffers, const TickRange& range, std::uint64_t now_ticks, bool last);

    /// Encoded bytes that wait to be written.
    std::size_t pending_bytes() const;
    const std::vector<Block>& sealed() const { return sealed_; }
    /// The sealed blocks have gone to the sink: what they hold is the producer's again. @param kept  what it answered, of each
    void settle(DrainBuffers& buffers, std::span<const std::uint8_t> kept, std::uint64_t now_ticks);
    void settle_all(DrainBuffers& buffers, bool kept, std::uint64_t now_ticks) {
        settle(buffers, std::vector<std::uint8_t>(sealed_.size(), kept ? 1 : 0), now_ticks);
    }

    /// A window begins a new piece, all blocks are in the one before: names are announced again, threads that are gone and halves that
    /// began before `oldest_ticks` are forgotten, but for their sums.
    void begin_piece(std::uint64_t oldest_ticks);
    /// What each account has lost since the last call.
    void take_losses(const std::function<void(const LaneAccount&, const LossSpan&)>& take);

    NameBook& names() { return names_; }
    const NameBook& names() const { return names_; }
    const HalfBook& halves() const { return halves_; }
    IterationBook& iterations() { return iterations_; }
    const IterationBook& iterations() const { return iterations_; }
    const IterationPace& pace() const { return pace_; }
    const std::vector<LaneAccount>& accounts() const { return accounts_; }
    std::uint64_t unknown_records() const { return unknown_records_; }
    std::uint64_t violations() const { return segment_ ? segment_->violations() : violations_; }
    std::uint32_t index() const { return index_; }
    std::uint32_t lane_count() const { return lane_count_; }
    std::uint64_t kept() const;
    std::uint64_t lost() const;
    /// Of the blocks that were kept.
    std::uint64_t bytes() const { return bytes_; }
    /// @param fresh_lanes  as in drain()
    bool has_unread(bool fresh_lanes);

    /// The segment is about to be unmapped; nothing may be drained after.
    void release_segment();

private:
    DrainScope scope(DrainBuffers& buffers, const TickRange& range, std::uint64_t now_ticks);
    void adopt_lanes(bool fresh);
    void adopt_lane(std::uint32_t index, const LaneView& view, bool fresh);

    MappedSegment* segment_;
    std::vector<std::unique_ptr<LaneDrainer>> lanes_;  ///< by index; null: not yet made, or refused
    std::vector<bool> refused_;                        ///< lanes that lie where none can
    std::uint32_t lane_count_ = 0;                     ///< of both
    std::uint32_t index_ = 0;
    bool keeping_ = false;
    NameBook names_;
    HalfBook halves_;
    IterationBook iterations_;
    IterationPace pace_;
    std::vector<LaneAccount> accounts_;
    std::uint64_t forgotten_kept_ = 0;  ///< of accounts that are not kept any more
    std::uint64_t forgotten_lost_ = 0;
    std::uint64_t bytes_ = 0;
    std::map<std::uint32_t, LaneCarry> carries_;  ///< of lanes that are not yet adopted
    std::vector<Block> sealed_;
    std::uint64_t unknown_records_ = 0;
    std::uint64_t violations_ = 0;
};

}  // namespace ringside::agent
