// What a lane gives back and to whom: blocks are sealed, and once the sink has them their cells are the producer's; a lane whose thread
// has gone is the process's again; and a successor goes on where the last block of an agent that died ends.
#include <utility>

#include "agent/drain/lane_drainer.hpp"

namespace ringside::agent {

void LaneDrainer::resume(const LaneCarry& carry, MappedSegment& segment) {
    generation_ = carry.lane.generation;
    account_ = carry.account;
    told_ = carry.tally;
    dropped_ = carry.tally.dropped;
    last_pass_ticks_ = carry.ticks;
    records_base_ = carry.tally.records;
    gap_ = reader_.tail() > carry.position && records_base_ != LaneTally::kUnknown;
    records_known_ = !gap_ && records_base_ != LaneTally::kUnknown;
    if (reader_.tail() > carry.position) return;
    context_ = carry.context;
    // Died between the write and the release.
    const std::uint64_t again = carry.position - reader_.tail();
    if (again > lane_.all_cells()) return segment.count_violation();
    segment.access([&] { reader_.skip_to(carry.position); });
    release_to(carry.position, segment);
}

/// What an agent before us took and wrote nowhere: what the lane says it wrote, less what stands in blocks and what we took.
void LaneDrainer::close_gap(DrainScope& scope) {
    const auto counters = scope.segment.lane_counters(lane_);
    if (!gap_ || !counters || quarantined_) return;
    gap_ = false;
    records_known_ = true;
    const std::uint64_t taken = counters->records - records_base_ - delivered_;
    if (taken > kMostDrops) return scope.segment.count_violation();
    account(scope).lose(taken, last_pass_ticks_, scope.now_ticks);
    records_base_ += taken;
}

void LaneDrainer::finish_generation(DrainScope& scope, std::uint32_t state) {
    close_gap(scope);
    const auto counters = scope.segment.lane_counters(lane_);
    if (counters && records_known_ && counters->records - records_base_ != delivered_) {
        scope.segment.count_violation();
        records_known_ = false;
    }
    seal(scope, true);
    account_ = kNoAccount;
    ending_ = state;
    give_back(scope.segment);
}

void LaneDrainer::release_to(std::uint64_t position, MappedSegment& segment) {
    std::uint32_t ring = 0;
    segment.access([&] {
        reader_.release_to(position);
        ring = reader_.ring_of_tail();
    });
    if (ring > 1) segment.take_back(lane_, ring);
}

void LaneDrainer::give_back(MappedSegment& segment) {
    if (!ending_ || unsettled_ != 0) return;
    if (held_cells() != 0) release_to(reader_.position(), segment);
    segment.recycle(lane_, reader_, *ending_);
    cramped_ = false;
    ending_.reset();
}

void LaneDrainer::settled(const Block& block, MappedSegment& segment) {
    --unsettled_;
    release_to(block.last, segment);
    give_back(segment);
}

void LaneDrainer::stop(MappedSegment& segment) {
    // Nobody can say any more how much of it was that capture's.
    if (std::exchange(gap_, false)) records_known_ = false;
    records_ = 0;
    data_ = {};
    encoder_.reset();
    if (held_cells() != 0 && unsettled_ == 0) release_to(reader_.position(), segment);
}

bool LaneDrainer::has_news(const DrainScope& scope) const {
    if (account_ == kNoAccount) return false;
    const LaneAccount& account = scope.accounts[account_];
    return account.outside != told_.outside || account.lost != told_.lost;
}

void LaneDrainer::seal(DrainScope& scope, bool last) {
    if (!scope.keeping) return;
    if (last) close_gap(scope);
    const bool must = encoder_ || has_news(scope);
    std::vector<OpenRange> open;
    if (must || last) {
        static_cast<void>(scope.segment.open_stack(lane_, open));
        std::erase_if(open,
                      [&](const OpenRange& range) { return !scope.range.contains(range.begin); });
    }
    if (must || !open.empty()) {
        scope.sealed.push_back(make_block(scope, std::move(open)));
        ++unsettled_;
    } else if (held_cells() != 0 && unsettled_ == 0) {
        release_to(reader_.position(), scope.segment);  // a lane's unused end: nobody misses it
    }
}

Block LaneDrainer::make_block(DrainScope& scope, std::vector<OpenRange> open) {
    Block block;
    for (const OpenRange& range : open)
        scope.names.use(scope.segment, schema::RecordHeader::unpack(range.what).name.value);
    block.open = std::move(open);
    const LaneAccount& totals = account(scope);
    block.account = account_;
    thread_ = scope.segment.lane_facts(lane_).value_or(thread_);
    block.process = scope.process;
    block.lane = {index_, generation_};
    block.thread = thread_;
    block.last = reader_.position();
    block.first = encoder_ ? first_ : block.last;
    block.base_ticks = encoder_ ? base_ticks_ : scope.now_ticks;
    block.earliest_ticks = encoder_ ? earliest_ : ~0ull;
    block.records = records_;
    block.context = encoder_ ? block_context_ : context_;
    block.end_context = context_;
    told_ = {records_known_ ? records_base_ + delivered_ : LaneTally::kUnknown,
             dropped_,
             totals.outside,
             totals.lost,
             totals.first_lost_ticks,
             totals.last_lost_ticks};
    block.tally = told_;
    block.data = std::move(data_);
    data_.clear();
    encoder_.reset();
    records_ = 0;
    return block;
}

}  // namespace ringside::agent
