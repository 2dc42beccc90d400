#include "agent/attach/mapped_segment.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "schema/lane_life.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using schema::SegmentHeader;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kLeastLaneCells = 2 * schema::kMaxRecordCells;
constexpr std::uint32_t kMostLaneCells = 1u << 26;

/// The text of a fixed field: up to its first NUL, the whole field where it has none.
std::string field_text(const char* bytes, std::size_t size) {
    return {bytes, ::strnlen(bytes, size)};
}

std::vector<std::string> split_arguments(const char* bytes, std::size_t size) {
    std::vector<std::string> arguments;
    for (const char* end = bytes + size; bytes < end && *bytes != 0;) {
        const std::string argument = field_text(bytes, static_cast<std::size_t>(end - bytes));
        bytes += argument.size() + 1;
        arguments.push_back(argument);
    }
    return arguments;
}

/// What stands in the header before other words of it, read before them.
struct FirstWords {
    std::uint32_t attached_word;
    std::uint32_t levels[schema::kSourceCount];
    std::uint32_t worker_name;
};

FirstWords first_words(const SegmentHeader& header) {
    FirstWords words{};
    // SYNC(attached): capture_clock and the levels are there; pairs with the shim's release.
    words.attached_word = header.attached_word.load(std::memory_order_acquire);
    for (std::uint32_t id = 0; id < schema::kSourceCount; ++id) {
        // SYNC(level): its reason is there; pairs with the shim's release.
        words.levels[id] = header.sources[id].level.load(std::memory_order_acquire);
    }
    // SYNC(worker): its id is there; pairs with the shim's release.
    words.worker_name = header.worker_name.load(std::memory_order_acquire);
    return words;
}

/// @param header  a copy made after `levels` were read, so that each reason is its level's or a later one's
std::vector<SourceFacts> source_facts(const std::uint32_t* levels, const SegmentHeader& header) {
    std::vector<SourceFacts> sources;
    for (std::uint32_t id = 0; id < schema::kSourceCount; ++id) {
        const schema::SourceStatus& status = header.sources[id];
        const std::uint32_t level = levels[id];
        if (level == 0 || level > static_cast<std::uint32_t>(schema::SourceLevel::kNotInstrumented))
            continue;
        char reason[schema::kReasonBytes];
        std::memcpy(reason, static_cast<const void*>(status.reason), sizeof reason);
        sources.push_back({static_cast<schema::SourceId>(id),
                           static_cast<schema::SourceLevel>(level),
                           field_text(reason, sizeof reason)});
    }
    return sources;
}

/// @return nothing, or why the header can't be read
std::optional<std::string> header_fault(const SegmentHeader& header, const schema::SegmentId& id,
                                        std::size_t file_bytes) {
    if (header.magic != schema::kSegmentMagic)
        return "its first bytes are no segment's; remove the file if no job uses it";
    if (header.layout != schema::kSegmentLayout) {
        return "layout " + std::to_string(header.layout) + ", this agent reads " +
               std::to_string(schema::kSegmentLayout) +
               "; run the agent that belongs to the job's libringside_inject.so";
    }
    if (header.mark != schema::kMachineMark) return "it was written on another kind of machine";
    if (header.size_bytes < schema::kLanesOffset || header.size_bytes > file_bytes) {
        return "it says " + std::to_string(header.size_bytes) + " bytes and has " +
               std::to_string(file_bytes);
    }
    if (header.pid != static_cast<std::int32_t>(id.pid) ||
        header.pid_namespace != id.pid_namespace || header.start_ticks != id.start_ticks)
        return "its name and its header name different processes";
    return std::nullopt;
}

}  // namespace

std::optional<schema::SegmentId> parse_segment_name(const std::string& name) {
    schema::SegmentId id;
    const char* at = name.data();
    const char* end = at + name.size();
    const auto number = [&](auto& value, bool last) {
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc() || next == at) return false;
        at = next;
        if (last) return at == end;
        return at != end && *at++ == '.';
    };
    if (!number(id.pid_namespace, false) || !number(id.pid, false) || !number(id.start_ticks, true))
        return std::nullopt;
    return id;
}

std::string segment_name(const schema::SegmentId& id) {
    return std::to_string(id.pid_namespace) + "." + std::to_string(id.pid) + "." +
           std::to_string(id.start_ticks);
}

