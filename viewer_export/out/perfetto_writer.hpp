// Events as Perfetto's packets: a Writer for trace_walk.hpp. A slice is two packets, its begin and its end; what nests on a row is written in
// the order of time, so a packet says how much later it is than the one before, and its row is the sequence's default:
//
//   sequence 1     what comes in any order: begin and end with their track and their time; instants, counters
//   sequence 2 ... one a row: [default track, clock = 0] begin +812  begin +12  end +300 ...
//
// Names, categories, keys and repeated texts are numbers of their sequence, each told in the packet that has it first.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/trace_walk.hpp"

namespace ringside::viewer_export::trace {

class PerfettoWriter {
public:
    static constexpr bool kFlowsInSlices = true;

    /// @param sink  borrowed
    PerfettoWriter(const Plan& plan, ByteSink& sink);

    void group(const Group& group, std::uint32_t index);
    void row(const Track& track, std::uint32_t index);
    void begin_row(std::uint32_t track);
    void end_row();

    void slice(Category category, model::Index name, std::uint32_t track, std::int64_t begin_ns,
               std::int64_t end_ns);
    void slice(Category category, std::string_view name, std::uint32_t track, std::int64_t begin_ns,
               std::int64_t end_ns);
    void instant(Category category, model::Index name, std::uint32_t track, std::int64_t ns);
    void end();

    void arg(const char* key, std::uint64_t value);
    void arg(const char* key, std::int64_t value);
    void arg(const char* key, double value);
    void arg(const char* key, std::string_view value);
    void hex(const char* key, std::uint64_t value);
    void hex(const char* key, std::uint64_t high, std::uint64_t low);
    void list(const char* key, const std::array<std::uint32_t, 3>& values);
    void verbatim(const char* key, std::string_view json);
    void record(model::Index lane, std::uint64_t position);
    template <class Fill>
    void shared(Shared, model::Index, Fill&& fill) {
        Texts texts{*this};
        fill(texts);
    }

    void counter(std::uint32_t group, std::string_view name, std::int64_t ns, std::uint64_t value) {
        counter(group, name, ns, static_cast<std::int64_t>(value));
    }
    void counter(std::uint32_t group, std::string_view name, std::int64_t ns, std::int64_t value);
    void counter(std::uint32_t group, std::string_view name, std::int64_t ns, double value);
    void flow(std::uint64_t id);
    void end_flow(std::uint64_t id) { end_flow_ = id; }
    void arrow(const Arrow&) {}

    void flush();
    std::uint64_t bytes() const { return flushed_ + out_.size(); }

private:
    using Text = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;
    /// One packet sequence: its numbers for texts.
    struct Sequence {
        std::uint32_t id;
        std::string fresh = {};  ///< InternedData for the next packet
        std::array<std::uint32_t, kCategories> categories{};
        std::vector<std::uint32_t> names = {};  ///< by Job::names
        Text texts = {};                        ///< event names
        std::unordered_map<const char*, std::uint32_t> keys = {};
        Text values = {};
        bool begun = false;
    };
    struct Texts {
        PerfettoWriter& writer;
        void text(const char* key, std::string_view value) { writer.repeated(key, value); }
    };
    struct Open {
        std::int64_t end_ns;
        std::uint64_t flow;
    };

    void repeated(const char* key, std::string_view value);
    std::uint32_t number_of(Text& known, std::string_view text, std::uint32_t field);
    void begin_event(Category category, std::uint32_t track, std::int64_t begin_ns,
                     std::int64_t end_ns, std::uint32_t type);
    void add_name(model::Index name);
    void start_row();
    void begin_annotation(const char* key);
    void end_annotation();
    void slice_end(const Open& open, std::int64_t ns);
    void close_until(std::int64_t ns);
    void packet(Sequence& sequence, std::int64_t ns);
    void append_packet();
    std::uint64_t counter_track(std::uint32_t group, std::string_view name);
    void counter_packet(std::uint64_t track, std::int64_t ns);

    const Plan& plan_;
    ByteSink& sink_;
    Sequence loose_{1};
    Sequence rows_{1};         ///< the row's; the next has the next number
    Sequence* now_ = &loose_;  ///< of the event that is being written
    std::uint32_t row_;        ///< kNoRow: between rows
    bool row_begun_ = false;
    std::int64_t last_ns_ = 0;  ///< of the row's packets
    std::vector<Open> open_;    ///< the row's slices
    std::int64_t event_ns_ = 0;
    std::int64_t event_end_ns_ = 0;
    std::uint32_t event_track_ = 0;
    bool event_lasts_ = false;
    std::uint64_t end_flow_ = 0;
    std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
    std::vector<std::string> lanes_;  ///< lane_text, by lane
    std::string event_;
    std::string annotation_;
    std::string packet_;
    std::string out_;
    std::uint64_t flushed_ = 0;
};

}  // namespace ringside::viewer_export::trace
