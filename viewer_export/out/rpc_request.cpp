// One request: which one is meant, the calls that it caused on every node, and what ran there while each was served.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "viewer_export/out/rpc_caused.hpp"
#include "viewer_export/out/rpc_edges.hpp"
#include "viewer_export/out/rpc_trees.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export {

using model::Call;
using model::Index;
using model::Job;
using model::kNone;
using rpc::Caused;
using rpc::Event;
using rpc::Forest;
using rpc::TreeRow;

namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr rpc::TreeBounds kBounds = {.depth = 24, .children = 32, .calls = 200};
constexpr rpc::TreeBounds kEverything = {
    .depth = ~std::size_t{0}, .children = ~std::size_t{0}, .calls = ~std::size_t{0} >> 1};

std::string lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

/// The calls that an id means: the roots of a trace, or one call.
schema::Result<std::vector<Index>> find_request(const Job& job, const Forest& forest,
                                                const std::string& asked) {
    const std::string id = lower(asked);
    if (id.empty() || id.size() > kTraceDigits ||
        id.find_first_not_of("0123456789abcdef") != std::string::npos) {
        return schema::Error{schema::ErrorCode::kUsage,
                             "--request " + asked +
                                 ": no id; write 32 hexadecimal digits of a trace id, 16 of a span "
                                 "id, or how one begins"};
    }
    std::map<std::string, std::vector<Index>> traces;
    std::map<std::pair<std::string, Index>, Index> spans;
    for (Index i = 0; i < job.calls.size(); ++i) {
        const Call& call = job.calls[i];
        if (!forest.holds(i)) continue;
        const Index above = forest.parent(i);
        // A trace id of lone messages is their job's, not a request's.
        const bool top = above == kNone ? !model::is_message(job, call)
                                        : !(job.calls[above].trace == call.trace);
        if (top && call.trace.valid()) {
            const std::string trace = rpc::trace_text(call);
            if (trace.starts_with(id)) traces[trace].push_back(i);
        }
        if (id.size() <= kSpanDigits && call.span != 0) {
            const std::string span = rpc::span_text(call);
            if (span.starts_with(id)) spans[{span, i}] = i;
        }
    }
    // A whole span id is meant as one.
    if (id.size() == kSpanDigits && !spans.empty()) traces.clear();
    if (traces.empty() && spans.empty()) {
        return schema::Error{schema::ErrorCode::kNothingMatched,
                             "--request " + asked +
                                 ": no request has a trace or span id that begins so; `ringside "
                                 "rpc` prints those of the slowest, an export those of all"};
    }
    if (traces.size() + spans.size() > 1) {
        std::string list;
        std::size_t left = 5;
        const auto tell = [&](const std::string& text) {
            if (left > 0) list += (list.empty() ? "" : ", ") + text;
            left -= left > 0;
        };
        for (const auto& [trace, roots] : traces) tell("trace " + trace);
        for (const auto& [span, call] : spans)
            tell("span " + span.first + " of trace " + rpc::trace_text(job.calls[call]));
        return schema::Error{schema::ErrorCode::kUsage,
                             "--request " + asked + ": " +
                                 std::to_string(traces.size() + spans.size()) +
                                 " ids begin so: " + list + "; write more of one"};
    }
    if (!traces.empty()) return traces.begin()->second;
    return std::vector<Index>{spans.begin()->second};
}

std::string unknown_text(const Job& job, const rpc::Unknown& unknown) {
    if (unknown.events == 0) return {};
    std::set<Index> processes;
    for (const Index lane : unknown.lanes) processes.insert(job.lanes[lane].process);
    return "Not shown: " + std::to_string(unknown.events) + " events on " +
           std::to_string(unknown.lanes.size()) + " lanes of " + std::to_string(processes.size()) +
           " processes that served it; records were lost there, and nobody knows whether they "
           "belong to it\n";
}

const Cells kHeader = {"Request, and what ran",
                       "What",
                       "Count",
                       "Total",
                       "Self",
                       "Service",
                       "Queued",
                       "Rest",
                       "Status",
                       "Node",
                       "PID",
                       "Span id"};

/// At caller and the rest of a call's cells, where rows of what ran have counts and times.
Cells call_row(Cells call) {
    return {std::move(call[0]),
            "call",
            "",
            std::move(call[2]),
            "",
            std::move(call[3]),
            std::move(call[4]),
            std::move(call[5]),
            std::move(call[1]),
            std::move(call[6]),
            std::move(call[7]),
            std::move(call[8])};
}

