// The view's parts put together: edges, what each process served at once, the slowest requests, how far it can be trusted.
#include "viewer_export/out/rpc_view.hpp"

#include <cstdio>
#include <utility>

#include "viewer_export/model/rpc_load.hpp"
#include "viewer_export/out/collectives_view.hpp"
#include "viewer_export/out/gpu_place.hpp"
#include "viewer_export/out/rpc_edges.hpp"
#include "viewer_export/out/rpc_trees.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/waits_view.hpp"

namespace ringside::viewer_export {

using model::Job;
using model::ServiceLoad;

namespace {

const Cells kLoadHeader = {"Served by", "Requests",   "Most at once",  "Mean",      "At most for",
                           "Came then", "Queued p50", "Rest p50",      "Came else", "Queued p50",
                           "Rest p50",  "Over",       "Served at once"};

constexpr const char* kNotes =
    "Percentiles are of the nearest rank. Service: from when a thread took the request to its "
    "answer; queued: from its arrival until then; rest:\n"
    "at the caller less service, so the network and the queue. Request, reply: one way, medians, "
    "by two nodes' clocks: right within +-. Columns\nthat are empty in all rows are left out.\n";

std::string worker_name(const Job& job, model::Index process) {
    const std::string& name = job.processes[process].worker_name;
    return name.empty() ? place_text(job, process) : printable(name);
}

/// A character a part of the time: how many were served at once.
std::string strip(const ServiceLoad& load) {
    std::string text;
    for (const std::uint32_t most : load.parts)
        text += most == 0 ? '.' : most > 9 ? '+' : static_cast<char>('0' + most);
    return text;
}

std::vector<ServiceLoad> loads_of(const Job& job, const RpcOptions& options) {
    return model::service_loads(job, [&](const model::Call& call) {
        const model::Half& half = job.halves[call.server];
        return !half.outside && (options.internal || !model::is_internal(job, call));
    });
}

std::string load_text(const Job& job, std::vector<ServiceLoad>& loads) {
    std::vector<Cells> rows;
    std::string unknown;
    for (ServiceLoad& load : loads) {
        char mean[32];
        std::snprintf(mean, sizeof mean, "%.2f", load.mean());
        Cells cells = {worker_name(job, load.process), std::to_string(load.requests),
                       std::to_string(load.most()), mean, rpc::time_text(load.at_once_ns.back())};
        for (model::Waits* waits : {&load.at_max, &load.below}) {
            cells.push_back(std::to_string(waits->requests));
            cells.push_back(rpc::time_text(waits->queued.percentile(50)));
            cells.push_back(rpc::time_text(waits->rest.percentile(50)));
        }
        cells.push_back(rpc::time_text(load.duration_ns()));
        cells.push_back(strip(load));
        rows.push_back(std::move(cells));
        if (load.unknown_ns > 0)
            unknown += "Served by " + worker_name(job, load.process) + ": for " +
                       rpc::time_text(load.unknown_ns) +
                       " of its threads' time nobody knows which request they served (records "
                       "were lost): it may have been more at once\n";
    }
    return right_aligned(kLoadHeader, {rows}) + unknown;
}

void write_load(JsonWriter& json, const Job& job, ServiceLoad& load) {
    const model::Process& process = job.processes[load.process];
    json.begin_object();
    json.field("worker", process.worker_name);
    json.field("node", job.nodes[process.node].name);
    json.field("pid", process.pid);
    if (process.rank >= 0) json.field("rank", process.rank);
    json.field("requests", load.requests);
    json.field("most_at_once", static_cast<std::uint64_t>(load.most()));
    json.field("mean_at_once", load.mean());
    json.field_us("time_us", load.duration_ns());
    json.key("at_once_us");
    json.begin_array();
    for (const std::int64_t ns : load.at_once_ns) json.value_us(ns);
    json.end_array();
    json.key("parts");
    json.begin_array();
    for (const std::uint32_t most : load.parts) json.value(most);
    json.end_array();
    for (auto [name, waits] :
         {std::pair{"came_at_most", &load.at_max}, {"came_else", &load.below}}) {
        json.key(name);
        json.begin_object();
        json.field("requests", waits->requests);
        rpc::field_us(json, "queued_p50_us", waits->queued.percentile(50));
        rpc::field_us(json, "queued_p95_us", waits->queued.percentile(95));
        rpc::field_us(json, "rest_p50_us", waits->rest.percentile(50));
        rpc::field_us(json, "rest_p95_us", waits->rest.percentile(95));
        json.end_object();
    }
    json.field_us("unknown_us", load.unknown_ns);
    json.end_object();
}

/// Where there are thousands of them, a tree each would hide the requests.
std::string messages_line(const rpc::Forest& forest) {
    const std::uint64_t count = forest.lone_messages();
    if (count == 0) return {};
    return std::to_string(count) + (count == 1 ? " message" : " messages") +
           " that no request sent: nobody answers, so none is in a tree\n";
}

std::string no_calls(const Job& job) {
    std::string text = "No RPC was recorded";
    if (!job.calls.empty()) return text + " but torch's own (--internal shows them)\n";
    return text +
           ": none was made while the capture ran, or no source saw it. Torch's RPC, gRPC (C++, "
           "Python) and MPI's messages are seen by\n"
           "themselves, others by ringside.client and ringside.server of the API; `ringside ps` "
           "shows each process' "
           "sources, `ringside table` what was recorded\n";
}

}  // namespace

schema::Result<std::string> render_rpc(const Job& job, const RpcOptions& options) {
    auto edges = rpc::edges(job, options);
    if (!edges) return edges.error();
    const std::string collectives = collectives::section(job, options);
    if (edges->empty())
        return collectives.empty() ? no_calls(job) : collectives.substr(1) + clock_line(job) + "\n";
    const rpc::Forest forest(job, options.internal);
    auto loads = loads_of(job, options);
    std::string text = rpc::edges_text(*edges, options) + kNotes;
    if (!loads.empty()) text += "\n" + load_text(job, loads);
    if (options.slowest > 0 && !forest.roots().empty())
        text += "\nSlowest of " + std::to_string(forest.roots().size()) +
                " requests that no other made\n" +
                rpc::slowest_text(job, forest, options.slowest, options.full_names);
    text += messages_line(forest);
    return text + collectives + rpc_line(job, options.internal) + "\n" + clock_line(job) + "\n";
}

schema::Result<std::string> rpc_json(const Job& job, const RpcOptions& options) {
    auto edges = rpc::edges(job, options);
    if (!edges) return edges.error();
    const rpc::Forest forest(job, options.internal);
    StringSink sink;
    {
        JsonWriter json(sink);
        json.begin_object();
        json.field("edges_total", static_cast<std::uint64_t>(edges->size()));
        json.key("edges");
        rpc::write_edges(json, *edges, options);
        json.key("served");
        json.begin_array();
        for (ServiceLoad& load : loads_of(job, options)) write_load(json, job, load);
        json.end_array();
        json.field("requests_total", static_cast<std::uint64_t>(forest.roots().size()));
        json.field("messages_total", forest.lone_messages());
        json.key("slowest");
        rpc::write_slowest(json, job, forest, options.slowest);
        json.key("collectives");
        collectives::write(json, job, options);
        json.field("ambiguous", job.ambiguous);
        json.field("order_violations", job.order_violations);
        json.field("corrected", job.corrected);
        json.field_us("clock_bound_us", job.clock_bound_ns());
        json.key("waiting");
        write_waits(json, job, model::waits_of(job));
        json.end_object();
        json.text("\n");
    }
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