MappedSegment::MappedSegment(schema::SegmentId id, std::string name, MappedFile file)
    : id_(id), name_(std::move(name)), file_(std::move(file)) {}

schema::Result<std::unique_ptr<MappedSegment>> MappedSegment::open(
    int directory, const std::string& directory_path, const schema::SegmentId& id) {
    const std::string name = segment_name(id);
    auto file = MappedFile::open(directory, directory_path, name, 0);
    if (!file) return file.error();
    const std::size_t bytes = file->region.get_size();
    // A file is there, and empty, before it has its size and its header; only then is its state Ready.
    if (bytes < schema::kLanesOffset) return std::unique_ptr<MappedSegment>();
    std::unique_ptr<MappedSegment> segment(new MappedSegment(id, name, std::move(*file)));
    std::uint32_t state = 0;
    alignas(SegmentHeader) std::byte copy[sizeof(SegmentHeader)];
    const bool read = segment->access([&] {
        // SYNC(ready): the header is whole; pairs with the shim's release when it has filled it.
        state = segment->header()->state.load(std::memory_order_acquire);
        std::memcpy(copy, segment->base(), sizeof copy);
    });
    if (!read) return Error{ErrorCode::kRefused, "attach segment " + name + ": it was truncated"};
    if (state == static_cast<std::uint32_t>(schema::SegmentState::kInit))
        return std::unique_ptr<MappedSegment>();
    const auto& header = *reinterpret_cast<const SegmentHeader*>(copy);
    if (const auto fault = header_fault(header, id, bytes))
        return Error{ErrorCode::kRefused, "attach segment " + name + ": " + *fault};
    return segment;
}

std::string MappedSegment::damage() const {
    struct stat now {};
    const bool shorter = ::fstat(lock_descriptor(), &now) == 0 && now.st_size >= 0 &&
                         static_cast<std::size_t>(now.st_size) < bytes();
    if (!broken_ && !shorter) return "";
    // Long again, or never short: a page that a full file system could not give looks the same to whoever touches it.
    const std::string what =
        shorter ? "its segment was truncated to " + std::to_string(now.st_size) + " of " +
                      std::to_string(bytes()) + " bytes"
                : "a page of its segment was gone (truncated, or its file system is full)";
    return what + "; what was not drained before is lost, how much of it is not known";
}

std::optional<SegmentPulse> MappedSegment::pulse() {
    SegmentPulse pulse;
    std::uint32_t state = 0;
    if (!access([&] {
            // SYNC(closing): what the process did before its end is there; pairs with the shim's release.
            state = header()->state.load(std::memory_order_acquire);
            // SYNC(attached): what the shim did for the word is done; pairs with its release.
            pulse.attached_word = header()->attached_word.load(std::memory_order_acquire);
            pulse.lanes_in_use = header()->lanes_in_use.load(kRelaxed);
        }))
        return std::nullopt;
    pulse.state = static_cast<schema::SegmentState>(state);
    if (pulse.lanes_in_use > schema::kMaxLanes) {
        pulse.lanes_in_use = schema::kMaxLanes;
        ++violations_;
    }
    return pulse;
}

std::optional<SegmentFacts> MappedSegment::facts() {
    alignas(SegmentHeader) std::byte copy[sizeof(SegmentHeader)];
    FirstWords first{};
    if (!access([&] {
            first = first_words(*header());
            std::memcpy(copy, base(), sizeof copy);
        }))
        return std::nullopt;
    const auto& header = *reinterpret_cast<const SegmentHeader*>(copy);
    SegmentFacts facts;
    facts.id = id_;
    facts.parent_pid = header.parent_pid;
    facts.uid = header.uid;
    facts.rank = header.rank;
    facts.ticks_source = static_cast<schema::TicksSource>(header.ticks_source);
    facts.state = static_cast<schema::SegmentState>(header.state.load(kRelaxed));
    facts.attached_word = first.attached_word;
    facts.lanes_in_use = std::min(header.lanes_in_use.load(kRelaxed), schema::kMaxLanes);
    facts.lane_bytes_used = std::min<std::uint64_t>(header.lane_bytes_used.load(kRelaxed), bytes());
    facts.load_clock = header.load_clock;
    facts.capture_clock = header.capture_clock;
    facts.worker_name = {first.worker_name};
    facts.worker_id = header.worker_id.load(kRelaxed);
    for (std::uint32_t i = 0; i < schema::kLossCounters; ++i)
        facts.losses[i] = header.losses[i].load(kRelaxed);
    facts.sources = source_facts(first.levels, header);
    facts.job = field_text(header.job, sizeof header.job);
    facts.executable = field_text(header.executable, sizeof header.executable);
    facts.command_line = split_arguments(header.command_line, sizeof header.command_line);
    return facts;
}

