// Drains one lane: copies committed cells out of the ring in batches, checks them, keeps those of the capture as an encoded block. What is
// kept stays the ring's until its block has gone to the sink: whoever comes after us finds it there.
// A lane whose words can't be right is quarantined: nothing more is read from it, and what it says it wrote counts as lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/attach/mapped_segment.hpp"
#include "agent/drain/accounts.hpp"
#include "agent/drain/half_book.hpp"
#include "agent/drain/iteration_book.hpp"
#include "agent/drain/iteration_pace.hpp"
#include "agent/drain/name_book.hpp"
#include "agent/drain/sink.hpp"
#include "agent/drain/spare_buffers.hpp"
#include "schema/block_codec.hpp"
#include "schema/lane_life.hpp"

namespace ringside::agent {

/// Copies of a batch of cells, its encoding, and room for blocks: one for all lanes of all processes, reused.
struct DrainBuffers {
    static constexpr std::uint32_t kBatchCells = 2048;
    /// A cell never takes more than a one-cell record and the pad before it (block_codec.hpp).
    static constexpr std::size_t kMostBytesPerCell = 1 + 3 + 2 + 5 + 3 * 10 + 11;
    schema::Cell cells[kBatchCells];
    std::uint8_t encoded[kBatchCells * kMostBytesPerCell];
    SpareBuffers spares;
};

/// What the lanes of one process share.
struct DrainScope {
    MappedSegment& segment;
    DrainBuffers& buffers;
    NameBook& names;
    HalfBook& halves;
    IterationBook& iterations;
    IterationPace& pace;
    std::vector<LaneAccount>& accounts;
    std::vector<Block>& sealed;
    std::uint64_t& unknown_records;
    std::uint32_t process = 0;
    bool keeping = false;  ///< a capture has this process; else records are thrown away
    TickRange range;
    std::uint64_t now_ticks = 0;
    std::size_t enough_bytes =
        ~std::size_t{0};  ///< a lane's block that is as long waits for the sink
};

/// Where a capture's last block of a lane ends, as an agent that died has left it.
struct LaneCarry {
    schema::LaneId lane;
    std::uint64_t position = 0;
    std::uint64_t ticks = 0;  ///< before it nothing was lost that `tally` does not count
    LaneTally tally;
    LaneContext context;
    std::size_t account = 0;
};

class LaneDrainer {
public:
    /// Goes on where the lane's last consumer stopped.
    /// @param lane   checked by MappedSegment::lane
    /// @param fresh  made while this agent watched: what it dropped so far counts
    LaneDrainer(std::uint32_t index, const LaneView& lane, bool fresh, MappedSegment& segment);

    /// Goes on with a capture exactly behind its last block of this lane: what stands in that is not taken twice, and what has been
    /// taken and stands nowhere is lost.
    void resume(const LaneCarry& carry, MappedSegment& segment);

    /// Takes what is committed, one ring's worth at most. What is thrown away is the producer's again at once, what is kept when its
    /// block is settled.
    /// @return cells taken; 0: there was nothing
    std::uint32_t drain(DrainScope& scope);
    /// Closes the block under construction and hands it to scope.sealed. One without records where the account has changed.
    /// @param last  the capture's last one: made without records too where ranges are open
    void seal(DrainScope& scope, bool last);
    /// A block of this lane has gone to the sink, in the order of their sealing: its cells are the producer's again, and a released
    /// lane is given back with its last one.
    void settled(const Block& block, MappedSegment& segment);
    /// A capture begins: accounts anew.
    void start() {
        account_ = kNoAccount;
        unsettled_ = 0;
    }
    /// A capture is over: the block under construction goes (a window that is disarmed has one), its cells are the producer's again.
    void stop(MappedSegment& segment);

    /// Its account's place has changed. @param place  from the old one to the new
    template <class Place>
    void renumber_account(Place&& place) {
        if (account_ != kNoAccount) account_ = place(account_);
    }

