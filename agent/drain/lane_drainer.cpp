#include "agent/drain/lane_drainer.hpp"

#include <algorithm>
#include <cstring>

namespace ringside::agent {
namespace {

using schema::RecordHeader;
using schema::RecordKind;

constexpr std::uint32_t kMostTorn = 3;
constexpr std::uint32_t kWords = schema::kCellWords;
/// Of an Operator: the name id of its input shapes in the low half.
constexpr std::uint32_t kShapesWord = offsetof(schema::OperatorRecord, shapes) / 8;
constexpr std::uint32_t kOperatorCells = schema::record_cells(RecordKind::kOperator);

bool shapes_known(const DrainScope& scope, const std::uint64_t* record) {
    const auto shapes = static_cast<std::uint32_t>(record[kShapesWord]);
    return shapes == schema::kNoName.value || scope.names.used(shapes);
}

}  // namespace

LaneDrainer::LaneDrainer(std::uint32_t index, const LaneView& lane, bool fresh,
                         MappedSegment& segment)
    : index_(index), lane_(lane) {
    std::uint64_t committed = 0;
    segment.access([&] {
        reader_ = schema::RingReader(lane_.header, lane_.room());
        committed = lane_.header->committed.load(std::memory_order_relaxed);
    });
    const auto counters = segment.lane_counters(lane_);
    if (!counters) return;
    generation_ = schema::lane_generation(counters->state);
    records_said_ = counters->records;
    // Nobody has taken from it yet: then nobody has counted its drops either.
    dropped_ = fresh || reader_.tail() == 0 ? 0 : counters->dropped;
    const bool drained = reader_.tail() == committed;
    records_known_ = reader_.tail() == 0 || drained;
    records_base_ = reader_.tail() == 0 ? 0 : counters->records;
    // With records between the tail and now, the context at the tail is no longer known.
    if (reader_.tail() != 0) context_.state = schema::ContextState::kUnknown;
    if (drained) context_ = segment.lane_context(lane_).value_or(context_);
}

bool LaneDrainer::has_unread(MappedSegment& segment) {
    bool unread = false;
    segment.access([&] { unread = reader_.poll().count != 0; });
    return unread && !quarantined_;
}

bool LaneDrainer::fetch(DrainScope& scope, Fetched& fetched) {
    DrainBuffers& buffers = scope.buffers;
    return scope.segment.access([&] {
        records_said_ = lane_.header->records.load(std::memory_order_relaxed);
        fetched.look = schema::look_at_lane(*lane_.header, reader_);
        if (fetched.look.span.corrupt) return;
        fetched.copied = std::min(fetched.look.span.count, DrainBuffers::kBatchCells);
        std::memcpy(static_cast<void*>(buffers.cells), fetched.look.span.cells,
                    std::size_t{fetched.copied} * schema::kCellBytes);
        fetched.torn = schema::changed_hands(*lane_.header, fetched.look);
    });
}

std::uint32_t LaneDrainer::drain(DrainScope& scope) {
    std::uint32_t taken = 0;
    std::uint32_t torn = 0;
    if (ending_) return 0;  // its thread has gone and all is taken
    const bool holds = scope.keeping && scope.range.start != TickRange{}.start;
    // One ring's worth: a producer that writes as fast as we read must not keep us from the other lanes.
    while (!quarantined_ && taken < reader_.capacity_cells() && data_.size() < scope.enough_bytes) {
        Fetched fetched;
        if (!fetch(scope, fetched) || fetched.look.span.corrupt) {
            quarantine(scope);
            break;
        }
        if (fetched.torn) {
            // Only we give a lane back: its thread changes once between two of our looks, or its words are not a shim's.
            if (++torn < kMostTorn) continue;
            quarantine(scope);
            break;
        }
        if (const auto now = schema::lane_generation(fetched.look.state); now != generation_) {
            seal(scope, false);
            generation_ = now;
            account_ = kNoAccount;
        }
        if (fetched.look.dropped != dropped_) note_drops(scope, fetched.look.dropped);
        if (fetched.copied == 0) {
            if (schema::lane_state(fetched.look.state) == schema::LaneState::kReleased)
                finish_generation(scope, fetched.look.state);
            break;
        }
        const std::uint32_t count =
            take(scope, fetched.copied, fetched.copied < fetched.look.span.count);
        reader_.take(count);
        taken += count;
        if (holds) continue;
        release_to(reader_.position(), scope.segment);
        if (scope.segment.broken()) quarantine(scope);
    }
    last_pass_ticks_ = scope.now_ticks;
    return taken;
}

std::uint64_t LaneDrainer::room_cells() const {
    constexpr std::uint64_t kTwiceDoubled = 4;
    const std::uint64_t largest = schema::ring_cells(lane_.capacity_cells, lane_.ring_count - 1);
    const std::uint64_t now = reader_.capacity_cells();
    return cramped_ ? now : std::min(kTwiceDoubled * now, std::max(now, largest));
}

LaneDrainer::Shape LaneDrainer::next_unit(const std::uint64_t* words, std::uint32_t count,
                                          Unit& unit) {
    unit.first = unit.record = words;
    unit.header = RecordHeader::unpack(words[0]);
    unit.cells = unit.header.cells;
    if (unit.cells == 0) return Shape::kCorrupt;
    if (unit.cells > count) return Shape::kCutByBatch;
    if (unit.header.kind == RecordKind::kPad) return Shape::kGap;
    if (unit.cells > schema::kMaxRecordCells) return Shape::kCorrupt;
    if (unit.header.kind != RecordKind::kNameInline) [[likely]]
        return Shape::kRecord;
    if (unit.cells == count) return Shape::kCutByBatch;
    unit.record = words + unit.cells * kWords;
    unit.header = RecordHeader::unpack(unit.record[0]);
    const bool named = unit.header.kind != RecordKind::kPad &&
                       unit.header.kind != RecordKind::kNameInline && unit.header.cells != 0 &&
                       unit.header.cells <= schema::kMaxRecordCells;
    if (!named) return Shape::kCorrupt;
    unit.cells += unit.header.cells;
    return unit.cells > count ? Shape::kCutByBatch : Shape::kRecord;
}

std::uint32_t LaneDrainer::take(DrainScope& scope, std::uint32_t count, bool more) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(scope.buffers.cells);
    const std::uint64_t position = reader_.position();
    std::uint8_t* out = scope.buffers.encoded;
    std::uint32_t at = 0;
    std::uint64_t outside = 0, damaged = 0;
    const bool plain = scope.keeping && !scope.iterations.watches_ranges();
    while (at < count) {
        if (encoder_ && plain && position + at == last_) [[likely]] {
            at += keep_plain(scope, words + std::size_t{at} * kWords, count - at, out);
            if (at == count) break;
        }
        Unit unit;
        const Shape shape = next_unit(words + std::size_t{at} * kWords, count - at, unit);
        if (shape == Shape::kCutByBatch && more && at != 0) break;
        if (shape == Shape::kCorrupt || shape == Shape::kCutByBatch) [[unlikely]] {
            quarantine(scope);
            break;
        }
        if (shape == Shape::kRecord) {
            ++delivered_;
            if (unit.header.cells < schema::record_cells(unit.header.kind)) [[unlikely]] {
                ++damaged;
            } else if (scope.keeping && scope.range.contains(unit.record[1])) [[likely]] {
                keep(scope, unit, position + at, out);
            } else {
                ++outside;
            }
            if (unit.header.kind == RecordKind::kContext && unit.header.cells >= 2)
                follow_context(unit.record);
        }
        at += unit.cells;
    }
    if (out != scope.buffers.encoded) data_.insert(data_.end(), scope.buffers.encoded, out);
    for (std::uint64_t i = 0; i < damaged; ++i) scope.segment.count_violation();
    if (scope.keeping && outside + damaged != 0) {
        account(scope).outside += outside;
        account(scope).lose(damaged, last_pass_ticks_, scope.now_ticks);
    }
    return at;
}