std::optional<LaneView> MappedSegment::lane(std::uint32_t index) {
    if (index >= schema::kMaxLanes) return std::nullopt;
    std::uint64_t offset = 0;
    std::uint32_t capacity = 0;
    if (!access([&] {
            auto* entry = at<schema::LaneEntry>(schema::kLaneTableOffset) + index;
            // SYNC(lane): the entry and the lane's header are filled; pairs with the shim's release.
            offset = entry->offset.load(std::memory_order_acquire);
            capacity = entry->capacity_cells.load(kRelaxed);
        }))
        return std::nullopt;
    if (offset == 0) return LaneView{};  // being made
    const bool fits =
        offset % schema::kPageBytes == 0 && offset >= schema::kLanesOffset && offset < bytes() &&
        std::has_single_bit(capacity) && capacity >= kLeastLaneCells &&
        capacity <= kMostLaneCells &&
        schema::kPageBytes + std::uint64_t{capacity} * schema::kCellBytes <= bytes() - offset;
    if (!fits) {
        ++violations_;
        return std::nullopt;
    }
    return LaneView{at<schema::LaneHeader>(offset),
                    at<const schema::Cell>(offset + schema::kPageBytes), capacity};
}

std::optional<NameFacts> MappedSegment::name_of(schema::NameId id) {
    if (id.value == 0 || id.value > schema::kNameEntries) return std::nullopt;
    NameFacts name;
    name.id = id.value;
    char text[schema::kMaxNameLength];
    std::uint32_t length = 0;
    bool good = false;
    if (!access([&] {
            auto* entry = at<schema::NameEntry>(schema::kNamesOffset) + (id.value - 1);
            // SYNC(name): the bytes and fields are there; pairs with the shim's release of Ready.
            if (entry->state.load(std::memory_order_acquire) !=
                static_cast<std::uint16_t>(schema::NameState::kReady))
                return;
            const std::uint32_t offset = entry->offset.load(kRelaxed);
            length = entry->length.load(kRelaxed);
            name.flags = entry->flags.load(kRelaxed);
            name.attribute = entry->attribute.load(kRelaxed);
            if (length > sizeof text || offset > schema::kNameBytes ||
                length > schema::kNameBytes - offset)
                return;
            std::memcpy(text, at<const char>(schema::kNameBytesOffset + offset), length);
            good = true;
        }))
        return std::nullopt;
    if (!good) {
        ++violations_;
        return std::nullopt;
    }
    name.text.assign(text, length);
    return name;
}

std::optional<AttributeFacts> MappedSegment::attribute_of(schema::AttributeId id) {
    if (id.value == 0 || id.value > schema::kAttributeEntries) return std::nullopt;
    AttributeFacts attribute;
    attribute.id = id.value;
    bool good = false;
    if (!access([&] {
            auto* entry = at<schema::AttributeEntry>(schema::kAttributesOffset) + (id.value - 1);
            // SYNC(name): pairs with the shim's release of Ready.
            if (entry->state.load(std::memory_order_acquire) !=
                static_cast<std::uint16_t>(schema::NameState::kReady))
                return;
            attribute.domain = entry->domain.load(kRelaxed);
            attribute.category = entry->category.load(kRelaxed);
            attribute.colour = entry->colour.load(kRelaxed);
            attribute.payload = entry->payload.load(kRelaxed);
            good = true;
        }))
        return std::nullopt;
    if (!good) {
        ++violations_;
        return std::nullopt;
    }
    return attribute;
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

bool MappedSegment::set_selected(bool selected) {
    return access([&] { header()->selected.store(selected ? 1 : 0, kRelaxed); });
}

bool MappedSegment::recycle(const LaneView& lane, std::uint32_t state) {
    return access([&] { schema::recycle_lane(*lane.header, state); });
}

}  // namespace ringside::agent
