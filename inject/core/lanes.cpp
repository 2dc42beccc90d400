#include "inject/core/lanes.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/budget.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/thread_names.hpp"
#include "schema/lane_life.hpp"

namespace ringside::inject {

using schema::LaneEntry;
using schema::LaneHeader;
using schema::LaneState;

namespace {

using InlineTexts = ThreadLane::InlineTexts;

/// One a lane: reserved in one piece at the first lane, touched where names have no id.
constinit std::atomic<InlineTexts*> text_pool{nullptr};

InlineTexts* pool() {
    // SYNC(pool): pairs with the release below.
    InlineTexts* texts = text_pool.load(std::memory_order_acquire);
    if (texts != nullptr) return texts;
    constexpr std::size_t kBytes = schema::kMaxLanes * sizeof(InlineTexts);
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* mine = static_cast<InlineTexts*>(memory);
    // SYNC(pool): pairs with the acquires here.
    if (text_pool.compare_exchange_strong(texts, mine, std::memory_order_acq_rel)) return mine;
    munmap(memory, kBytes);
    return texts;
}

constexpr std::uint32_t kLeastCells = 128;
constexpr std::uint64_t kMostKib = 65536;

/// How large a lane is at first, and how often it may double.
struct LaneSize {
    std::uint32_t first_cells;
    std::uint32_t ring_count;

