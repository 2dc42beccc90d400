#include "tests/fuzz/forged_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "agent/attach/mapped_segment.hpp"
#include "schema/block_codec.hpp"

namespace ringside::tests::fuzz {
namespace {

using schema::RecordHeader;
using schema::RecordKind;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::abort();
}

void must(bool done, const char* what) {
    if (!done) fail(what);
}

constexpr RecordKind kHonestKinds[] = {
    RecordKind::kRange,     RecordKind::kOperator,  RecordKind::kAsyncBegin, RecordKind::kAsyncEnd,
    RecordKind::kRpcBegin,  RecordKind::kRpcEnd,    RecordKind::kContext,    RecordKind::kMark,
    RecordKind::kIteration, RecordKind::kNameInline};

}  // namespace

ForgedSegment::ForgedSegment() {
    const char* root = std::getenv("TMPDIR");
    path_ = std::string(root != nullptr ? root : "/dev/shm") + "/ringside-fuzz-XXXXXX";
    must(::mkdtemp(path_.data()) != nullptr, "make a directory for the segment");
    directory_ = agent::FileHandle(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    file_ = agent::FileHandle(::openat(directory_.get(), agent::segment_name(kForgedId).c_str(),
                                       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    must(file_ && ::ftruncate(file_.get(), kFileBytes) == 0, "make the segment's file");
    void* base = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    must(base != MAP_FAILED, "map the segment's file");
    base_ = static_cast<std::byte*>(base);
    file_bytes_ = kFileBytes;
}

ForgedSegment::~ForgedSegment() {
    ::munmap(base_, kFileBytes);
    ::unlinkat(directory_.get(), agent::segment_name(kForgedId).c_str(), 0);
    ::rmdir(path_.c_str());
}

/// Zeros, wherever anybody has written.
void ForgedSegment::clear() {
    if (file_bytes_ != kFileBytes || touched_by_agent_anywhere_) {
        must(::ftruncate(file_.get(), 0) == 0 && ::ftruncate(file_.get(), kFileBytes) == 0,
             "make the segment's file anew");
        file_bytes_ = kFileBytes;
    } else {
        for (std::size_t page = 0; page < touched_.size(); ++page) {
            if (touched_[page])
                std::memset(base_ + page * schema::kPageBytes, 0, schema::kPageBytes);
        }
    }
    touched_.reset();
    touched_by_agent_anywhere_ = false;
}

void ForgedSegment::reset(const Script& script) {
    clear();
    book_ = {};
    honest_ = whole_ = true;
    clock_ = 100;
    names_ = name_bytes_ = 0;
    lanes_ = 1 + script.head(0) % kLanes;
    lay_out_header();
    const std::uint8_t flags = script.head(2);
    std::uint64_t position = (flags & kLatePositions) != 0 ? 1000003 : 0;
    if ((flags & kLastPositions) != 0) position = ~0ull - 40;
    for (std::uint32_t i = 0; i < lanes_; ++i)
        lay_out_lane(i, 16u << (script.head(1) >> 2 * i & 3), position);
    honest_ = (flags & kLastPositions) == 0;
    for (const std::uint64_t letters : {1, 4, 9}) name({Order::kName, 0, 0, letters});
}

void ForgedSegment::lay_out_header() {
    auto* header = at<schema::SegmentHeader>(0);
    header->magic = schema::kSegmentMagic;
    header->layout = schema::kSegmentLayout;
    header->mark = schema::kMachineMark;
    header->pid = static_cast<std::int32_t>(kForgedId.pid);
    header->pid_namespace = kForgedId.pid_namespace;
    header->start_ticks = kForgedId.start_ticks;
    header->size_bytes = kFileBytes;
    header->rank = 3;
    header->worker_id.store(-1);
    header->worker_name.store(1);
    std::memcpy(header->executable, "/usr/bin/forged", 16);
    std::memcpy(header->command_line, "forged\0--option\0", 16);
    auto& source = header->sources[static_cast<std::uint32_t>(schema::SourceId::kTorch)];
    source.level.store(static_cast<std::uint32_t>(schema::SourceLevel::kFull));
    header->lanes_in_use.store(lanes_);
    header->state.store(static_cast<std::uint32_t>(schema::SegmentState::kReady));
}

void ForgedSegment::lay_out_lane(std::uint32_t index, std::uint32_t capacity,
                                 std::uint64_t position) {
    // As far apart as the largest needs: the others' ends are then followed by zeros.
    constexpr std::uint64_t kStride = 3 * schema::kPageBytes;
    LaneBook& book = book_[index];
    book.offset = schema::kLanesOffset + index * kStride;
    book.capacity = capacity;
    schema::LaneHeader* lane = lane_header(index);
    lane->capacity_cells.store(capacity);
    lane->tid.store(1000 + index);
    lane->state.store(schema::pack_lane_state(schema::LaneState::kUsed, 1));
    lane->committed.store(position);
    lane->tail.store(position);
    auto* entry =
        at<schema::LaneEntry>(schema::kLaneTableOffset + index * sizeof(schema::LaneEntry));
    entry->capacity_cells.store(capacity);
    entry->offset.store(book.offset);
}

void ForgedSegment::act(const Step& step) {
    const std::uint32_t lane = step.where % lanes_;
    switch (step.order) {
        case Order::kRecord:
            return record(step);
        case Order::kOpen:
            return open_range(step);
        case Order::kName:
            return name(step);
        case Order::kThread:
            return thread(step);
        case Order::kDrop:
            return drop(lane, 1 + step.value % 16);
        case Order::kCells:
            return cells(step);
        case Order::kCommit:
            book_[lane].honest = false;
            if (auto* header = lane_header(lane)) {
                const bool near = step.index != 0;
                header->committed.store(
                    near ? header->committed.load() +
                               static_cast<std::uint64_t>(static_cast<std::int16_t>(step.index))
                         : step.value);
            }
            return;
        case Order::kWord:
            return word(step);
        case Order::kTruncate:
            return truncate(step);
        default:
            return;
    }
}

void ForgedSegment::place(std::uint32_t lane, std::uint64_t position, const schema::Cell& cell) {
    const LaneBook& book = book_[lane];
    const std::uint64_t offset = (position & (book.capacity - 1)) * schema::kCellBytes;
    if (auto* to = at<schema::Cell>(book.offset + schema::kPageBytes + offset)) *to = cell;
}

/// The lane's header, while a thread has the lane; else null: an honest process writes nothing then.
schema::LaneHeader* ForgedSegment::used_lane(std::uint32_t lane) {
    auto* header = lane_header(lane);
    const bool used =
        header != nullptr && schema::lane_state(header->state.load()) == schema::LaneState::kUsed;
    return used ? header : nullptr;
}

void ForgedSegment::drop(std::uint32_t lane, std::uint64_t records) {
    auto* header = used_lane(lane);
    if (header == nullptr) return;
    if (header->dropped.load() == 0) header->first_drop_ticks.store(tick());
    header->last_drop_ticks.store(tick());
    header->dropped.store(header->dropped.load() + records);
    book_[lane].written += records;
    book_[lane].dropped += records;
}

/// As schema::RingWriter does it, without a private copy of the tail.
void ForgedSegment::put_honestly(std::uint32_t lane, const schema::Cell* cells,
                                 std::uint32_t count) {
    auto* header = used_lane(lane);
    if (header == nullptr) return;
    const std::uint32_t capacity = book_[lane].capacity;
    const std::uint64_t committed = header->committed.load();
    const std::uint64_t used = committed - header->tail.load();
    const std::uint64_t to_end = capacity - (committed & (capacity - 1));
    const std::uint64_t gap = count > to_end ? to_end : 0;
    if (used + gap + count > capacity) return drop(lane, 1);
    const schema::Cell pad{
        {RecordHeader{RecordKind::kPad, static_cast<std::uint8_t>(gap), 0, {}}.pack(), 0, 0, 0}};
    if (gap != 0) place(lane, committed, pad);
    for (std::uint32_t i = 0; i < count; ++i) place(lane, committed + gap + i, cells[i]);
    header->records.store(header->records.load() + 1);
    header->committed.store(committed + gap + count);
    ++book_[lane].written;
}

/// index: kind (bits 0-3), flags (8-15); value: name (0-7), another (8-15), key (16-23), how long it takes (24-31), words (32-63).
void ForgedSegment::record(const Step& step) {
    const std::uint32_t lane = step.where % lanes_;
    RecordKind kind = kHonestKinds[step.index % std::size(kHonestKinds)];
    const bool named_inline = kind == RecordKind::kNameInline;
    if (named_inline) kind = RecordKind::kRange;
    const auto byte = [&](int i) { return step.value >> 8 * i & 0xff; };
    schema::Cell cells[5] = {};
    std::uint32_t count = 0;
    if (named_inline) {
        const std::uint8_t name_cells = 1 + byte(0) % 2;
        cells[0].words[0] = RecordHeader{RecordKind::kNameInline, name_cells, 0, {}}.pack();
        cells[0].words[1] = byte(1) % 8;
        cells[0].words[3] = 0x6867666564636261;
        count = name_cells;
    }
    const std::uint32_t usual = schema::record_cells(kind);
    std::uint64_t* words = cells[count].words;
    const auto name =
        named_inline ? schema::kInlineName.value : static_cast<std::uint32_t>(byte(0) % 6);
    words[0] = RecordHeader{
        kind,
        static_cast<std::uint8_t>(usual),
        static_cast<std::uint8_t>(step.index >> 8),
        {name}}.pack();
    words[1] = tick();
    words[2] = schema::record_has_end(kind) ? words[1] + byte(3) : byte(2);
    words[3] = step.value >> 32;
    for (std::uint32_t i = 4; i < usual * schema::kCellWords; ++i)
        words[i] = step.value >> (i * 5 % 32) & (i % 2 == 0 ? 0xff : 0x300000003ull);
    put_honestly(lane, cells, count + usual);
}

void ForgedSegment::open_range(const Step& step) {
    auto* header = used_lane(step.where % lanes_);
    if (header == nullptr) return;
    const std::uint32_t depth = header->open_depth.load();
    if (step.index % 3 == 0) {
        if (depth != 0) header->open_depth.store(depth - 1);
        return;
    }
    if (depth < schema::kOpenStackDepth) {
        schema::OpenEntry& entry = header->open[depth];
        entry.begin.store(tick());
        entry.key.store(step.value & 0xff);
        entry.argument.store(step.value >> 8);
        entry.what.store(RecordHeader{RecordKind::kRange, 1, 0x10, {1 + step.index % 5u}}.pack());
    }
    header->open_depth.store(depth + 1);
}

void ForgedSegment::name(const Step& step) {
    if (step.where % 4 == 3) {
        const std::uint64_t set = step.index % 8;
        if (auto* entry = at<schema::AttributeEntry>(schema::kAttributesOffset +
                                                     set * sizeof(schema::AttributeEntry))) {
            entry->domain.store(static_cast<std::uint32_t>(step.value % 8));
            entry->category.store(static_cast<std::uint32_t>(step.value >> 8 & 7));
            entry->payload.store(static_cast<std::uint16_t>(step.value >> 16 & 3));
            entry->state.store(static_cast<std::uint16_t>(schema::NameState::kReady));
        }
        return;
    }
    const auto length = static_cast<std::uint32_t>(step.value % 64);
    auto* entry = at<schema::NameEntry>(schema::kNamesOffset + names_ * sizeof(schema::NameEntry));
    if (entry == nullptr || names_ == 200) return;
    for (std::uint32_t i = 0; i < length; ++i) {
        if (auto* letter = at<char>(schema::kNameBytesOffset + name_bytes_ + i))
            *letter = static_cast<char>('a' + i % 26);
    }
    entry->offset.store(name_bytes_);
    entry->length.store(static_cast<std::uint16_t>(length));
    entry->attribute.store(step.index % 9);
    entry->state.store(static_cast<std::uint16_t>(schema::NameState::kReady));
    name_bytes_ += length + 1;
    ++names_;
}

void ForgedSegment::thread(const Step& step) {
    auto* header = lane_header(step.where % lanes_);
    if (header == nullptr) return;
    const std::uint32_t state = header->state.load();
    const std::uint32_t generation = schema::lane_generation(state);
    if (schema::lane_state(state) == schema::LaneState::kUsed) {
        header->state.store(schema::pack_lane_state(schema::LaneState::kReleased, generation));
    } else if (schema::lane_state(state) == schema::LaneState::kFree) {
        header->tid.store(header->tid.load() + 10);
        header->open_depth.store(0);
        header->state.store(schema::pack_lane_state(schema::LaneState::kUsed, generation + 1));
    }
}

/// index: how many cells (bits 0-3), what their other words are (4-7); value: the first word.
void ForgedSegment::cells(const Step& step) {
    const std::uint32_t lane = step.where % lanes_;
    book_[lane].honest = false;
    auto* header = lane_header(lane);
    if (header == nullptr) return;
    const std::uint64_t fill[] = {0, 1, ~0ull, clock_, step.value, 1ull << 63};
    const std::uint64_t other = fill[(step.index >> 4) % std::size(fill)];
    const std::uint32_t count = step.index % 16;
    const std::uint64_t committed = header->committed.load();
    schema::Cell cell{{step.value, other, other + 1, other}};
    for (std::uint32_t i = 0; i < count; ++i) {
        place(lane, committed + i, cell);
        cell.words[0] = other;
    }
    header->records.store(header->records.load() + 1);
    header->committed.store(committed + count);
}

/// where: the part (bits 0-2), width (3-4), lane (5-6), from the end of the part (7). index: in units of its width.
void ForgedSegment::word(const Step& step) {
    const std::uint32_t lane = (step.where >> 5) % lanes_;
    const std::uint64_t width = 1ull << (step.where >> 3 & 3);
    const LaneBook& book = book_[lane];
    struct Extent {
        std::uint64_t offset, bytes;
    };
    const Extent extents[kParts] = {
        {0, schema::kPageBytes},
        {schema::kNamesOffset, 256 * sizeof(schema::NameEntry)},
        {schema::kNameBytesOffset, 2 * schema::kPageBytes},
        {schema::kAttributesOffset, 16 * sizeof(schema::AttributeEntry)},
        {schema::kLaneTableOffset, 8 * sizeof(schema::LaneEntry)},
        {book.offset, 256},
        {book.offset + sizeof(schema::BasicLaneHeader<std::atomic>),
         sizeof(schema::LaneHeader::open)},
        {book.offset + schema::kPageBytes, std::uint64_t{book.capacity} * schema::kCellBytes},
    };
    const auto part = static_cast<Part>(step.where % kParts);
    const Extent& extent = extents[step.where % kParts];
    const std::uint64_t place = step.index * width % extent.bytes;
    if (part == Part::kHeader || part == Part::kLaneTable) honest_ = false;
    if (part == Part::kLane || part == Part::kLaneCells) book_[lane].honest = false;
    if (part == Part::kLaneTable) touched_by_agent_anywhere_ = true;
    if (at<std::uint64_t>(extent.offset + place) == nullptr) return;
    std::memcpy(base_ + extent.offset + place, &step.value, width);
}

void ForgedSegment::truncate(const Step& step) {
    // Where something ends, or anywhere.
    const std::uint64_t edges[] = {0,
                                   1,
                                   schema::kPageBytes,
                                   schema::kNamesOffset,
                                   schema::kNameBytesOffset,
                                   schema::kAttributesOffset,
                                   schema::kLaneTableOffset,
                                   schema::kLanesOffset,
                                   schema::kLanesOffset + schema::kPageBytes,
                                   kFileBytes,
                                   step.value % (kFileBytes + 1)};
    const std::uint64_t bytes = edges[step.index % std::size(edges)];
    must(::ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0, "truncate the segment's file");
    if (bytes != kFileBytes) {
        whole_ = false;
        touched_by_agent_anywhere_ = true;
    }
    // The last page is there to its end.
    file_bytes_ = (bytes + schema::kPageBytes - 1) / schema::kPageBytes * schema::kPageBytes;
}

}  // namespace ringside::tests::fuzz
