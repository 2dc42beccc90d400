// The JSON around the events: head, nodes, devices, tail.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "viewer_export/out/chrome_writer.hpp"
#include "viewer_export/out/cost.hpp"
#include "viewer_export/out/file_sink.hpp"
#include "viewer_export/out/gzip_sink.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export {

namespace {

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

/// Every device, at the place of its number where they are one host's: readers look them up by index.
void write_devices(const trace::Plan& plan, JsonWriter& json) {
    const model::Job& job = plan.job;
    std::map<std::pair<std::string, std::uint32_t>, const model::GpuDevice*> devices;
    for (const model::GpuDevice& device : job.gpu_devices) {
        if (!plan.drawn[device.process]) continue;
        devices[{job.nodes[job.processes[device.process].node].host, device.device}] = &device;
    }
    json.key("deviceProperties");
    json.begin_array();
    std::uint32_t next = 0;
    for (const auto& [key, device] : devices) {
        for (; next < std::min(device->device, model::kMostDevices); ++next) {
            json.begin_object();
            json.field("id", next);
            json.end_object();
        }
        next = device->device + 1;
        json.begin_object();
        json.field("id", device->device);
        json.field("name", job.names[device->name]);
        json.field("totalGlobalMem", device->memory_bytes);
        json.field("computeMajor", device->capability_major);
        json.field("computeMinor", device->capability_minor);
        json.field("maxThreadsPerBlock", device->block_threads);
        json.field("maxThreadsPerMultiprocessor", device->processor_threads);
        json.field("regsPerBlock", device->block_registers);
        json.field("regsPerMultiprocessor", device->processor_registers);
        json.field("warpSize", device->warp_threads);
        json.field("sharedMemPerBlock", device->block_shared_bytes);
        json.field("sharedMemPerMultiprocessor", device->processor_shared_bytes);
        json.field("numSms", device->processors);
        json.field("sharedMemPerBlockOptin", device->block_shared_most_bytes);
        json.field("host", key.first);
        json.end_object();
    }
    json.end_array();
}

std::set<std::int32_t> ranks_of(const model::Job& job, const std::vector<bool>& drawn) {
    std::set<std::int32_t> ranks;
    for (model::Index i = 0; i < job.processes.size(); ++i) {
        if (drawn[i] && job.processes[i].rank >= 0) ranks.insert(job.processes[i].rank);
    }
    return ranks;
}

/// Kineto's top level up to the events. Its readers want this order.
void write_head(const trace::Plan& plan, JsonWriter& json) {
    const model::Job& job = plan.job;
    json.begin_object();
    json.field("schemaVersion", 1);
    write_devices(plan, json);
    std::string hosts;
    std::set<std::string> seen;
    for (model::Index i = 0; i < job.processes.size(); ++i) {
        const std::string& host = job.nodes[job.processes[i].node].host;
        if (!plan.drawn[i] || !seen.insert(host).second) continue;
        hosts += (hosts.empty() ? "" : ",") + host;
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
    json.field("attributes_lost", attributes_lost(job));
    json.field("untimed", job.totals.untimed);
    write_nodes(job, json);
    json.end_object();
    json.field("displayTimeUnit", "ms");
    json.field("baseTimeNanoseconds", plan.base_ns);
    json.key("traceEvents");
}

/// What is drawn shows of process groups: gloo's collectives, which bear their group's name, and NCCL's kernels. How many ranks a group has, and what
/// other groups there are, no dump says.
void write_groups(const trace::Plan& plan, JsonWriter& json) {
    const model::Job& job = plan.job;
    std::set<std::string> groups;
    bool gloo = false;
    for (const model::AsyncRange& range : job.asyncs) {
        if (!plan.draws_lane(range.lane) || !job.names[range.name].starts_with("gloo:")) continue;
        gloo = true;
        if (range.attributes >= job.attributes.size()) continue;
        const model::Index group = job.attributes[range.attributes].category;
        if (group != model::kNone) groups.insert(job.names[group]);
    }
    const bool nccl =
        std::any_of(job.gpu_work.begin(), job.gpu_work.end(), [&](const model::GpuWork& work) {
            return plan.drawn[work.process] && plan.work_names.communicates(work);
        });
    if (gloo || nccl) json.field("backend", nccl ? (gloo ? "cpu:gloo,cuda:nccl" : "nccl") : "gloo");
    if (groups.empty()) return;
    json.key("pg_config");
    json.begin_array();
    for (const std::string& group : groups) {
        json.begin_object();
        json.field("pg_name", group);
        json.field("backend_config", "gloo");
        json.end_object();
    }
    json.end_array();
}

void write_tail(const trace::Plan& plan, const std::string& name, JsonWriter& json) {
    const std::set<std::int32_t> ranks = ranks_of(plan.job, plan.drawn);
    // A file of several ranks is none of them: tools for one rank then see no distributedInfo rather than a wrong one.
    if (ranks.size() == 1) {
        const std::vector<bool> everyone(plan.drawn.size(), true);
        const std::set<std::int32_t> world = ranks_of(plan.job, everyone);
        json.key("distributedInfo");
        json.begin_object();
        json.field("rank", *ranks.begin());
        // No dump says how many there are: it is told where none is missing between those that are here.
        if (*world.begin() == 0 && *world.rbegin() + 1 == static_cast<std::int32_t>(world.size()))
            json.field("world_size", static_cast<std::uint64_t>(world.size()));
        write_groups(plan, json);
        json.end_object();
    }
    json.field("traceName", name);
    json.end_object();
    json.text("\n");
}

}  // namespace

schema::Result<TraceCounts> write_chrome(const model::Job& job, const std::filesystem::path& path,
                                         const TraceOptions& options) {
    FileSink file(path);
    if (auto opened = file.open(); !opened) return opened.error();
    std::optional<GzipSink> gzip;
    if (path.extension() == ".gz") gzip.emplace(file);
    const trace::Plan plan(job, options);
    JsonWriter json(gzip ? static_cast<ByteSink&>(*gzip) : file);
    write_head(plan, json);
    json.begin_array();
    trace::ChromeWriter writer(plan, json);
    TraceCounts counts = trace::Walk(plan, writer, options.tell).write();
    json.text("\n");
    json.end_array();
    write_tail(plan, options.trace_name.empty() ? path.string() : options.trace_name, json);
    json.flush();
    if (gzip) gzip->finish();
    counts.bytes = gzip ? gzip->bytes() : json.bytes();
    if (auto committed = file.commit(); !committed) return committed.error();
    return counts;
}

}  // namespace ringside::viewer_export