    std::uint64_t bytes() const {
        return schema::kPageBytes +
               schema::ring_offset(first_cells, ring_count) * schema::kCellBytes;
    }
};

/// A power of two of cells, at least `kib`.
std::uint32_t cells_of(std::uint32_t kib) {
    const std::uint64_t wanted = kib > kMostKib ? kMostKib : kib;
    std::uint32_t cells = kLeastCells;
    while (cells < wanted * 1024 / schema::kCellBytes) cells *= 2;
    return cells;
}

LaneSize lane_size() {
    const std::uint32_t first = g_process.control->first_lane_kib.load(std::memory_order_relaxed);
    const std::uint32_t most = g_process.control->most_lane_kib.load(std::memory_order_relaxed);
    const std::uint64_t most_cells = cells_of(most == 0 ? schema::kDefaultMostLaneKib : most);
    // In a small segment no lane may keep the room of hundreds from the others.
    const std::uint64_t most_bytes = g_process.header->size_bytes / 256;
    LaneSize size{cells_of(first == 0 ? schema::kDefaultFirstLaneKib : first), 1};
    for (LaneSize next = size; next.ring_count < schema::kMostRings; size = next) {
        ++next.ring_count;
        if (schema::ring_cells(next.first_cells, next.ring_count - 1) > most_cells ||
            next.bytes() > most_bytes)
            break;
    }
    return size;
}

LaneEntry& entry_of(std::uint32_t index) {
    return reinterpret_cast<LaneEntry*>(segment_base() + schema::kLaneTableOffset)[index];
}

/// The page of the lane table that an entry lies on. Populating twice does no harm.
bool populate_entry(std::uint32_t index) {
    constexpr std::uint64_t kMask = ~std::uint64_t{schema::kPageBytes - 1};
    const std::uint64_t offset = schema::kLaneTableOffset + index * sizeof(LaneEntry);
    return populate(segment_base() + (offset & kMask), schema::kPageBytes);
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

void use_lane(ThreadLane& lane, std::uint32_t index, LaneHeader* header, const LaneSize& size) {
    lane.open(header,
              {reinterpret_cast<schema::Cell*>(header + 1), size.first_cells, size.ring_count,
               header->rings},
              &pool()[index]);
}

bool reuse_lane(ThreadLane& lane) {
    const std::uint32_t count = g_process.header->lanes_in_use.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count && i < schema::kMaxLanes; ++i) {
        // SYNC(lane): pairs with the release in new_lane().
        const std::uint64_t offset = entry_of(i).offset.load(std::memory_order_acquire);
        if (offset == 0) continue;
        auto* header = reinterpret_cast<LaneHeader*>(segment_base() + offset);
        if (!schema::claim_lane(*header)) continue;
        describe_thread(*header);
        use_lane(lane, i, header,
                 {entry_of(i).capacity_cells.load(std::memory_order_relaxed),
                  entry_of(i).ring_count.load(std::memory_order_relaxed)});
        return true;
    }
    return false;
}

/// @return an offset from the segment's start, 0 where it is full
std::uint64_t take_room(std::uint64_t bytes) {
    std::atomic<std::uint64_t>& used = g_process.header->lane_bytes_used;
    const std::uint64_t most = g_process.header->size_bytes - schema::kLanesOffset;
    std::uint64_t offset = used.load(std::memory_order_relaxed);
    do {
        if (offset > most || bytes > most - offset) return 0;
    } while (!used.compare_exchange_weak(offset, offset + bytes, std::memory_order_relaxed));
    return schema::kLanesOffset + offset;
}

void give_room_back(std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t end = offset - schema::kLanesOffset + bytes;
    // Where another thread has taken the room behind it, it stays unused.
    g_process.header->lane_bytes_used.compare_exchange_strong(end, end - bytes,
                                                              std::memory_order_relaxed);
}

/// Makes the first ring real, and takes the table's next entry.
/// @return the entry's index; kMaxLanes: there is no memory, or no entry
std::uint32_t take_entry(LaneHeader* header, const LaneSize& size) {
    const std::uint64_t first_bytes = std::uint64_t{size.first_cells} * schema::kCellBytes;
    if (!populate_within_limits(header, schema::kPageBytes + first_bytes)) return schema::kMaxLanes;
    header->capacity_cells.store(size.first_cells, std::memory_order_relaxed);
    header->rings[0].real_cells.store(size.first_cells, std::memory_order_relaxed);
    header->state.store(schema::pack_lane_state(LaneState::kUsed, 1), std::memory_order_relaxed);
    describe_thread(*header);
    std::atomic<std::uint32_t>& lanes = g_process.header->lanes_in_use;
    std::uint32_t index = lanes.load(std::memory_order_relaxed);
    do {
        // Before anybody looks at the entry: on a full tmpfs a look at a page that is not there is a SIGBUS.
        if (index >= schema::kMaxLanes || !populate_entry(index)) return schema::kMaxLanes;
    } while (!lanes.compare_exchange_weak(index, index + 1, std::memory_order_acq_rel));
    return index;
}

bool new_lane(ThreadLane& lane) {
    if (g_process.header->lanes_in_use.load(std::memory_order_relaxed) >= schema::kMaxLanes)
        return false;
    const LaneSize size = lane_size();
    const std::uint64_t offset = take_room(size.bytes());
    if (offset == 0) return false;
    auto* header = reinterpret_cast<LaneHeader*>(segment_base() + offset);
    const std::uint32_t index = take_entry(header, size);
    if (index == schema::kMaxLanes) {
        give_room_back(offset, size.bytes());
        return false;
    }
    use_lane(lane, index, header, size);
    LaneEntry& entry = entry_of(index);
    entry.capacity_cells.store(size.first_cells, std::memory_order_relaxed);
    entry.ring_count.store(size.ring_count, std::memory_order_relaxed);
    // SYNC(lane): the header is whole; pairs with the acquires in reuse_lane() and in the agent.
    entry.offset.store(offset, std::memory_order_release);
    return true;
}

}  // namespace

bool acquire_lane(ThreadLane& lane) {
    if (!has_segment() || pool() == nullptr || !map_whole_segment() || !make_names_ready())
        return false;
    return reuse_lane(lane) || new_lane(lane);
}

void rename_lane(std::uint32_t tid, const char* name) {
    if (!has_segment() || !names_ready()) return;
    const std::uint32_t count = g_process.header->lanes_in_use.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count && i < schema::kMaxLanes; ++i) {
        // SYNC(lane): pairs with the release in new_lane().
        const std::uint64_t offset = entry_of(i).offset.load(std::memory_order_acquire);
        if (offset == 0) continue;
        auto* header = reinterpret_cast<LaneHeader*>(segment_base() + offset);
        const bool used =
            schema::lane_state(header->state.load(std::memory_order_relaxed)) == LaneState::kUsed;
        if (used && header->tid.load(std::memory_order_relaxed) == tid) store_name(*header, name);
    }
}

void release_lane(ThreadLane& lane) {
    LaneHeader& header = *lane.header();
    lane = {};
    schema::release_lane(header);
}

}  // namespace ringside::inject
