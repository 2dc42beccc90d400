#include "viewer_export/out/chrome_events.hpp"

#include <algorithm>

namespace ringside::viewer_export::chrome {

using model::Index;
using model::kNone;

namespace {

std::string json_string(std::string_view text) {
    std::string result = "\"";
    append_json_escaped(text, result);
    return result += '"';
}

std::string process_name(const model::Process& process) {
    std::string name = process.worker_name;
    if (name.empty() && !process.command_line.empty()) name = process.command_line.front();
    if (name.empty()) name = process.executable;
    if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
        name.erase(0, slash + 1);
    if (name.empty()) name = "process";
    if (process.rank >= 0) name += " (rank " + std::to_string(process.rank) + ")";
    return name;
}

bool is_user_range(const model::Range& range) {
    if (range.source != schema::SourceId::kTorch) return true;
    return range.detail == static_cast<std::uint8_t>(schema::TorchScope::kUser);
}

}  // namespace

EventWriter::EventWriter(const model::Job& job, JsonWriter& json, std::int64_t base_ns,
                         const model::Tell& tell)
    : job_(job),
      json_(json),
      base_ns_(base_ns),
      memory_name_(job.names.find(schema::kMemoryName)),
      tracks_(job),
      names_(job),
      tell_(tell),
      expected_elements_(expected_elements()) {
    for (std::vector<std::string>& heads : heads_) heads.resize(job.names.size());
    requests_.resize(job.halves.size());
}

void EventWriter::write() {
    iterations();  // makes rows of its own, so it comes before they are named
    processes();
    rows();
    lanes();
    asyncs();
    halves();
    values();
    rpc_flows();
    forward_flows();
    counts_.slices = counts_.ranges + counts_.asyncs + counts_.rpc_halves + counts_.iterations;
    counts_.lost = job_.totals.lost;
}

void EventWriter::begin_element() {
    constexpr std::uint64_t kBetween = 1 << 14;
    if (tell_ && elements_ % kBetween == 0) tell_("writing events", elements_, expected_elements_);
    if (elements_++ == 0) {
        json_.text("\n");
    } else {
        json_.newline_comma();
    }
}

const std::string& EventWriter::name_head(Category category, Index name) {
    static constexpr const char* kNames[kCategories] = {"cpu_op", "user_annotation"};
    std::string& head = heads_[category][name];
    if (head.empty()) {
        head = std::string("{\"ph\":\"X\",\"cat\":\"") + kNames[category] + "\",\"name\":";
        head += json_string(job_.names[name]);
    }
    return head;
}

void EventWriter::slice_head(std::string_view head, std::uint32_t track, std::int64_t begin_ns,
                             std::int64_t end_ns) {
    begin_element();
    json_.text(head);
    if (track >= places_.size()) places_.resize(tracks_.all().size());
    std::string& place = places_[track];
    if (place.empty()) {
        const Track& to = tracks_.all()[track];
        place = ",\"pid\":" + std::to_string(to.pid) + ",\"tid\":" + std::to_string(to.tid) +
                ",\"ts\":";
    }
    json_.text(place);
    json_.us(begin_ns - base_ns_);
    json_.text(",\"dur\":");
    json_.us(end_ns - begin_ns);
}

void EventWriter::processes() {
    for (Index i = 0; i < job_.processes.size(); ++i) {
        const model::Process& process = job_.processes[i];
        const auto metadata = [&](const char* name, const std::string& args) {
            begin_element();
            json_.text("{\"name\":\"");
            json_.text(name);
            json_.text("\",\"ph\":\"M\",\"ts\":0.000,\"pid\":");
            json_.number(static_cast<std::uint64_t>(tracks_.pid(i)));
            json_.text(",\"tid\":0,\"args\":{");
            json_.text(args);
            json_.text("}}");
        };
        metadata("process_name", "\"name\":" + json_string(process_name(process)));
        metadata("process_labels",
                 "\"labels\":" + json_string("CPU, node " + job_.nodes[process.node].name +
                                             ", pid " + std::to_string(process.pid)));
        metadata("process_sort_index", "\"sort_index\":" + std::to_string(i));
    }
}

void EventWriter::rows() {
    for (const Track& track : tracks_.all()) {
        const auto metadata = [&](const char* name, const std::string& args) {
            begin_element();
            json_.text("{\"name\":\"");
            json_.text(name);
            json_.text("\",\"ph\":\"M\",\"ts\":0.000,\"pid\":");
            json_.number(static_cast<std::uint64_t>(track.pid));
            json_.text(",\"tid\":");
            json_.number(static_cast<std::uint64_t>(track.tid));
            json_.text(",\"args\":{");
            json_.text(args);
            json_.text("}}");
        };
        metadata("thread_name", "\"name\":" + json_string(track.name));
        metadata("thread_sort_index", "\"sort_index\":" + std::to_string(track.sort_index));
    }
}

void EventWriter::end_args(model::End end, Index index) {
    if (end == model::End::kEnded) return;
    const model::Process& process = job_.processes[index];
    if (end == model::End::kUnfinished) {
        json_.text(",\"Ended\":\"no: its process died; drawn to the last evidence of it\"");
    } else if (!job_.nodes[process.node].complete) {
        json_.text(",\"Ended\":\"no: the dump was cut short; drawn to its last record\"");
    } else if (process.fate == model::Fate::kRunning) {
        json_.text(",\"Ended\":\"no: open when the capture stopped\"");
    } else {
        json_.text(",\"Ended\":\"no: open when its process ended\"");
    }
}

void EventWriter::range_args(const model::Range& range) {
    if (range.position != model::kNoPosition) {
        json_.number(range.position);
        json_.text("\"");
    } else {
        json_.text("open\"");
    }
    if (range.is_operator) {
        if (range.argument >= 0) {
            json_.text(",\"Sequence number\":");
            json_.number(range.argument);
            json_.text(",\"Fwd thread id\":");
            json_.number(static_cast<std::uint64_t>(range.forward_thread));
        }
        if (range.shapes != kNone) shapes_args(range.shapes);
    } else {
        attribute_args(range.attributes, static_cast<std::uint64_t>(range.argument));
    }
    if (range.request != kNone) json_.text(request_args(range.request));
}

void EventWriter::lanes() {
    for (Index i = 0; i < job_.lanes.size(); ++i) lane(i);
}

void EventWriter::lane(Index index) {
    const model::Lane& lane = job_.lanes[index];
    const model::Process& process = job_.processes[lane.process];
    // A record's id for ever: node, process, lane, position.
    const std::string record = ",\"args\":{\"Record\":\"" + std::to_string(process.node) + "." +
                               std::to_string(process.index) + "." + std::to_string(lane.index) +
                               ".";
    for (Index i = 0; i < lane.ranges.size(); ++i) {
        const model::Range& range = lane.ranges[i];
        slice_head(name_head(is_user_range(range) ? kUserAnnotation : kCpuOp, range.name),
                   tracks_.range_track(index, i), range.begin_ns, range.end_ns);
        json_.text(record);
        range_args(range);
        end_args(range.end, lane.process);
        json_.text("}}");
    }
    counts_.ranges += lane.ranges.size();
}

void EventWriter::asyncs() {
    for (Index i = 0; i < job_.asyncs.size(); ++i) {
        const model::AsyncRange& range = job_.asyncs[i];
        slice_head(name_head(kUserAnnotation, range.name), tracks_.async_track(i), range.begin_ns,
                   range.end_ns);
        json_.text(",\"args\":{\"Key\":\"");
        hex(range.key, 16);
        json_.text("\"");
        attribute_args(range.attributes, range.argument);
        if (range.request != kNone) json_.text(request_args(range.request));
        end_args(range.end, job_.lanes[range.lane].process);
        json_.text("}}");
        ++counts_.asyncs;
    }
}

void EventWriter::instant(const model::Value& value, std::string_view category) {
    const Track& track = tracks_.all()[tracks_.lane_track(value.lane)];
    begin_element();
    json_.text("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"");
    json_.text(category);
    json_.text("\",\"name\":");
    json_.quoted(job_.names[value.name]);
    json_.text(",\"pid\":");
    json_.number(static_cast<std::uint64_t>(track.pid));
    json_.text(",\"tid\":");
    json_.number(static_cast<std::uint64_t>(track.tid));
    json_.text(",\"ts\":");
    json_.us(value.ns - base_ns_);
    json_.text(",\"args\":{");
    if (value.name == memory_name_ && value.source == schema::SourceId::kTorch) {
        memory_args(value);
    } else {
        json_.text("\"Value\":");
        json_.number(value.value);
        attribute_args(value.attributes, value.argument);
    }
    if (value.request != kNone) json_.text(request_args(value.request));
    json_.text("}}");
    ++counts_.instants;
}

void EventWriter::counter(const model::Value& value) {
    begin_element();
    json_.text("{\"ph\":\"C\",\"name\":");
    json_.quoted(job_.names[value.name]);
    json_.text(",\"pid\":");
    json_.number(static_cast<std::uint64_t>(tracks_.pid(job_.lanes[value.lane].process)));
    json_.text(",\"ts\":");
    json_.us(value.ns - base_ns_);
    json_.text(",\"args\":{\"value\":");
    if (!payload(value.attributes, value.argument)) json_.number(value.value);
    json_.text("}}");
    ++counts_.counters;
}

void EventWriter::values() {
    for (const model::Value& value : job_.values) {
        if (value.kind == schema::RecordKind::kCounter) {
            counter(value);
        } else {
            instant(value, value.kind == schema::RecordKind::kIteration ? "iteration"
                                                                        : "cpu_instant_event");
        }
    }
}

void EventWriter::flow(char phase, std::string_view category, std::uint64_t id, std::uint32_t track,
                       std::int64_t ns) {
    const Track& to = tracks_.all()[track];
    begin_element();
    json_.text("{\"ph\":\"");
    json_.text({&phase, 1});
    json_.text(phase == 'f' ? "\",\"bp\":\"e\",\"id\":" : "\",\"id\":");
    json_.number(id);
    json_.text(",\"cat\":\"");
    json_.text(category);
    json_.text("\",\"name\":\"");
    json_.text(category);
    json_.text("\",\"pid\":");
    json_.number(static_cast<std::uint64_t>(to.pid));
    json_.text(",\"tid\":");
    json_.number(static_cast<std::uint64_t>(to.tid));
    json_.text(",\"ts\":");
    json_.us(ns - base_ns_);
    json_.text("}");
}

void EventWriter::hex(std::uint64_t value, std::uint32_t digits) {
    char text[16];
    schema::write_hex(text, value, digits);
    json_.text({text, digits});
}

}  // namespace ringside::viewer_export::chrome
