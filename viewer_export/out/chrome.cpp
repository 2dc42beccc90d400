#include "viewer_export/out/chrome.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "viewer_export/out/chrome_events.hpp"
#include "viewer_export/out/cost.hpp"
#include "viewer_export/out/file_sink.hpp"
#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export {

namespace {

/// `ts` is relative: an epoch in microseconds loses its nanoseconds in the doubles that readers keep.
std::int64_t first_ns(const model::Job& job) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const model::Lane& lane : job.lanes) {
        if (!lane.ranges.empty()) first = std::min(first, lane.ranges.front().begin_ns);
    }
    for (const model::AsyncRange& range : job.asyncs) first = std::min(first, range.begin_ns);
    for (const model::Value& value : job.values) first = std::min(first, value.ns);
    for (const model::Half& half : job.halves) {
        if (half.shown()) first = std::min(first, half.begin_ns);
    }
    return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

void write_nodes(const model::Job& job, JsonWriter& json) {
    json.key("nodes");
    json.begin_array();
    for (model::Index i = 0; i < job.nodes.size(); ++i) {
        const model::Node& node = job.nodes[i];
        json.begin_object();
        json.field("name", node.name);
        json.field("host", node.host);
        json.field("complete", node.complete);
        if (node.has_clock) {
            json.field("clock_offset_ns", node.clock.offset_ns);
            json.field("clock_drift_ppb", node.clock.drift_ppb);
            json.field("clock_bound_ns", node.clock.bound_ns);
        }
        write_cost(json, job, i);
        json.end_object();
    }
    json.end_array();
}

/// Kineto's top level up to the events. Its readers want this order.
void write_head(const model::Job& job, std::int64_t base_ns, JsonWriter& json) {
    json.begin_object();
    json.field("schemaVersion", 1);
    json.key("deviceProperties");
    json.begin_array();
    json.end_array();
    std::string hosts;
    std::set<std::string> seen;
    for (const model::Node& node : job.nodes) {
        if (!seen.insert(node.host).second) continue;
        hosts += (hosts.empty() ? "" : ",") + node.host;
    }
    json.field("host_name", hosts);
    json.key("ringside");
    json.begin_object();
    json.field("job", job.name);
    json.field("capture_id", job.capture_id);
    json.field("corrected", job.corrected);
    json.field("clock_bound_ns", job.clock_bound_ns());
    json.field("events", job.totals.events);
    json.field("written", job.totals.written);
    json.field("outside", job.totals.outside);
    json.field("lost", job.totals.lost);
    json.field("passed_over", job.totals.passed_over);
    write_nodes(job, json);
    json.end_object();
    json.field("displayTimeUnit", "ms");
    json.field("baseTimeNanoseconds", base_ns);
    json.key("traceEvents");
}

void write_tail(const model::Job& job, const std::string& name, JsonWriter& json) {
    std::set<std::int32_t> ranks;
    for (const model::Process& process : job.processes) {
        if (process.rank >= 0) ranks.insert(process.rank);
    }
    // A file of several ranks is none of them: tools for one rank then see no distributedInfo rather than a wrong one.
    if (ranks.size() == 1) {
        json.key("distributedInfo");
        json.begin_object();
        json.field("rank", *ranks.begin());
        json.end_object();
    }
    json.field("traceName", name);
    json.end_object();
    json.text("\n");
}

}  // namespace

schema::Result<ChromeCounts> write_chrome(const model::Job& job, const std::filesystem::path& path,
                                          const ChromeOptions& options) {
    FileSink sink(path);
    if (auto opened = sink.open(); !opened) return opened.error();
    JsonWriter json(sink);
    const std::int64_t base_ns = first_ns(job);
    write_head(job, base_ns, json);
    json.begin_array();
    chrome::EventWriter events(job, json, base_ns, options.tell);
    events.write();
    json.text("\n");
    json.end_array();
    write_tail(job, options.trace_name.empty() ? path.string() : options.trace_name, json);
    json.flush();
    ChromeCounts counts = events.counts();
    counts.bytes = json.bytes();
    if (auto committed = sink.commit(); !committed) return committed.error();
    return counts;
}

}  // namespace ringside::viewer_export
