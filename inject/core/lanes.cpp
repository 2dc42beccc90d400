#include "inject/core/lanes.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/headroom.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/thread_names.hpp"
#include "schema/lane_life.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ringside::inject {

using schema::LaneEntry;
using schema::LaneHeader;
using schema::LaneState;

namespace {

/// Some milliseconds of any clock.
constexpr std::uint64_t kRefusalTicks = 1u << 25;

/// Private halves of the lanes, one a lane: reserved in one piece at the first lane, touched as lanes are used.
constinit std::atomic<ThreadLane*> lane_pool{nullptr};

ThreadLane* pool() {
    // SYNC(pool): pairs with the release below.
    ThreadLane* lanes = lane_pool.load(std::memory_order_acquire);
    if (lanes != nullptr) return lanes;
    constexpr std::size_t kBytes = schema::kMaxLanes * sizeof(ThreadLane);
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* mine = static_cast<ThreadLane*>(memory);
    // SYNC(pool): pairs with the acquires here.
    if (lane_pool.compare_exchange_strong(lanes, mine, std::memory_order_acq_rel)) return mine;
    munmap(memory, kBytes);
    return lanes;
}

LaneEntry* lane_table() {
    return reinterpret_cast<LaneEntry*>(g_process.base + schema::kLaneTableOffset);
}

std::uint32_t lane_capacity() {
    const std::uint32_t kib = g_process.control->first_lane_kib.load(std::memory_order_relaxed);
    std::uint64_t wanted = kib == 0 ? schema::kDefaultFirstLaneKib : kib;
    wanted = wanted > 65536 ? 65536 : wanted;
    std::uint32_t cells = 128;
    while (cells < wanted * 1024 / schema::kCellBytes) cells *= 2;
    return cells;
}

std::uint64_t lane_budget() {
    const std::uint64_t budget =
        g_process.control->process_budget_bytes.load(std::memory_order_relaxed);
    const std::uint64_t most = g_process.header->size_bytes - schema::kLanesOffset;
    return budget != 0 && budget < most ? budget : most;
}

/// The lane table and the names: before the first lane, of whichever thread. Populating twice does no harm.
bool populate_tables() {
    return names_ready() ||
           (populate_within_limits(g_process.base + schema::kLaneTableOffset,
                                   schema::kLanesOffset - schema::kLaneTableOffset) &&
            populate_names(g_process.base, 1));
}

void store_name(LaneHeader& lane, const char* name) {
    for (std::uint32_t i = 0; i < schema::kThreadNameBytes / 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, name + 8 * i, 8);
        lane.thread_name[i].store(word, std::memory_order_relaxed);
    }
}

void describe_thread(LaneHeader& lane) {
    const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    lane.tid.store(tid, std::memory_order_relaxed);
    char name[schema::kThreadNameBytes] = {};
    if (!given_thread_name(tid, name)) prctl(PR_GET_NAME, name);
    store_name(lane, name);
}

ThreadLane* use_lane(std::uint32_t index, LaneHeader* header, std::uint32_t capacity,
                     ThreadLane::Lane kind) {
    ThreadLane& lane = pool()[index];
    lane.open(header, reinterpret_cast<schema::Cell*>(header + 1), capacity, kind);
    return &lane;
}

ThreadLane* reuse_lane() {
    const std::uint32_t count = g_process.header->lanes_in_use.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count && i < schema::kMaxLanes; ++i) {
        // SYNC(lane): pairs with the release in new_lane().
        const std::uint64_t offset = lane_table()[i].offset.load(std::memory_order_acquire);
        if (offset == 0) continue;
        auto* header = reinterpret_cast<LaneHeader*>(g_process.base + offset);
        if (!schema::claim_lane(*header)) continue;
        describe_thread(*header);
        return use_lane(i, header, header->capacity_cells.load(std::memory_order_relaxed),
                        ThreadLane::Lane::kReused);
    }
    return nullptr;
}

