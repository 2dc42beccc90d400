// The part of MappedSegment that is about lanes: where they lie, what their words say, what is given back.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "agent/attach/mapped_segment.hpp"
#include "schema/lane_life.hpp"

namespace ringside::agent {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kLeastLaneCells = 2 * schema::kMaxRecordCells;
constexpr std::uint32_t kMostLaneCells = 1u << 26;

}  // namespace

std::optional<LaneView> MappedSegment::lane(std::uint32_t index) {
    if (index >= schema::max_lanes(layout_)) return std::nullopt;
    std::uint64_t offset = 0;
    std::uint32_t capacity = 0, rings = 0;
    if (!access([&] {
            auto* entry = at<schema::LaneEntry>(schema::kLaneTableOffset) + index;
            // SYNC(lane): the entry and the lane's header are filled; pairs with the shim's release.
            offset = entry->offset.load(std::memory_order_acquire);
            capacity = entry->capacity_cells.load(kRelaxed);
            rings = entry->ring_count.load(kRelaxed);
        }))
        return std::nullopt;
    if (offset == 0) return LaneView{};  // being made
    if (rings == 0 || layout_ == schema::kOldestSegmentLayout) rings = 1;
    const bool fits =
        offset % schema::kPageBytes == 0 && offset >= schema::lanes_offset(layout_) &&
        offset < bytes() && std::has_single_bit(capacity) && capacity >= kLeastLaneCells &&
        capacity <= kMostLaneCells && rings <= schema::kMostRings &&
        schema::kPageBytes + schema::ring_offset(capacity, rings) * schema::kCellBytes <=
            bytes() - offset;
    if (!fits) {
        ++violations_;
        return std::nullopt;
    }
    return LaneView{at<schema::LaneHeader>(offset),
                    at<const schema::Cell>(offset + schema::kPageBytes), capacity, rings};
}

std::optional<LaneFacts> MappedSegment::lane_facts(const LaneView& lane) {
    LaneFacts facts;
    if (!access([&] {
            facts.tid = static_cast<std::int32_t>(lane.header->tid.load(kRelaxed));
            for (std::uint32_t i = 0; i < schema::kThreadNameBytes / 8; ++i) {
                const std::uint64_t word = lane.header->thread_name[i].load(kRelaxed);
                std::memcpy(facts.thread_name.data() + i * 8, &word, 8);
            }
        }))
        return std::nullopt;
    return facts;
}

std::optional<LaneCounters> MappedSegment::lane_counters(const LaneView& lane) {
    LaneCounters counters;
    if (!access([&] {
            const schema::Drops drops = schema::load_drops(*lane.header);
            counters.dropped = drops.count;
            counters.first_drop_ticks = drops.first_ticks;
            counters.last_drop_ticks = drops.last_ticks;
            counters.records = lane.header->records.load(kRelaxed);
            counters.state = lane.header->state.load(kRelaxed);
        }))
        return std::nullopt;
    return counters;
}