    std::size_t pending_bytes() const { return data_.size(); }
    /// Of the ring that is in use now.
    std::uint64_t capacity_cells() const { return reader_.capacity_cells(); }
    /// What a late pass may find without loss: some growth counts, for a lane that has lost nothing yet.
    std::uint64_t room_cells() const;
    /// Cells that were taken and are not the producer's again.
    std::uint64_t held_cells() const { return reader_.position() - reader_.tail(); }
    /// Whether its thread has gone and the lane waits for its last block.
    bool waits() const { return ending_.has_value(); }
    bool quarantined() const { return quarantined_; }
    /// Whether records lie in the lane that nobody has taken.
    bool has_unread(MappedSegment& segment);

private:
    static constexpr std::size_t kNoAccount = ~std::size_t{0};
    struct Fetched {
        schema::LaneLook look;
        std::uint32_t copied = 0;
        bool torn = false;  ///< the lane has changed hands meanwhile
    };
    /// A NameInline and the record that it names go as one.
    struct Unit {
        const std::uint64_t* first = nullptr;
        const std::uint64_t* record = nullptr;
        std::uint32_t cells = 0;  ///< of both
        schema::RecordHeader header;
    };
    enum class Shape : std::uint8_t { kRecord, kGap, kCutByBatch, kCorrupt };

    bool fetch(DrainScope& scope, Fetched& fetched);
    std::uint32_t take(DrainScope& scope, std::uint32_t count, bool more);
    static Shape next_unit(const std::uint64_t* words, std::uint32_t count, Unit& unit);
    std::uint32_t keep_plain(const DrainScope& scope, const std::uint64_t* words,
                             std::uint32_t count, std::uint8_t*& out);
    void keep(DrainScope& scope, const Unit& unit, std::uint64_t position, std::uint8_t*& out);
    void note(DrainScope& scope, const Unit& unit, std::uint64_t position);
    static void note_iteration(DrainScope& scope, const Unit& unit);
    void follow_context(const std::uint64_t* words);
    void note_drops(DrainScope& scope, std::uint64_t dropped);
    void quarantine(DrainScope& scope);
    void finish_generation(DrainScope& scope, std::uint32_t state);
    void give_back(MappedSegment& segment);
    void release_to(std::uint64_t position, MappedSegment& segment);
    void close_gap(DrainScope& scope);
    bool has_news(const DrainScope& scope) const;
    Block make_block(DrainScope& scope, std::vector<OpenRange> open);
    LaneAccount& account(DrainScope& scope);

    std::uint32_t index_;
    LaneView lane_;
    schema::RingReader reader_;
    bool quarantined_ = false;
    bool cramped_ = false;  ///< it has dropped records: it does not grow, or not fast enough
    std::uint32_t generation_ = 0;
    LaneFacts thread_;
    LaneContext context_;
    std::uint64_t dropped_ = 0;
    std::uint64_t last_drop_ticks_ = 0;
    std::uint64_t last_pass_ticks_ = 0;
    std::uint64_t delivered_ = 0;     ///< records taken by this drainer
    std::uint64_t records_base_ = 0;  ///< the lane's own count when that was 0
    bool records_known_ = false;
    std::uint64_t records_said_ = 0;  ///< the lane's own count, as last read
    bool gap_ = false;  ///< records were taken by somebody before us that no block holds
    std::size_t account_ = kNoAccount;
    LaneTally told_;               ///< as the last block of this account says
    std::uint32_t unsettled_ = 0;  ///< blocks on their way
    std::optional<std::uint32_t>
        ending_;  ///< the state word of a released lane that is to be given back

    // the block under construction
    std::unique_ptr<schema::BlockEncoder> encoder_;  ///< null: there is none; 8 KiB
    std::vector<std::uint8_t> data_;
    LaneContext block_context_;
    std::uint64_t base_ticks_ = 0;
    std::uint64_t earliest_ = ~0ull;  ///< the least begin of its records
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint32_t records_ = 0;
};

}  // namespace ringside::agent