void add_ran(const Caused& caused, const TreeRow& row, const RpcOptions& options,
             std::vector<Cells>& cells) {
    const auto all = caused.ran(row.call);
    const std::size_t shown =
        options.row_limit == 0 ? all.size() : std::min(all.size(), options.row_limit);
    const std::string indent(2 * row.depth + 4, ' ');
    const auto add = [&](Cells some) {
        some[0] = indent + some[0];
        some.resize(kHeader.size());
        cells.push_back(std::move(some));
    };
    for (std::size_t i = 0; i < shown; ++i) {
        const rpc::RanRow& ran = all[i];
        add({rpc::cut_name(ran.name, options.full_names), ran.what, std::to_string(ran.sums.count),
             rpc::time_text(ran.sums.total_ns), rpc::time_text(ran.sums.self_ns)});
    }
    if (shown < all.size())
        add({"... " + std::to_string(all.size() - shown) + " more names (--row-limit 0)"});
}

void write_event(JsonWriter& json, const Job& job, const Call& call, const Event& event) {
    json.begin_object();
    json.field("what", event.what);
    json.field("name", event.name);
    // Of one clock: since the request arrived where it ran.
    json.field_us("after_arrival_us", event.begin_ns - job.halves[call.server].begin_ns);
    json.field_us("duration_us", event.total_ns);
    json.field_us("self_us", event.self_ns);
    if (!event.ended) json.field("ended", false);
    if (event.lane != kNone) {
        json.field("tid", job.lanes[event.lane].tid);
        if (event.position != model::kNoPosition)
            json.field("record",
                       trace::lane_text(job, event.lane) + "." + std::to_string(event.position));
    }
    json.end_object();
}

void write_ran(JsonWriter& json, const Job& job, const Caused& caused, Index index) {
    json.key("ran");
    json.begin_array();
    for (const rpc::RanRow& ran : caused.ran(index)) {
        json.begin_object();
        json.field("what", ran.what);
        json.field("name", ran.name);
        json.field("count", ran.sums.count);
        json.field_us("total_us", ran.sums.total_ns);
        json.field_us("self_us", ran.sums.self_ns);
        json.end_object();
    }
    json.end_array();
    json.key("events");
    json.begin_array();
    for (const Event& event : caused.events(index)) write_event(json, job, job.calls[index], event);
    json.end_array();
}

}  // namespace

schema::Result<std::string> render_request(const Job& job, const std::string& id,
                                           const RpcOptions& options) {
    const Forest forest(job, options.internal);
    const auto roots = find_request(job, forest, id);
    if (!roots) return roots.error();
    const Caused caused(job, forest, *roots);
    std::vector<Cells> cells;
    std::uint64_t calls = 0;
    for (const Index root : *roots) {
        calls += forest.size(root);
        for (const TreeRow& row : rpc::tree_rows(job, forest, root, kBounds)) {
            cells.push_back(call_row(rpc::call_cells(job, forest, row, options.full_names)));
            if (row.left_out > 0) {
                cells.back()[1].clear();
            } else {
                add_ran(caused, row, options, cells);
            }
        }
    }
    rpc::left_align(cells, 0);
    return "Trace " + rpc::trace_text(job.calls[roots->front()]) + ": " + std::to_string(calls) +
           (calls == 1 ? " call\n" : " calls\n") + right_aligned(kHeader, {cells}) +
           "A call's total is its time at the caller; what ran stands under the call that was "
           "served then, wherever that was\n" +
           unknown_text(job, caused.unknown()) + clock_line(job) + "\n";
}

schema::Result<std::string> request_json(const Job& job, const std::string& id,
                                         const RpcOptions& options) {
    const Forest forest(job, options.internal);
    const auto roots = find_request(job, forest, id);
    if (!roots) return roots.error();
    const Caused caused(job, forest, *roots);
    StringSink sink;
    {
        JsonWriter json(sink);
        json.begin_object();
        json.field("trace_id", rpc::trace_text(job.calls[roots->front()]));
        json.key("calls");
        json.begin_array();
        for (const Index root : *roots) {
            for (const TreeRow& row : rpc::tree_rows(job, forest, root, kEverything)) {
                json.begin_object();
                json.field("depth", static_cast<std::uint64_t>(row.depth));
                rpc::write_call(json, job, forest, row.call);
                write_ran(json, job, caused, row.call);
                json.end_object();
            }
        }
        json.end_array();
        json.key("unknown");
        json.begin_object();
        json.field("events", caused.unknown().events);
        json.field("lanes", static_cast<std::uint64_t>(caused.unknown().lanes.size()));
        json.end_object();
        json.field_us("clock_bound_us", job.clock_bound_ns());
        json.field("corrected", job.corrected);
        json.end_object();
        json.text("\n");
    }
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