std::optional<LaneContext> MappedSegment::lane_context(const LaneView& lane) {
    constexpr auto kAcquire = std::memory_order_acquire;
    constexpr auto kUnknown = static_cast<std::uint32_t>(schema::ContextState::kUnknown);
    constexpr std::uint32_t kLooks = 2;
    const schema::LaneHeader& header = *lane.header;
    LaneContext contexts[kLooks];
    std::uint32_t states[kLooks + 1] = {kUnknown, kUnknown, kUnknown};
    std::uint64_t committed[kLooks] = {0, 1};
    if (!access([&] {
            // Each new context is a record first, so that between two equal positions there is one change at most. Of one change the
            // words of both looks are the same only where the state between them says "unknown", or where it has not begun or is over.
            // SYNC(commit): pairs with the release in BasicRingWriter::commit.
            committed[0] = header.committed.load(kAcquire);
            // SYNC(context): each load is an acquire, so that the looks and the states around them stay in this order.
            states[0] = header.context_state.load(kAcquire);
            for (std::uint32_t i = 0; i < kLooks; ++i) {
                contexts[i].key = header.context_key.load(kAcquire);
                contexts[i].trace_hi = header.context_trace_hi.load(kAcquire);
                contexts[i].trace_lo = header.context_trace_lo.load(kAcquire);
                contexts[i].span = header.context_span.load(kAcquire);
                states[i + 1] = header.context_state.load(kAcquire);
            }
            committed[1] = header.committed.load(kAcquire);
        }))
        return std::nullopt;
    if (states[0] > kUnknown) {
        ++violations_;
        return std::nullopt;
    }
    LaneContext& context = contexts[1];
    const bool one = states[0] == states[1] && states[1] == states[2] &&
                     committed[0] == committed[1] && contexts[0].key == context.key &&
                     contexts[0].trace_hi == context.trace_hi &&
                     contexts[0].trace_lo == context.trace_lo && contexts[0].span == context.span;
    if (!one || states[0] == kUnknown)
        return LaneContext{schema::ContextState::kUnknown, 0, 0, 0, 0};
    context.state = static_cast<schema::ContextState>(states[0]);
    return context;
}

bool MappedSegment::open_stack(const LaneView& lane, std::vector<OpenRange>& out) {
    OpenRange copies[schema::kOpenStackDepth];
    std::uint32_t taken = 0;
    if (!access([&] {
            // An entry is rewritten only while the depth is at or below it, so a copy that was made half-way through a rewriting
            // either differs from the second copy or lies above the depth that is read between the two.
            // SYNC(open): each load is an acquire, so that the copies and the depth between them stay in this order.
            constexpr auto kAcquire = std::memory_order_acquire;
            const auto read = [&](std::uint32_t i) {
                const schema::OpenEntry& entry = lane.header->open[i];
                return OpenRange{entry.begin.load(kAcquire), entry.key.load(kAcquire),
                                 entry.argument.load(kAcquire), entry.what.load(kAcquire)};
            };
            std::uint32_t depth =
                std::min(lane.header->open_depth.load(kAcquire), schema::kOpenStackDepth);
            for (std::uint32_t i = 0; i < depth; ++i) copies[i] = read(i);
            depth = std::min(lane.header->open_depth.load(kAcquire), depth);
            for (std::uint32_t i = 0; i < depth; ++i) {
                if (!(copies[i] == read(i))) continue;
                // One that is being moved down, because a range below it has ended first, stands in two places for a moment.
                if (taken != 0 && copies[taken - 1] == copies[i]) continue;
                copies[taken++] = copies[i];
            }
        }))
        return false;
    out.insert(out.end(), copies, copies + taken);
    return true;
}

bool MappedSegment::recycle(const LaneView& lane, schema::RingReader& reader, std::uint32_t state) {
    take_back(lane, lane.ring_count);
    return access([&] { schema::recycle_lane(*lane.header, reader, state); });
}

void MappedSegment::take_back(const LaneView& lane, std::uint32_t end) {
    for (std::uint32_t ring = 1; ring < std::min(end, lane.ring_count); ++ring) {
        const std::uint64_t cells = schema::ring_cells(lane.capacity_cells, ring);
        std::uint64_t counted = 0;
        if (!access([&] { counted = lane.header->rings[ring].real_cells.exchange(0, kRelaxed); }))
            return;
        if (counted == 0) continue;
        const schema::Cell* start = lane.cells + schema::ring_offset(lane.capacity_cells, ring);
        if (::madvise(const_cast<schema::Cell*>(start), cells * schema::kCellBytes, MADV_REMOVE) !=
            0) {
            // Not a file system that gives memory back: it stays taken, and counted, for the next that grows.
            access([&] { lane.header->rings[ring].real_cells.store(counted, kRelaxed); });
            continue;
        }
        const std::uint64_t given = std::min(counted, cells) * schema::kCellBytes;
        taken_back_ += given;
        access([&] { header()->real_bytes.fetch_sub(given, kRelaxed); });
    }
}

}  // namespace ringside::agent