/// The hot path: ranges and operators of the capture, with names that were used before, one right behind the other.
/// @return cells taken, up to the first record that is anything else
std::uint32_t LaneDrainer::keep_plain(const DrainScope& scope, const std::uint64_t* words,
                                      std::uint32_t count, std::uint8_t*& out) {
    constexpr auto kShape = [](RecordKind kind) {
        return static_cast<std::uint32_t>(kind) | schema::record_cells(kind) << 16;
    };
    const TickRange range = scope.range;
    std::uint8_t* end = out;
    std::uint32_t at = 0, records = 0;
    std::uint64_t earliest = earliest_;
    schema::BlockEncoder& encoder = *encoder_;
    while (at < count) {
        const std::uint64_t* record = words + std::size_t{at} * kWords;
        const auto shape = static_cast<std::uint32_t>(record[0] & 0xffffff);
        const std::uint32_t cells = shape >> 16;
        if ((shape != kShape(RecordKind::kRange) && shape != kShape(RecordKind::kOperator)) ||
            cells > count - at || !range.contains(record[1]) ||
            !scope.names.used(static_cast<std::uint32_t>(record[0] >> 32)) ||
            (cells == kOperatorCells && !shapes_known(scope, record)))
            break;
        end = encoder.record(record, end);
        earliest = std::min(earliest, record[1]);
        at += cells;
        ++records;
    }
    out = end;
    earliest_ = earliest;
    last_ += at;
    records_ += records;
    delivered_ += records;
    return at;
}