/// @return an offset from the segment's start, 0 where the budget is used up
std::uint64_t take_room(std::uint64_t bytes) {
    std::atomic<std::uint64_t>& used = g_process.header->lane_bytes_used;
    const std::uint64_t budget = lane_budget();
    std::uint64_t offset = used.load(std::memory_order_relaxed);
    do {
        if (offset > budget || bytes > budget - offset) return 0;
    } while (!used.compare_exchange_weak(offset, offset + bytes, std::memory_order_relaxed));
    return schema::kLanesOffset + offset;
}

void give_room_back(std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t end = offset - schema::kLanesOffset + bytes;
    // Where another thread has taken the room behind it, it stays unused.
    g_process.header->lane_bytes_used.compare_exchange_strong(end, end - bytes,
                                                              std::memory_order_relaxed);
}

ThreadLane* new_lane() {
    const std::uint32_t capacity = lane_capacity();
    const std::uint64_t bytes = schema::kPageBytes + std::uint64_t{capacity} * schema::kCellBytes;
    const std::uint64_t offset = take_room(bytes);
    if (offset == 0) return nullptr;
    std::atomic<std::uint32_t>& lanes = g_process.header->lanes_in_use;
    std::uint32_t index = lanes.load(std::memory_order_relaxed);
    const std::uint64_t first_part =
        schema::kPageBytes + std::uint64_t{ThreadLane::first_cells(capacity)} * schema::kCellBytes;
    if (index >= schema::kMaxLanes ||
        !populate_within_limits(g_process.base + offset, first_part)) {
        give_room_back(offset, bytes);
        return nullptr;
    }
    auto* header = reinterpret_cast<LaneHeader*>(g_process.base + offset);
    header->capacity_cells.store(capacity, std::memory_order_relaxed);
    header->state.store(schema::pack_lane_state(LaneState::kUsed, 1), std::memory_order_relaxed);
    describe_thread(*header);
    do {
        if (index >= schema::kMaxLanes) {
            give_room_back(offset, bytes);
            return nullptr;
        }
    } while (!lanes.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
    ThreadLane* lane = use_lane(index, header, capacity, ThreadLane::Lane::kNew);
    LaneEntry& entry = lane_table()[index];
    entry.capacity_cells.store(capacity, std::memory_order_relaxed);
    // SYNC(lane): the header is whole; pairs with the acquires in reuse_lane() and in the agent.
    entry.offset.store(offset, std::memory_order_release);
    return lane;
}

}  // namespace

bool populate(void* start, std::size_t bytes) {
    return madvise(start, bytes, MADV_POPULATE_WRITE) == 0;
}

bool populate_within_limits(void* start, std::size_t bytes) {
    static constinit std::atomic<std::uint64_t> refused_until{0};
    const std::uint64_t now = schema::read_ticks(g_process.ticks_source).value;
    if (now < refused_until.load(std::memory_order_relaxed)) return false;
    if (file_system_allows(segment_root(), bytes) && cgroups_allow(bytes) && populate(start, bytes))
        return true;
    refused_until.store(now + kRefusalTicks, std::memory_order_relaxed);
    return false;
}

ThreadLane* acquire_lane() {
    if (!has_segment() || pool() == nullptr || !populate_tables()) return nullptr;
    ThreadLane* lane = reuse_lane();
    return lane != nullptr ? lane : new_lane();
}

void rename_lane(std::uint32_t tid, const char* name) {
    if (!has_segment() || !names_ready()) return;
    const std::uint32_t count = g_process.header->lanes_in_use.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count && i < schema::kMaxLanes; ++i) {
        // SYNC(lane): pairs with the release in new_lane().
        const std::uint64_t offset = lane_table()[i].offset.load(std::memory_order_acquire);
        if (offset == 0) continue;
        auto* header = reinterpret_cast<LaneHeader*>(g_process.base + offset);
        const bool used =
            schema::lane_state(header->state.load(std::memory_order_relaxed)) == LaneState::kUsed;
        if (used && header->tid.load(std::memory_order_relaxed) == tid) store_name(*header, name);
    }
}

void release_lane(ThreadLane& lane) {
    schema::release_lane(*lane.header());
}

}  // namespace ringside::inject
