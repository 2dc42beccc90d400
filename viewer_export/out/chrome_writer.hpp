// Events as Chrome's JSON in Kineto's layout, elements of an array: a Writer for trace_walk.hpp. What repeats (names, rows, records' prefixes) is
// made once and copied.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/trace_walk.hpp"

namespace ringside::viewer_export::trace {

class ChromeWriter {
public:
    ChromeWriter(const Plan& plan, JsonWriter& json);

    void group(const Group& group, std::uint32_t index);
    void row(const Track& track, std::uint32_t index);
    void begin_row(std::uint32_t) {}
    void end_row(std::uint32_t) {}

    void slice(Category category, model::Index name, std::uint32_t track, std::int64_t begin_ns,
               std::int64_t end_ns) {
        begin_element();
        json_.text(name_head(category, name));
        place_and_times(track, begin_ns, end_ns);
    }
    void slice(Category category, std::string_view name, std::uint32_t track, std::int64_t begin_ns,
               std::int64_t end_ns);
    void instant(Category category, model::Index name, std::uint32_t track, std::int64_t ns);
    void end() {
        json_.text(first_arg_ ? "}" : "}}");
        for (const Flow& flow : flows_) tip(flow);
        flows_.clear();
    }

    template <std::size_t N>
    void arg(const char (&key)[N], std::uint64_t value) {
        arg_key(key);
        json_.number(value);
    }
    template <std::size_t N>
    void arg(const char (&key)[N], std::int64_t value) {
        arg_key(key);
        json_.number(value);
    }
    template <std::size_t N>
    void arg(const char (&key)[N], double value) {
        arg_key(key);
        number(value);
    }
    template <std::size_t N>
    void arg(const char (&key)[N], std::string_view value) {
        arg_key(key);
        json_.quoted(value);
    }
    void hex(const char* key, std::uint64_t value) { hex(key, {&value, 1}); }
    void hex(const char* key, std::uint64_t high, std::uint64_t low) {
        const std::uint64_t values[] = {high, low};
        hex(key, values);
    }
    void list(const char* key, const std::array<std::uint32_t, 3>& values);
    void verbatim(const char* key, std::string_view json) {
        arg_key(key);
        json_.text(json);
    }
    void record(model::Index lane, std::uint64_t position) {
        const std::string& prefix = record_prefix(lane);
        if (first_arg_) {
            json_.text(prefix);
        } else {
            json_.text(",");
            json_.text(std::string_view(prefix).substr(kFirstArg.size()));
        }
        first_arg_ = false;
        if (position != model::kNoPosition) {
            json_.number(position);
            json_.text("\"");
        } else {
            json_.text("open\"");
        }
    }
    template <class Fill>
    void shared(Shared what, model::Index index, Fill&& fill) {
        auto& known = shared_[static_cast<std::size_t>(what)];
        if (known.size() == kMostShared) known.clear();
        std::string& text = known[index];
        Texts texts{text};
        if (text.empty()) fill(texts);
        if (text.empty()) return;
        separate_arg();
        json_.text(std::string_view(text).substr(1));
    }

    template <class Number>
    void counter(std::uint32_t group, std::string_view name, std::int64_t ns, Number value) {
        counter_head(group, name);
        json_.text(counter_head_);
        json_.us(ns - plan_.base_ns);
        json_.text(",\"args\":{\"value\":");
        number(value);
        json_.text("}}");
    }
    void begin_counter(std::uint32_t group, std::string_view name);
    void point(std::int64_t ns, std::int64_t value) {
        json_.text(counter_head_);
        json_.us(ns - plan_.base_ns);
        json_.text(",\"args\":{\"value\":");
        json_.number(value);
        json_.text("}}");
    }
    void end_counter() {}
    /// Written beside its slice.
    void flow(const Flow& flow) { flows_.push_back(flow); }

private:
    /// Shared args as `,"key":"text"`.
    struct Texts {
        std::string& out;
        void text(const char* key, std::string_view value) {
            out.append(",\"").append(key).append("\":\"");
            append_json_escaped(value, out);
            out += '"';
        }
    };

    void begin_element() {
        json_.text(first_element_ ? "\n" : ",\n");
        first_element_ = false;
        first_arg_ = true;
    }
    void separate_arg() {
        json_.text(first_arg_ ? ",\"args\":{" : ",");
        first_arg_ = false;
    }
    /// Inlined where the key's length is known: a few moves.
    [[gnu::always_inline]] void arg_key(std::string_view key) {
        if (first_arg_) {
            json_.text(",\"args\":{\"");
        } else {
            json_.text(",\"");
        }
        first_arg_ = false;
        json_.text(key);
        json_.text("\":");
    }
    template <std::size_t N>
    [[gnu::always_inline]] void arg_key(const char (&key)[N]) {
        arg_key(std::string_view(key, N - 1));
    }
    static constexpr std::string_view kFirstArg = ",\"args\":{";
    void number(std::uint64_t value) { json_.number(value); }
    void number(std::int64_t value) { json_.number(value); }
    void number(double value);
    void hex(const char* key, std::span<const std::uint64_t> values);
    const std::string& name_head(Category category, model::Index name) {
        const std::string& head = heads_[static_cast<std::size_t>(category)][name];
        return head.empty() ? make_head(category, name) : head;
    }
    const std::string& make_head(Category category, model::Index name);
    const std::string& record_prefix(model::Index lane) {
        const std::string& prefix = prefixes_[lane];
        return prefix.empty() ? make_prefix(lane) : prefix;
    }
    const std::string& make_prefix(model::Index lane);
    void place_and_times(std::uint32_t track, std::int64_t begin_ns, std::int64_t end_ns) {
        track_ = track;
        json_.text(places_[track]);
        json_.us(begin_ns - plan_.base_ns);
        json_.text(",\"dur\":");
        json_.us(end_ns - begin_ns);
    }
    void metadata(std::string_view name, std::uint32_t pid, std::uint32_t tid, std::string_view key,
                  std::string_view text);
    void metadata(std::string_view name, std::uint32_t pid, std::uint32_t tid, std::int64_t index);
    void metadata_head(std::string_view name, std::uint32_t pid, std::uint32_t tid);
    void counter_head(std::uint32_t group, std::string_view name);
    void tip(const Flow& flow);

    const Plan& plan_;
    JsonWriter& json_;
    std::array<std::vector<std::string>, kCategories> heads_;  ///< by name: up to and with the name
    std::array<std::unordered_map<std::string, std::string, TextHash, std::equal_to<>>, kCategories>
        named_;                        ///< the same of names that are not the job's
    std::vector<std::string> places_;  ///< by track: `,"pid":1,"tid":2,"ts":`
    std::array<std::unordered_map<model::Index, std::string>, kShared> shared_;
    static constexpr std::size_t kMostShared = 1 << 14;
    std::vector<Flow> flows_;            ///< of the slice that is being written
    std::uint32_t track_ = 0;            ///< its
    std::string counter_head_;           ///< from the comma to `"ts":`
    std::vector<std::string> prefixes_;  ///< by lane: `,"args":{"Record":"0.0.1.`
    bool first_element_ = true;
    bool first_arg_ = true;
};

}  // namespace ringside::viewer_export::trace
