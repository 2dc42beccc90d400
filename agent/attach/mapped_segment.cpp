#include "agent/attach/mapped_segment.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using schema::SegmentHeader;

constexpr auto kRelaxed = std::memory_order_relaxed;

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
    if (header.layout < schema::kOldestSegmentLayout || header.layout > schema::kSegmentLayout) {
        return "layout " + std::to_string(header.layout) + ", this agent reads " +
               std::to_string(schema::kOldestSegmentLayout) + " to " +
               std::to_string(schema::kSegmentLayout) +
               "; run the agent that belongs to the job's libringside_inject.so";
    }
    if (header.mark != schema::kMachineMark) return "it was written on another kind of machine";
    if (header.size_bytes < schema::lanes_offset(header.layout) || header.size_bytes > file_bytes) {
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
    if (bytes < schema::lanes_offset(schema::kOldestSegmentLayout))
        return std::unique_ptr<MappedSegment>();
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
    segment->layout_ = header.layout;
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
    if (pulse.lanes_in_use > schema::max_lanes(layout_)) {
        pulse.lanes_in_use = schema::max_lanes(layout_);
        ++violations_;
    }
    return pulse;
}

std::uint64_t MappedSegment::real_bytes_of(const SegmentHeader& header) const {
    const std::uint64_t said = layout_ == schema::kOldestSegmentLayout
                                   ? header.lane_bytes_used.load(kRelaxed)
                                   : header.real_bytes.load(kRelaxed);
    return std::min<std::uint64_t>(said, bytes());
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
    facts.lanes_in_use = std::min(header.lanes_in_use.load(kRelaxed), schema::max_lanes(layout_));
    facts.real_bytes = real_bytes_of(header);
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

bool MappedSegment::set_selected(bool selected) {
    return access([&] {
        // The process reads this line at each hook that it is not chosen for: it is not written where nothing changes.
        const std::uint32_t flag = selected ? 1 : 0;
        if (header()->selected.load(kRelaxed) != flag) header()->selected.store(flag, kRelaxed);
    });
}

std::uint64_t MappedSegment::real_bytes() {
    std::uint64_t real = 0;
    if (!access([&] { real = real_bytes_of(*header()); })) return 0;
    return real;
}

}  // namespace ringside::agent
