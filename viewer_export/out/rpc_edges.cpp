#include "viewer_export/out/rpc_edges.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/out/gpu_place.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export {

namespace {

using rpc::Edge;

struct SortKey {
    std::string_view name;
    std::int64_t (*value)(Edge& edge);
};

std::int64_t counted(std::uint64_t count) {
    return static_cast<std::int64_t>(count);
}

constexpr std::array kSortKeys = {
    SortKey{"total", [](Edge& edge) { return edge.total_ns; }},
    SortKey{"calls", [](Edge& edge) { return counted(edge.calls); }},
    SortKey{"errors", [](Edge& edge) { return counted(edge.errors); }},
    SortKey{"p50", [](Edge& edge) { return edge.at_caller.percentile(50).value_or(-1); }},
    SortKey{"p95", [](Edge& edge) { return edge.at_caller.percentile(95).value_or(-1); }},
    SortKey{"p99", [](Edge& edge) { return edge.at_caller.percentile(99).value_or(-1); }},
    SortKey{"service_p95", [](Edge& edge) { return edge.service.percentile(95).value_or(-1); }},
    SortKey{"queued_p95", [](Edge& edge) { return edge.queued.percentile(95).value_or(-1); }},
    SortKey{"rest_p95", [](Edge& edge) { return edge.rest.percentile(95).value_or(-1); }}};

}  // namespace

const std::vector<std::string_view>& rpc_sort_keys() {
    static const std::vector<std::string_view> kKeys = [] {
        std::vector<std::string_view> keys;
        keys.reserve(kSortKeys.size());
        for (const SortKey& key : kSortKeys) keys.push_back(key.name);
        return keys;
    }();
    return kKeys;
}