void LaneDrainer::keep(DrainScope& scope, const Unit& unit, std::uint64_t position,
                       std::uint8_t*& out) {
    if (!encoder_) [[unlikely]] {
        static_cast<void>(account(scope));
        data_ = scope.buffers.spares.take();
        block_context_ = context_;
        base_ticks_ = unit.record[1];
        encoder_ = std::make_unique<schema::BlockEncoder>(base_ticks_);
        earliest_ = ~0ull;
        first_ = last_ = position;
    }
    earliest_ = std::min(earliest_, unit.record[1]);
    if (position != last_) out = schema::BlockEncoder::pad(position - last_, out);
    if (unit.record != unit.first) [[unlikely]]
        out = encoder_->record(unit.first, out);
    out = encoder_->record(unit.record, out);
    last_ = position + unit.cells;
    ++records_;
    scope.names.use(scope.segment, unit.header.name.value);
    if (unit.header.kind == RecordKind::kOperator)
        scope.names.use(scope.segment, static_cast<std::uint32_t>(unit.record[kShapesWord]));
    if (static_cast<std::uint16_t>(unit.header.kind) >
        static_cast<std::uint16_t>(RecordKind::kOperator)) [[unlikely]]
        note(scope, unit, position + (unit.cells - unit.header.cells));
    if (scope.iterations.watches()) [[unlikely]]
        note_iteration(scope, unit);
}

void LaneDrainer::note_iteration(DrainScope& scope, const Unit& unit) {
    scope.iterations.take(unit.record, [&]() -> std::string_view {
        if (unit.header.name != schema::kInlineName) return scope.names.text(unit.header.name);
        if (unit.first == unit.record) return {};
        const std::uint64_t room =
            (unit.cells - unit.header.cells) * std::uint64_t{schema::kCellBytes} - 24;
        return {reinterpret_cast<const char*>(unit.first + 3), std::min(unit.first[1], room)};
    });
}

void LaneDrainer::note(DrainScope& scope, const Unit& unit, std::uint64_t position) {
    if (unit.header.kind == RecordKind::kRpcBegin) {
        const RawHalf half = parse_rpc_begin(unit.record, {index_, generation_}, position);
        schema::RpcBeginRecord record;
        std::memcpy(&record, unit.record, sizeof record);
        scope.names.use(scope.segment, record.peer);
        scope.names.use(scope.segment, record.self);
        scope.names.use(scope.segment, record.module);
        scope.halves.note_begin(half);
    } else if (unit.header.kind == RecordKind::kRpcEnd) {
        scope.halves.note_end(unit.record);
    } else if (unit.header.kind == RecordKind::kIteration) {
        scope.pace.take(unit.header.name, unit.record[1], unit.record[2]);
    } else if (schema::record_cells(unit.header.kind) == 0) {
        ++scope.unknown_records;
    }
}

void LaneDrainer::follow_context(const std::uint64_t* words) {
    schema::ContextRecord record;
    std::memcpy(&record, words, sizeof record);
    const auto detail = schema::record_detail(RecordHeader::unpack(record.header).flags);
    context_ = {};
    if ((detail & schema::kContextOn) == 0) return;
    context_ = {schema::ContextState::kServing, record.key, record.trace_hi, record.trace_lo,
                record.span};
}

LaneAccount& LaneDrainer::account(DrainScope& scope) {
    if (account_ == kNoAccount) {
        thread_ = scope.segment.lane_facts(lane_).value_or(thread_);
        LaneAccount fresh;
        fresh.lane = {index_, generation_};
        fresh.tid = thread_.tid;
        account_ = scope.accounts.size();
        told_ = {};
        scope.accounts.push_back(fresh);
    }
    return scope.accounts[account_];
}

void LaneDrainer::note_drops(DrainScope& scope, std::uint64_t dropped) {
    cramped_ = true;
    const auto counters = scope.segment.lane_counters(lane_);
    if (dropped < dropped_ || dropped - dropped_ > kMostDrops) {
        scope.segment.count_violation();
    } else if (scope.keeping && counters) {
        // The lane keeps the ticks of its first drop ever; of a later one we know that it came after the pass before, and not before the
        // last one that we have seen: a pass may see drops twice.
        const std::uint64_t first = dropped_ == 0 ? counters->first_drop_ticks
                                                  : std::max(last_pass_ticks_, last_drop_ticks_);
        const std::uint64_t last = counters->last_drop_ticks;
        last_drop_ticks_ = last;
        // Before the instant and after the stop nothing would have been kept either. What may lie on both sides of one is lost.
        if (last < scope.range.start || first > scope.range.stop) {
            account(scope).outside += dropped - dropped_;
        } else {
            account(scope).lose(dropped - dropped_, first, last);
        }
    }
    dropped_ = dropped;
}

void LaneDrainer::quarantine(DrainScope& scope) {
    quarantined_ = true;
    scope.segment.count_violation();
    const auto counters = scope.segment.lane_counters(lane_);
    if (!scope.keeping || !records_known_) return;
    // What it says it wrote and we have not seen: no more than the ring holds, whatever the word says. Where its file has gone bad, what
    // it said last.
    const std::uint64_t said = (counters ? counters->records : records_said_) - records_base_;
    const std::uint64_t missing = said > delivered_ ? said - delivered_ : 0;
    account(scope).lose(std::min<std::uint64_t>(missing, lane_.all_cells()), last_pass_ticks_,
                        scope.now_ticks);
}

}  // namespace ringside::agent
