#include "agent/window/left_window.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/dump/chunk_facts.hpp"
#include "agent/window/block_part.hpp"
#include "agent/window/piece_file.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

std::uint64_t less(std::uint64_t count, std::uint64_t before) {
    return count < before ? 0 : count - before;
}

class PieceCopier {
public:
    PieceCopier(std::uint64_t capture_id, DumpWriter& writer)
        : capture_id_(capture_id), writer_(writer) {}

    /// @return whether the dump takes more
    bool take(std::uint64_t sequence, const fbs::Chunk& chunk) {
        if (const fbs::FileHeader* header = chunk.body_as_FileHeader()) begin(sequence, *header);
        if (!header_) return true;  // a piece whose header is gone says nothing that can be trusted
        if (const fbs::Process* process = chunk.body_as_Process()) take(*process);
        if (const fbs::Names* names = chunk.body_as_Names()) take(*names);
        if (const fbs::Blocks* blocks = chunk.body_as_Blocks()) take(*blocks);
        return !writer_.closed();
    }

    const std::optional<DumpHeader>& header() const { return header_; }

private:
    struct Known {
        std::uint32_t index = 0;  ///< in the dump
        std::set<std::uint32_t> names, attributes;
        std::vector<std::uint64_t> losses_before;
    };
    /// One thread's turn on a lane.
    struct Turn {
        bool seen = false;
        LaneTally
            before;  ///< what its lane had counted when the first piece begins, or a little later
        std::uint64_t outside = 0;
        std::uint64_t damaged = 0;
    };

    void begin(std::uint64_t sequence, const fbs::FileHeader& header) {
        if (header_ || header.calibration() == nullptr) return;
        // The first piece of all has nothing before it.
        aged_ = sequence > 1;
        header_ = facts_of(header);
        header_->capture_id = capture_id_;
        range_.start = header_->start_ticks;
        writer_.header(*header_);
    }

    void take(const fbs::Process& process) {
        ProcessFacts facts = facts_of(process);
        const auto [known, is_new] = processes_.try_emplace(facts.index);
        if (is_new) known->second.index = static_cast<std::uint32_t>(processes_.size() - 1);
        facts.index = known->second.index;
        // What had been counted when the window's first piece began is not of this dump.
        if (is_new) known->second.losses_before = facts.losses_before;
        facts.losses_before = known->second.losses_before;
        if (facts.end) facts.end->process = facts.index;
        writer_.process(facts);
    }

    // Each piece names all that it uses; the dump once.
    void take(const fbs::Names& names) {
        const auto process = processes_.find(names.process());
        if (process == processes_.end()) return;
        NamesBatch batch = facts_of(names);
        Known& known = process->second;
        batch.process = known.index;
        std::erase_if(batch.names,
                      [&](const auto& name) { return !known.names.insert(name.id).second; });
        std::erase_if(batch.attributes, [&](const auto& attribute) {
            return !known.attributes.insert(attribute.id).second;
        });
        if (!batch.names.empty() || !batch.attributes.empty()) writer_.names(batch);
    }

    void take(const fbs::Blocks& blocks) {
        if (blocks.blocks() == nullptr) return;
        std::vector<Block> kept;
        for (const fbs::Block* stored : *blocks.blocks()) {
            const auto process = processes_.find(stored->process());
            if (process == processes_.end() || stored->lane() >= schema::kMaxLanes) continue;
            Block block = facts_of(*stored);
            block.process = process->second.index;
            if (keep(block)) kept.push_back(std::move(block));
        }
        std::vector<const Block*> list(kept.size());
        std::transform(kept.begin(), kept.end(), list.begin(),
                       [](const Block& block) { return &block; });
        writer_.reserve_end(turns_.size(), processes_.size(), 0);
        if (!list.empty()) writer_.blocks(list);
    }

    bool keep(Block& block) {
        std::uint64_t& reached = reached_[{block.process, block.lane.index}];
        if (block.last < reached) return false;  // somebody has written to our file
        reached = block.last;
        Turn& turn = turns_[{block.process, block.lane}];
        if (!turn.seen && aged_) {
            turn.before = block.tally;
            // A thread that was born in the window.
            if (turn.before.first_lost_ticks >= range_.start) turn.before.lost = 0;
        }
        turn.seen = true;
        const std::uint64_t last = block.last;
        // Where nothing has aged out all of it is of the range.
        const bool whole = !aged_ || keep_part(block, range_, turn.outside);
        if (!whole) turn.damaged += block.records;
        keep_open_part(block, range_);
        // Of what was taken, whatever is kept of it: the tally and the context are of there.
        block.last = last;
        LaneTally& tally = block.tally;
        tally.outside = less(tally.outside, turn.before.outside) + turn.outside;
        tally.lost = less(tally.lost, turn.before.lost) + turn.damaged;
        tally.first_lost_ticks =
            tally.lost == 0 ? 0 : std::max(tally.first_lost_ticks, range_.start);
        if (tally.lost == 0) tally.last_lost_ticks = 0;
        return whole;
    }

    std::uint64_t capture_id_;
    DumpWriter& writer_;
    std::optional<DumpHeader> header_;
    bool aged_ = false;
    TickRange range_;
    std::map<std::uint32_t, Known> processes_;  ///< by the window's index
    std::map<std::pair<std::uint32_t, schema::LaneId>, Turn> turns_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> reached_;  ///< by lane
};

}  // namespace

schema::Result<DumpHeader> copy_left_window(int directory, std::uint64_t capture_id,
                                            DumpWriter& writer) {
    PieceCopier copier(capture_id, writer);
    read_pieces(directory, [&](std::uint64_t sequence, const fbs::Chunk& chunk) {
        return copier.take(sequence, chunk);
    });
    if (writer.closed()) return Error{ErrorCode::kUsage, writer.failure()};
    if (!copier.header()) {
        return Error{ErrorCode::kInput,
                     "read the window's pieces: not one of them begins with a whole header; "
                     "`ringside disarm` removes them"};
    }
    return *copier.header();
}

}  // namespace ringside::agent
