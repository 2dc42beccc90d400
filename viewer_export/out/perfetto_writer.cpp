#include "viewer_export/out/perfetto_writer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "viewer_export/out/perfetto_fields.hpp"

namespace ringside::viewer_export::trace {

using model::Index;
using protozero::pbf_writer;
using namespace perfetto;

namespace {

constexpr std::size_t kFlushBytes = 1u << 18;
constexpr std::uint64_t kFirstCounterTrack = std::uint64_t{1} << 40;
constexpr std::uint64_t kFirstRowTrack = std::uint64_t{1} << 20;

/// Groups come first, then rows; few bytes each.
std::uint64_t group_uuid(std::uint32_t index) {
    return index + 1;
}
std::uint64_t row_uuid(std::uint32_t index) {
    return kFirstRowTrack + index;
}

std::string clock_snapshot(std::initializer_list<std::pair<Clock, std::uint64_t>> clocks) {
    std::string snapshot;
    for (const auto& [id, ns] : clocks) {
        std::string clock;
        pbf_writer writer(clock);
        writer.add_uint32(1, id);
        writer.add_uint64(2, ns);
        if (id == kIncremental) writer.add_bool(3, true);
        add_message(snapshot, 1, clock);
    }
    pbf_writer(snapshot).add_uint32(2, kBoottime);
    return snapshot;
}

}  // namespace

PerfettoWriter::PerfettoWriter(const Plan& plan, ByteSink& sink)
    : plan_(plan), sink_(sink), rows_(plan.tracks.all().size()) {
    lanes_.resize(plan.job.lanes.size());
    // Times are from the first event on; the wall clock of that instant stands beside it.
    pbf_writer(packet_).add_message(
        trace_packet::kClockSnapshot,
        clock_snapshot({{kBoottime, 0}, {kRealtime, static_cast<std::uint64_t>(plan.base_ns)}}));
    pbf_writer(packet_).add_uint32(trace_packet::kSequenceId, loose_.id);
    append_packet();
}

void PerfettoWriter::flush() {
    sink_.write(out_.data(), out_.size());
    flushed_ += out_.size();
    out_.clear();
}

/// A packet of the file: field 1 of the trace.
void PerfettoWriter::append_packet() {
    add_message(out_, 1, packet_);
    packet_.clear();
    if (out_.size() >= kFlushBytes) flush();
}

void PerfettoWriter::group(const Group& group, std::uint32_t index) {
    constexpr std::uint32_t kExplicit = 3;
    std::string process;
    pbf_writer writer(process);
    writer.add_int32(1, static_cast<std::int32_t>(group.pid));
    writer.add_string(6, group.name);
    writer.add_string(8, group.labels);
    std::string track;
    pbf_writer(track).add_uint64(descriptor::kUuid, group_uuid(index));
    add_message(track, descriptor::kProcess, process);
    pbf_writer(track).add_uint32(descriptor::kOrder, kExplicit);
    pbf_writer(packet_).add_uint32(trace_packet::kSequenceId, loose_.id);
    add_message(packet_, trace_packet::kTrackDescriptor, track);
    append_packet();
}

void PerfettoWriter::row(const Track& row, std::uint32_t index) {
    constexpr std::uint32_t kNoMerging = 2;
    std::string track;
    pbf_writer writer(track);
    writer.add_uint64(descriptor::kUuid, row_uuid(index));
    writer.add_uint64(descriptor::kParent, group_uuid(row.group));
    if (row.thread) {
        std::string thread;
        pbf_writer(thread).add_int32(1, static_cast<std::int32_t>(row.pid));
        pbf_writer(thread).add_int32(2, static_cast<std::int32_t>(row.tid));
        pbf_writer(thread).add_string(5, row.name);
        add_message(track, descriptor::kThread, thread);
    } else {
        writer.add_string(descriptor::kName, row.name);
        writer.add_uint32(descriptor::kMerging, kNoMerging);
    }
    writer.add_int32(descriptor::kRank, row.sort_index);
    std::string records;
    if (row.lane != model::kNone) records = "records of lane " + lane_text(plan_.job, row.lane);
    if (row.calls != model::kNone && row.calls != row.lane)
        records.append(records.empty() ? "" : ", ")
            .append("calls of CUDA of lane ")
            .append(lane_text(plan_.job, row.calls));
    if (!records.empty()) writer.add_string(descriptor::kDescription, records);
    pbf_writer(packet_).add_uint32(trace_packet::kSequenceId, loose_.id);
    add_message(packet_, trace_packet::kTrackDescriptor, track);
    append_packet();
}

void PerfettoWriter::begin_row(std::uint32_t track) {
    rows_[track] = std::make_unique<Sequence>(Sequence{0});
    rows_[track]->track = row_uuid(track);
}

void PerfettoWriter::end_row(std::uint32_t track) {
    close_until(*rows_[track], std::numeric_limits<std::int64_t>::max());
    rows_[track].reset();
}

/// Its own track, and a clock that begins with the file's. (A later instant for each would be shorter, but clocks may not be told backwards.)
void PerfettoWriter::start(Sequence& sequence) {
    Sequence begun{++last_id_};
    begun.track = sequence.track;
    begun.open = std::move(sequence.open);
    begun.begun = true;
    sequence = std::move(begun);
    std::string event_defaults;
    pbf_writer(event_defaults).add_uint64(track_event::kTrackUuid, sequence.track);
    std::string defaults;
    add_message(defaults, trace_packet::kTrackEvent, event_defaults);
    pbf_writer(defaults).add_uint32(trace_packet::kTimestampClockId, kIncremental);
    pbf_writer writer(packet_);
    writer.add_message(trace_packet::kClockSnapshot,
                       clock_snapshot({{kIncremental, 0}, {kBoottime, 0}}));
    writer.add_uint32(trace_packet::kSequenceId, sequence.id);
    writer.add_uint32(trace_packet::kSequenceFlags, kStateCleared);
    writer.add_message(trace_packet::kDefaults, defaults);
    append_packet();
}

/// The event that is in event_, at `ns` after the first. That it needs its sequence's state is not said each time: nothing of a file is lost.
void PerfettoWriter::packet(Sequence& sequence, std::int64_t ns) {
    pbf_writer writer(packet_);
    if (sequence.track != 0) {
        writer.add_uint64(
            trace_packet::kTimestamp,
            static_cast<std::uint64_t>(std::max<std::int64_t>(ns - sequence.last_ns, 0)));
        sequence.last_ns = std::max(sequence.last_ns, ns);
    } else {
        writer.add_uint64(trace_packet::kTimestamp, static_cast<std::uint64_t>(ns));
    }
    writer.add_uint32(trace_packet::kSequenceId, sequence.id);
    if (!sequence.begun) writer.add_uint32(trace_packet::kSequenceFlags, kStateCleared);
    sequence.begun = true;
    if (!sequence.fresh.empty()) {
        writer.add_message(trace_packet::kInternedData, sequence.fresh);
        sequence.fresh.clear();
    }
    writer.add_message(trace_packet::kTrackEvent, event_);
    event_.clear();
    append_packet();
}

void PerfettoWriter::slice_end(Sequence& sequence, const Open& open) {
    pbf_writer writer(event_);
    writer.add_uint32(track_event::kType, kSliceEnd);
    if (&sequence == &loose_) writer.add_uint64(track_event::kTrackUuid, row_uuid(event_track_));
    if (open.flow != 0) writer.add_fixed64(track_event::kFlowIds, open.flow);
    packet(sequence, open.end_ns);
}

void PerfettoWriter::close_until(Sequence& row, std::int64_t ns) {
    for (; !row.open.empty() && row.open.back().end_ns <= ns; row.open.pop_back())
        slice_end(row, row.open.back());
}

void PerfettoWriter::begin_event(Category category, std::uint32_t track, std::int64_t begin_ns,
                                 std::int64_t end_ns, std::uint32_t type) {
    event_ns_ = begin_ns - plan_.base_ns;
    event_end_ns_ = end_ns - plan_.base_ns;
    event_track_ = track;
    event_category_ = category;
    event_lasts_ = type == kSliceBegin;
    end_flow_ = 0;
    now_ = event_lasts_ && rows_[track] ? rows_[track].get() : &loose_;
    if (now_ == &loose_) {
        if (loose_.is_full()) loose_ = Sequence{loose_.id};
    } else {
        if (!now_->begun || now_->is_full()) start(*now_);
        close_until(*now_, event_ns_);
    }
    std::uint32_t& number = now_->categories[static_cast<std::size_t>(category)];
    if (number == 0) {
        number = static_cast<std::uint32_t>(category) + 1;
        std::string entry;
        pbf_writer(entry).add_uint32(1, number);
        pbf_writer(entry).add_string(2, kCategoryNames[static_cast<std::size_t>(category)].data());
        add_message(now_->fresh, interned_data::kCategories, entry);
    }
    pbf_writer writer(event_);
    writer.add_uint32(track_event::kType, type);
    if (now_ == &loose_) writer.add_uint64(track_event::kTrackUuid, row_uuid(track));
    writer.add_uint32(track_event::kCategoryIids, number);
}

std::uint32_t PerfettoWriter::number_of(Text& known, std::string_view text, std::uint32_t field) {
    if (const auto at = known.find(text); at != known.end()) return at->second;
    const auto number = static_cast<std::uint32_t>(known.size() + 1);
    known.emplace(std::string(text), number);
    // Texts of the job may be of any bytes; protobuf's strings are UTF-8.
    std::string entry;
    pbf_writer(entry).add_uint32(1, number);
    pbf_writer(entry).add_string(2, valid_utf8(text));
    add_message(now_->fresh, field, entry);
    return number;
}

void PerfettoWriter::slice(Category category, Index name, std::uint32_t track,
                           std::int64_t begin_ns, std::int64_t end_ns) {
    begin_event(category, track, begin_ns, end_ns, kSliceBegin);
    add_name(name);
}

void PerfettoWriter::add_name(Index name) {
    if (now_->names.size() <= name) now_->names.resize(std::size_t{name} + 1);
    std::uint32_t& number = now_->names[name];
    if (number == 0) number = number_of(now_->texts, plan_.job.names[name], interned_data::kNames);
    pbf_writer(event_).add_uint32(track_event::kNameIid, number);
}

void PerfettoWriter::slice(Category category, std::string_view name, std::uint32_t track,
                           std::int64_t begin_ns, std::int64_t end_ns) {
    begin_event(category, track, begin_ns, end_ns, kSliceBegin);
    if (names_each(category))
        return pbf_writer(event_).add_string(track_event::kName, valid_utf8(name));
    pbf_writer(event_).add_uint32(track_event::kNameIid,
                                  number_of(now_->texts, name, interned_data::kNames));
}

void PerfettoWriter::instant(Category category, Index name, std::uint32_t track, std::int64_t ns) {
    begin_event(category, track, ns, ns, kInstantEvent);
    add_name(name);
}

void PerfettoWriter::end() {
    packet(*now_, event_ns_);
    if (!event_lasts_) return;
    const Open open{event_end_ns_, end_flow_};
    if (now_ == &loose_) {
        slice_end(loose_, open);
    } else {
        now_->open.push_back(open);
    }
}

void PerfettoWriter::flow(const Flow& flow) {
    if (flow.at_end) {
        end_flow_ = flow.id;
    } else {
        pbf_writer(event_).add_fixed64(track_event::kFlowIds, flow.id);
    }
}

std::uint64_t PerfettoWriter::counter_track(std::uint32_t group, std::string_view name) {
    const auto [at, added] =
        counters_.try_emplace({group, std::string(name)}, kFirstCounterTrack + counters_.size());
    if (added) {
        constexpr std::uint32_t kCount = 2;
        std::string counter;
        pbf_writer(counter).add_uint32(3, kCount);
        std::string track;
        pbf_writer(track).add_uint64(descriptor::kUuid, at->second);
        pbf_writer(track).add_uint64(descriptor::kParent, group_uuid(group));
        pbf_writer(track).add_string(descriptor::kName, valid_utf8(name));
        add_message(track, descriptor::kCounter, counter);
        pbf_writer(packet_).add_uint32(trace_packet::kSequenceId, loose_.id);
        add_message(packet_, trace_packet::kTrackDescriptor, track);
        append_packet();
    }
    return at->second;
}

void PerfettoWriter::counter_packet(std::uint64_t track, std::int64_t ns) {
    pbf_writer(event_).add_uint32(track_event::kType, kCounterEvent);
    pbf_writer(event_).add_uint64(track_event::kTrackUuid, track);
    packet(loose_, ns - plan_.base_ns);
}

void PerfettoWriter::begin_counter(std::uint32_t group, std::string_view name) {
    counter_ = std::make_unique<Sequence>(Sequence{0});
    counter_->track = counter_track(group, name);
    start(*counter_);
}

void PerfettoWriter::point(std::int64_t ns, std::int64_t value) {
    pbf_writer(event_).add_uint32(track_event::kType, kCounterEvent);
    pbf_writer(event_).add_int64(track_event::kCounterValue, value);
    packet(*counter_, ns - plan_.base_ns);
}

void PerfettoWriter::counter(std::uint32_t group, std::string_view name, std::int64_t ns,
                             std::int64_t value) {
    const std::uint64_t track = counter_track(group, name);
    pbf_writer(event_).add_int64(track_event::kCounterValue, value);
    counter_packet(track, ns);
}

void PerfettoWriter::counter(std::uint32_t group, std::string_view name, std::int64_t ns,
                             double value) {
    const std::uint64_t track = counter_track(group, name);
    pbf_writer(event_).add_double(track_event::kDoubleCounterValue, value);
    counter_packet(track, ns);
}

}  // namespace ringside::viewer_export::trace
