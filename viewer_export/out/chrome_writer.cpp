#include "viewer_export/out/chrome_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace ringside::viewer_export::trace {

using model::Index;

namespace {

std::string head_of(Category category, std::string_view name) {
    std::string head = "{\"ph\":\"X\",\"cat\":\"";
    head.append(kCategoryNames[static_cast<std::size_t>(category)]).append("\",\"name\":\"");
    append_json_escaped(name, head);
    return head += '"';
}

}  // namespace

ChromeWriter::ChromeWriter(const Plan& plan, JsonWriter& json) : plan_(plan), json_(json) {
    for (std::vector<std::string>& heads : heads_) heads.resize(plan.job.names.size());
    prefixes_.resize(plan.job.lanes.size());
    for (const Track& track : plan.tracks.all())
        places_.push_back(",\"pid\":" + std::to_string(track.pid) +
                          ",\"tid\":" + std::to_string(track.tid) + ",\"ts\":");
}

void ChromeWriter::metadata_head(std::string_view name, std::uint32_t pid, std::uint32_t tid) {
    begin_element();
    json_.text("{\"name\":\"");
    json_.text(name);
    json_.text("\",\"ph\":\"M\",\"ts\":0.000,\"pid\":");
    json_.number(std::uint64_t{pid});
    json_.text(",\"tid\":");
    json_.number(std::uint64_t{tid});
    json_.text(",\"args\":{\"");
}

void ChromeWriter::metadata(std::string_view name, std::uint32_t pid, std::uint32_t tid,
                            std::string_view key, std::string_view text) {
    metadata_head(name, pid, tid);
    json_.text(key);
    json_.text("\":");
    json_.quoted(text);
    json_.text("}}");
}

void ChromeWriter::metadata(std::string_view name, std::uint32_t pid, std::uint32_t tid,
                            std::int64_t index) {
    metadata_head(name, pid, tid);
    json_.text("sort_index\":");
    json_.number(index);
    json_.text("}}");
}

void ChromeWriter::group(const Group& group, std::uint32_t) {
    metadata("process_name", group.pid, 0, "name", group.name);
    metadata("process_labels", group.pid, 0, "labels", group.labels);
    metadata("process_sort_index", group.pid, 0, group.sort_index);
}

void ChromeWriter::row(const Track& track, std::uint32_t) {
    metadata("thread_name", track.pid, track.tid, "name", track.name);
    metadata("thread_sort_index", track.pid, track.tid, track.sort_index);
}

const std::string& ChromeWriter::make_head(Category category, Index name) {
    return heads_[static_cast<std::size_t>(category)][name] =
               head_of(category, plan_.job.names[name]);
}

void ChromeWriter::slice(Category category, std::string_view name, std::uint32_t track,
                         std::int64_t begin_ns, std::int64_t end_ns) {
    begin_element();
    if (names_each(category)) {
        json_.text(head_of(category, name));
    } else {
        auto& known = named_[static_cast<std::size_t>(category)];
        auto at = known.find(name);
        if (at == known.end()) at = known.emplace(std::string(name), head_of(category, name)).first;
        json_.text(at->second);
    }
    place_and_times(track, begin_ns, end_ns);
}

void ChromeWriter::instant(Category category, Index name, std::uint32_t track, std::int64_t ns) {
    begin_element();
    json_.text("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"");
    json_.text(kCategoryNames[static_cast<std::size_t>(category)]);
    json_.text("\",\"name\":");
    json_.quoted(plan_.job.names[name]);
    json_.text(places_[track]);
    json_.us(ns - plan_.base_ns);
}

/// JSON has no word for what is not finite.
void ChromeWriter::number(double value) {
    char text[40];
    if (!std::isfinite(value)) {
        const int length = std::snprintf(text, sizeof text, "\"%g\"", value);
        return json_.text({text, static_cast<std::size_t>(length)});
    }
    const auto end = std::to_chars(text, text + sizeof text, value);
    json_.text({text, static_cast<std::size_t>(end.ptr - text)});
}

void ChromeWriter::hex(const char* key, std::span<const std::uint64_t> values) {
    arg_key(key);
    json_.text("\"");
    for (const std::uint64_t value : values) {
        char text[16];
        schema::write_hex(text, value, sizeof text);
        json_.text({text, sizeof text});
    }
    json_.text("\"");
}

void ChromeWriter::list(const char* key, const std::array<std::uint32_t, 3>& values) {
    arg_key(key);
    const char* before = "[";
    for (const std::uint32_t value : values) {
        json_.text(before);
        json_.number(std::uint64_t{value});
        before = ", ";
    }
    json_.text("]");
}

const std::string& ChromeWriter::make_prefix(Index lane) {
    std::string& prefix = prefixes_[lane];
    prefix.append(kFirstArg).append("\"Record\":\"").append(lane_text(plan_.job, lane));
    return prefix += '.';
}

void ChromeWriter::counter_head(std::uint32_t group, std::string_view name) {
    // Not the first element: groups and rows come before.
    counter_head_ = ",\n{\"ph\":\"C\",\"name\":\"";
    append_json_escaped(name, counter_head_);
    counter_head_.append("\",\"pid\":")
        .append(std::to_string(plan_.tracks.groups()[group].pid))
        .append(",\"ts\":");
}

void ChromeWriter::begin_counter(std::uint32_t group, std::string_view name) {
    counter_head(group, name);
}

void ChromeWriter::tip(const Flow& flow) {
    json_.text(flow.leaves ? ",\n{\"ph\":\"s\",\"id\":" : ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":");
    json_.number(flow.id);
    json_.text(",\"cat\":\"");
    json_.text(flow.category);
    json_.text("\",\"name\":\"");
    json_.text(flow.category);
    json_.text("\"");
    json_.text(places_[track_]);
    json_.us(flow.ns - plan_.base_ns);
    json_.text("}");
}

}  // namespace ringside::viewer_export::trace
