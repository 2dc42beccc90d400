// Events as Perfetto's packets: a Writer for trace_walk.hpp. A slice is two packets, its begin and its end; what nests on a row is written in
// the order of time, so a packet says how much later it is than the one before, and its row is the sequence's default:
//
//   sequence 1     what comes in any order: begin and end with their track and their time; instants, some counters
//   sequence 2 ... one a row or counter: [default track, clock = 0] begin +812  begin +12  end +300 ...
//
// Names, categories, keys and repeated texts are numbers of their sequence, each told in the packet that has it first. A sequence that has told many
// begins anew, so memory is that of the rows, not of the events.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/trace_walk.hpp"

namespace ringside::viewer_export::trace {

class PerfettoWriter {
public:
    /// @param sink  borrowed
    PerfettoWriter(const Plan& plan, ByteSink& sink);

    void group(const Group& group, std::uint32_t index);
    void row(const Track& track, std::uint32_t index);
    void begin_row(std::uint32_t track);
    void end_row(std::uint32_t track);

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
    void begin_counter(std::uint32_t group, std::string_view name);
    void point(std::int64_t ns, std::int64_t value);
    void end_counter() { counter_.reset(); }
    void flow(const Flow& flow);

    void flush();
    std::uint64_t bytes() const { return flushed_ + out_.size(); }

private:
    using Text = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;
    static constexpr std::size_t kMostTexts = 1 << 15;
    struct Open {
        std::int64_t end_ns;
        std::uint64_t flow;
    };
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
        std::uint64_t track = 0;   ///< its default; 0: none, and its times are the file's
        std::int64_t last_ns = 0;  ///< of its packets
        std::vector<Open> open = {};
        bool is_full() const { return texts.size() + values.size() >= kMostTexts; }
    };
    struct Texts {
        PerfettoWriter& writer;
        void text(const char* key, std::string_view value) { writer.arg(key, value); }
    };
    void digits(const char* key, std::string_view value);
    std::uint32_t number_of(Text& known, std::string_view text, std::uint32_t field);
    void begin_event(Category category, std::uint32_t track, std::int64_t begin_ns,
                     std::int64_t end_ns, std::uint32_t type);
    void add_name(model::Index name);
    void start(Sequence& sequence);
    void begin_annotation(const char* key);
    void end_annotation();
    void slice_end(Sequence& sequence, const Open& open);
    void close_until(Sequence& row, std::int64_t ns);
    void packet(Sequence& sequence, std::int64_t ns);
    void append_packet();
    std::uint64_t counter_track(std::uint32_t group, std::string_view name);
    void counter_packet(std::uint64_t track, std::int64_t ns);

    const Plan& plan_;
    ByteSink& sink_;
    Sequence loose_{1};
    std::uint32_t last_id_ = 1;                    ///< of all sequences
    std::vector<std::unique_ptr<Sequence>> rows_;  ///< by track, between begin_row and end_row
    std::unique_ptr<Sequence> counter_;            ///< between begin_counter and end_counter
    Sequence* now_ = &loose_;                      ///< of the event that is being written
    std::int64_t event_ns_ = 0;
    std::int64_t event_end_ns_ = 0;
    std::uint32_t event_track_ = 0;
    bool event_lasts_ = false;
    Category event_category_{};
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
