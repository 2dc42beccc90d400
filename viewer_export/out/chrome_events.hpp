// The events of a Chrome trace, one after the other into a JsonWriter: slices, instants, counters, flows. Used by chrome.cpp alone, which
// writes what stands before and after them.
#pragma once

#include <string>
#include <vector>

#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/chrome.hpp"
#include "viewer_export/out/chrome_tracks.hpp"
#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export::chrome {

class EventWriter {
public:
    /// @param base_ns  what `ts` counts from
    /// @param tell     borrowed
    EventWriter(const model::Job& job, JsonWriter& json, std::int64_t base_ns,
                const model::Tell& tell);

    /// Writes all events as elements of an array, without its brackets.
    void write();
    const ChromeCounts& counts() const { return counts_; }

private:
    enum Category : std::uint8_t { kCpuOp, kUserAnnotation, kCategories };

    // chrome_events.cpp
    void processes();
    void rows();
    void lanes();
    void lane(model::Index index);
    void range_args(const model::Range& range);
    void asyncs();
    void values();
    void instant(const model::Value& value, std::string_view category);
    void counter(const model::Value& value);
    // chrome_attributes.cpp
    const std::string& set_args(model::Index attributes);
    bool payload(model::Index attributes, std::uint64_t argument);
    void attribute_args(model::Index attributes, std::uint64_t argument);
    void memory_args(const model::Value& value);
    void shapes_args(model::Index shapes);
    // chrome_rpc.cpp
    void halves();
    void half_args(const model::Half& half, const model::Call& call);
    void rpc_flows();
    bool rpc_flow(const model::Half& from, std::int64_t from_ns, model::Index from_index,
                  const model::Half& to, std::int64_t to_ns, model::Index to_index);
    const std::string& request_args(model::Index request);
    // chrome_steps.cpp
    std::uint64_t expected_elements() const;
    void iterations();
    void forward_flows();

    void begin_element();
    void slice_head(std::string_view head, std::uint32_t track, std::int64_t begin_ns,
                    std::int64_t end_ns);
    const std::string& name_head(Category category, model::Index name);
    void end_args(model::End end, model::Index process);
    void flow(char phase, std::string_view category, std::uint64_t id, std::uint32_t track,
              std::int64_t ns);
    void hex(std::uint64_t value, std::uint32_t digits);

    const model::Job& job_;
    JsonWriter& json_;
    std::int64_t base_ns_;
    model::Index memory_name_;  ///< of Job::names; kNone: no memory was recorded
    Tracks tracks_;
    model::RpcNames names_;
    ChromeCounts counts_;
    std::vector<std::string> heads_[kCategories];  ///< by name: up to and with the name
    std::vector<std::string> places_;              ///< by track: `,"pid":1,"tid":2,"ts":`
    std::vector<std::string> sets_;                ///< by attribute set: its args
    std::vector<std::string> requests_;            ///< by half: args of what it serves
    std::uint64_t next_flow_ = 1;
    const model::Tell& tell_;
    std::uint64_t elements_ = 0;  ///< begun
    std::uint64_t expected_elements_;
};

}  // namespace ringside::viewer_export::chrome