namespace rpc {

using model::Call;
using model::CallState;
using model::End;
using model::Half;
using model::Job;
using model::kNone;

namespace {

std::string place_of(const Job& job, model::Index half) {
    return half == kNone ? "?" : place_text(job, job.halves[half].process);
}

/// The caller's, where its half is there: what it was told is what counts.
const Half& decisive_half(const Job& job, const Call& call) {
    return job.halves[call.client != kNone && job.halves[call.client].shown() ? call.client
                                                                              : call.server];
}

void add(const Job& job, const Call& call, Edge& edge) {
    ++edge.calls;
    const Half& half = decisive_half(job, call);
    edge.messages = half.of_message();
    if (half.ended() && half.status != schema::RpcStatus::kOk &&
        half.status != schema::RpcStatus::kSent) {
        ++edge.failed[trace::status_text(half.status)];
        ++edge.errors;
    }
    edge.cut += call.state == CallState::kCut;
    edge.orphans += call.state == CallState::kOrphan;
    edge.unfinished += call.unfinished || half.end == End::kUnfinished;
    edge.open += half.end == End::kOpen && !call.unfinished;
    const model::CallTimes times = model::call_times(job, call);
    if (times.caller_ns) model::add_to(edge.total_ns, *times.caller_ns);
    edge.at_caller.add(times.caller_ns);
    edge.service.add(times.service_ns);
    edge.queued.add(times.queued_ns);
    edge.rest.add(times.rest_ns);
    edge.request.add(times.request_ns);
    edge.reply.add(times.reply_ns);
    edge.bound_ns = std::max(edge.bound_ns, times.bound_ns);
}

const Cells kHeader = {"Caller",  "Callee",      "Method",    "Calls",      "Errors", "Cut",
                       "Orphans", "Unfinished",  "Open",      "Total",      "p50",    "p95",
                       "p99",     "Service p50", "p95",       "Queued p50", "p95",    "Rest p50",
                       "p95",     "Request p50", "Reply p50", "+-"};

constexpr std::size_t kFirstThatMayBeSilent = 5;  // Cut

std::string errors_text(const Edge& edge) {
    std::string text;
    for (const auto& [status, count] : edge.failed)
        text.append(text.empty() ? "" : ", ")
            .append(std::to_string(count))
            .append(" ")
            .append(status);
    return text.empty() ? "0" : text;
}

Cells cells_of(Edge& edge, bool full_names) {
    Cells cells = {cut_name(edge.caller, full_names), cut_name(edge.callee, full_names),
                   cut_name(edge.method, full_names), std::to_string(edge.calls),
                   errors_text(edge)};
    for (const std::uint64_t count : {edge.cut, edge.orphans, edge.unfinished, edge.open})
        cells.push_back(std::to_string(count));
    cells.push_back(time_text(edge.total_ns));
    for (const std::uint64_t percent : {50, 95, 99})
        cells.push_back(time_text(edge.at_caller.percentile(percent)));
    for (model::Durations* part : {&edge.service, &edge.queued, &edge.rest}) {
        cells.push_back(time_text(part->percentile(50)));
        cells.push_back(time_text(part->percentile(95)));
    }
    cells.push_back(time_text(edge.request.percentile(50)));
    cells.push_back(time_text(edge.reply.percentile(50)));
    cells.push_back(edge.request.size() == 0 ? "-" : time_text(edge.bound_ns));
    return cells;
}

void write_durations(JsonWriter& json, std::string_view name, model::Durations& durations,
                     bool applies = true) {
    json.key(name);
    if (!applies) return json.null();
    json.begin_object();
    json.field("count", static_cast<std::uint64_t>(durations.size()));
    field_us(json, "p50", durations.percentile(50));
    field_us(json, "p95", durations.percentile(95));
    field_us(json, "p99", durations.percentile(99));
    json.end_object();
}

void write_edge(JsonWriter& json, Edge& edge) {
    json.begin_object();
    json.field("caller", edge.caller);
    json.field("callee", edge.callee);
    json.field("method", edge.method);
    json.field("messages", edge.messages);
    json.field("calls", edge.calls);
    json.field("errors", edge.errors);
    json.key("errors_by_status");
    json.begin_object();
    for (const auto& [status, count] : edge.failed) json.field(status, count);
    json.end_object();
    json.field("cut", edge.cut);
    json.field("orphans", edge.orphans);
    json.field("unfinished", edge.unfinished);
    json.field("open", edge.open);
    json.field_us("total_us", edge.total_ns);
    write_durations(json, "caller_us", edge.at_caller);
    write_durations(json, "service_us", edge.service, !edge.messages);
    write_durations(json, "queued_us", edge.queued, !edge.messages);
    write_durations(json, "rest_us", edge.rest, !edge.messages);
    write_durations(json, "request_us", edge.request);
    write_durations(json, "reply_us", edge.reply, !edge.messages);
    if (edge.request.size() > 0) json.field_us("bound_us", edge.bound_ns);
    json.end_object();
}

}  // namespace

bool shows(const Job& job, const Call& call, bool internal) {
    return model::is_real(job, call) && (internal || !model::is_internal(job, call));
}

model::CallParts named_parts(const Job& job, const Call& call) {
    model::CallParts parts = model::parts_of(job, call);
    if (parts.from.empty()) parts.from = place_of(job, call.client);
    if (parts.to.empty()) parts.to = place_of(job, call.server);
    return parts;
}

std::string outcome(const Job& job, const Call& call) {
    const Half& half = decisive_half(job, call);
    std::string text(trace::status_text(half.status));
    if (half.end == End::kOpen) text = "open";
    if (call.unfinished || half.end == End::kUnfinished) text = "unfinished";
    if (call.state == CallState::kOrphan) text += ", orphan";
    if (call.state == CallState::kCut) text += ", cut";
    return text;
}

std::string cut_name(std::string name, bool full) {
    constexpr std::size_t kMost = 55;  // the table's
    name = printable(std::move(name));
    return full || length_of(name) <= kMost ? name : first_characters(name, kMost - 3) + "...";
}

std::string time_text(std::optional<std::int64_t> ns) {
    return ns ? format_time(static_cast<double>(*ns)) : "-";
}

void field_us(JsonWriter& json, std::string_view name, std::optional<std::int64_t> ns) {
    if (ns) json.field_us(name, *ns);
}

schema::Result<std::vector<Edge>> edges(const Job& job, const RpcOptions& options) {
    const auto* const key =
        std::find_if(kSortKeys.begin(), kSortKeys.end(),
                     [&](const SortKey& each) { return each.name == options.sort_by; });
    if (key == kSortKeys.end()) {
        std::string known;
        for (const SortKey& each : kSortKeys)
            known.append(known.empty() ? "" : ", ").append(each.name);
        return schema::Error{schema::ErrorCode::kUsage,
                             "sort by " + options.sort_by + ": no such key; one of " + known};
    }
    std::map<std::tuple<std::string, std::string, std::string>, Edge> known;
    for (std::size_t i = 0; i < job.calls.size(); ++i) {
        const Call& call = job.calls[i];
        constexpr std::size_t kBetween = 1 << 14;
        if (i % kBetween == 0 && options.tell) options.tell("adding up", i, job.calls.size());
        if (!shows(job, call, options.internal)) continue;
        model::CallParts parts = named_parts(job, call);
        Edge& edge = known[{parts.from, parts.to, parts.method}];
        if (edge.calls == 0) {
            edge.caller = std::move(parts.from);
            edge.callee = std::move(parts.to);
            edge.method = std::move(parts.method);
        }
        add(job, call, edge);
    }
    std::vector<std::pair<std::int64_t, Edge*>> order;
    order.reserve(known.size());
    for (auto& [names, edge] : known) order.emplace_back(key->value(edge), &edge);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Edge> sorted;
    sorted.reserve(order.size());
    for (const auto& [value, edge] : order) sorted.push_back(std::move(*edge));
    return sorted;
}

std::string edges_text(std::vector<Edge>& edges, const RpcOptions& options) {
    const std::size_t shown =
        options.row_limit == 0 ? edges.size() : std::min(edges.size(), options.row_limit);
    Cells header = kHeader;
    std::vector<Cells> cells;
    for (std::size_t i = 0; i < shown; ++i) cells.push_back(cells_of(edges[i], options.full_names));
    drop_silent_columns(header, cells, kFirstThatMayBeSilent);
    return right_aligned(header, {cells}) + left_out_line(edges.size() - shown);
}

void write_edges(JsonWriter& json, std::vector<Edge>& edges, const RpcOptions& options) {
    json.begin_array();
    for (std::size_t i = 0; i < edges.size(); ++i) {
        if (options.row_limit == 0 || i < options.row_limit) write_edge(json, edges[i]);
    }
    json.end_array();
}

}  // namespace rpc

}  // namespace ringside::viewer_export
