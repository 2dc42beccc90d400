// What packets say of their events: debug annotations, whose keys and repeated texts are numbers.
#include "viewer_export/out/perfetto_fields.hpp"
#include "viewer_export/out/perfetto_writer.hpp"

namespace ringside::viewer_export::trace {

using model::Index;
using protozero::pbf_writer;
using namespace perfetto;

void PerfettoWriter::begin_annotation(const char* key) {
    const auto [at, added] =
        now_->keys.try_emplace(key, static_cast<std::uint32_t>(now_->keys.size() + 1));
    if (added) {
        std::string entry;
        pbf_writer(entry).add_uint32(1, at->second);
        pbf_writer(entry).add_string(2, key);
        add_message(now_->fresh, interned_data::kKeys, entry);
    }
    annotation_.clear();
    pbf_writer(annotation_).add_uint32(debug_annotation::kNameIid, at->second);
}

void PerfettoWriter::end_annotation() {
    add_message(event_, track_event::kDebugAnnotations, annotation_);
}

void PerfettoWriter::arg(const char* key, std::uint64_t value) {
    begin_annotation(key);
    pbf_writer(annotation_).add_uint64(debug_annotation::kUint, value);
    end_annotation();
}

void PerfettoWriter::arg(const char* key, std::int64_t value) {
    begin_annotation(key);
    pbf_writer(annotation_).add_int64(debug_annotation::kInt, value);
    end_annotation();
}

void PerfettoWriter::arg(const char* key, double value) {
    begin_annotation(key);
    pbf_writer(annotation_).add_double(debug_annotation::kDouble, value);
    end_annotation();
}

void PerfettoWriter::arg(const char* key, std::string_view value) {
    begin_annotation(key);
    const std::uint32_t number = number_of(now_->values, value, interned_data::kStrings);
    pbf_writer(annotation_).add_uint64(debug_annotation::kStringIid, number);
    end_annotation();
}

/// Each another text.
void PerfettoWriter::digits(const char* key, std::string_view value) {
    begin_annotation(key);
    pbf_writer(annotation_).add_string(debug_annotation::kString, value.data(), value.size());
    end_annotation();
}

void PerfettoWriter::hex(const char* key, std::uint64_t value) {
    char text[16];
    schema::write_hex(text, value, sizeof text);
    digits(key, std::string_view(text, sizeof text));
}

void PerfettoWriter::hex(const char* key, std::uint64_t high, std::uint64_t low) {
    char text[32];
    schema::write_hex(text, high, 16);
    schema::write_hex(text + 16, low, 16);
    digits(key, std::string_view(text, sizeof text));
}

void PerfettoWriter::list(const char* key, const std::array<std::uint32_t, 3>& values) {
    begin_annotation(key);
    for (const std::uint32_t value : values) {
        std::string element;
        pbf_writer(element).add_uint64(debug_annotation::kUint, value);
        add_message(annotation_, debug_annotation::kArray, element);
    }
    end_annotation();
}

void PerfettoWriter::verbatim(const char* key, std::string_view json) {
    arg(key, json);
}

/// The lane is said where it is not the row's.
void PerfettoWriter::record(Index lane, std::uint64_t position) {
    const Track& row = plan_.tracks.all()[event_track_];
    const bool call = event_category_ == Category::kRuntime ||
                      event_category_ == Category::kDriver ||
                      event_category_ == Category::kOverhead;
    if (lane != (call ? row.calls : row.lane)) {
        std::string& text = lanes_[lane];
        if (text.empty()) text = lane_text(plan_.job, lane);
        arg("Lane", std::string_view(text));
    }
    if (position == model::kNoPosition) return arg("Record", std::string_view("open"));
    arg("Record", position);
}

}  // namespace ringside::viewer_export::trace
