#include "viewer_export/out/rpc_trees.hpp"

#include <algorithm>
#include <array>

#include "viewer_export/model/call_times.hpp"
#include "viewer_export/out/rpc_edges.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export::rpc {

using model::Call;
using model::Half;
using model::Index;
using model::Job;
using model::kNone;

namespace {

std::int64_t begin_ns(const Job& job, Index call) {
    const Call& of = job.calls[call];
    return job.halves[of.client != kNone ? of.client : of.server].begin_ns;
}

/// At the caller, or where that is not there at the callee; to the last evidence where it has not ended.
std::int64_t duration_ns(const Job& job, Index call) {
    const Call& of = job.calls[call];
    return job.halves[of.client != kNone && job.halves[of.client].shown() ? of.client : of.server]
        .duration_ns();
}

std::string hex(std::uint64_t value) {
    std::array<char, 16> text{};
    schema::write_hex(text.data(), value, text.size());
    return {text.data(), text.size()};
}

}  // namespace

Forest::Forest(const Job& job, bool internal) : job_(job) {
    const std::size_t count = job.calls.size();
    held_.resize(count);
    for (Index i = 0; i < count; ++i) held_[i] = shows(job, job.calls[i], internal);
    // The next one above that is held; parents may stand after their children.
    parent_.assign(count, kNone);
    std::vector<bool> known(count, false);
    std::vector<Index> path;
    for (Index start = 0; start < count; ++start) {
        for (Index at = start; at != kNone && !known[at]; at = job.calls[at].parent)
            path.push_back(at);
        for (; !path.empty(); path.pop_back()) {
            const Index at = path.back();
            const Index above = job.calls[at].parent;
            if (above != kNone) parent_[at] = held_[above] ? above : parent_[above];
            known[at] = true;
        }
    }
    first_.assign(count + 1, 0);
    for (Index i = 0; i < count; ++i) {
        if (!held_[i]) continue;
        if (parent_[i] != kNone) {
            ++first_[parent_[i] + 1];
        } else if (model::is_message(job, job.calls[i])) {
            ++lone_messages_;
        } else {
            roots_.push_back(i);
        }
    }
    for (std::size_t i = 1; i <= count; ++i) first_[i] += first_[i - 1];
    children_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (Index i = 0; i < count; ++i) {
        if (held_[i] && parent_[i] != kNone) children_[next[parent_[i]]++] = i;
    }
    for (Index i = 0; i < count; ++i) {
        std::stable_sort(children_.begin() + static_cast<std::ptrdiff_t>(first_[i]),
                         children_.begin() + static_cast<std::ptrdiff_t>(first_[i + 1]),
                         [&](Index a, Index b) { return begin_ns(job, a) < begin_ns(job, b); });
    }
    std::stable_sort(roots_.begin(), roots_.end(),
                     [&](Index a, Index b) { return duration_ns(job, a) > duration_ns(job, b); });
    // From the leaves up: parents stand before their children in `order`.
    sizes_.assign(count, 1);
    std::vector<Index> order(roots_);
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (const Index child : children(order[i])) order.push_back(child);
    }
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        if (parent_[*at] != kNone) sizes_[parent_[*at]] += sizes_[*at];
    }
}

std::span<const Index> Forest::children(Index call) const {
    return std::span(children_).subspan(first_[call], first_[call + 1] - first_[call]);
}

bool Forest::parent_missing(Index call) const {
    const Index above = job_.calls[call].parent;
    return parent_[call] == kNone && above != kNone && !model::is_real(job_, job_.calls[above]);
}

std::vector<TreeRow> tree_rows(const Job& job, const Forest& forest, Index root,
                               const TreeBounds& bounds) {
    std::vector<TreeRow> rows;
    std::size_t calls = 0;
    std::vector<TreeRow> next = {{root, 0, 0}};  // from the back
    while (!next.empty()) {
        const TreeRow row = next.back();
        next.pop_back();
        if (row.left_out > 0) {
            rows.push_back(row);
            continue;
        }
        rows.push_back(row);
        ++calls;
        std::vector<Index> chosen(forest.children(row.call).begin(),
                                  forest.children(row.call).end());
        // What waits in `next` will be shown, too.
        const std::size_t room =
            bounds.calls > calls + next.size() ? bounds.calls - calls - next.size() : 0;
        const std::size_t most =
            row.depth + 1 >= bounds.depth ? 0 : std::min(bounds.children, room);
        std::uint64_t left_out = 0;
        if (chosen.size() > most) {
            std::vector<Index> longest(chosen);
            std::stable_sort(longest.begin(), longest.end(), [&](Index a, Index b) {
                return duration_ns(job, a) > duration_ns(job, b);
            });
            for (std::size_t i = most; i < longest.size(); ++i) left_out += forest.size(longest[i]);
            longest.resize(most);
            std::erase_if(chosen, [&](Index call) {
                return std::find(longest.begin(), longest.end(), call) == longest.end();
            });
            next.push_back({row.call, row.depth + 1, left_out});
        }
        for (auto child = chosen.rbegin(); child != chosen.rend(); ++child)
            next.push_back({*child, row.depth + 1, 0});
    }
    return rows;
}

const Cells kCallHeader = {"Request", "Status", "At caller", "Service", "Queued",
                           "Rest",    "Node",   "PID",       "Span id"};

std::string trace_text(const Call& call) {
    return hex(call.trace.hi) + hex(call.trace.lo);
}

std::string span_text(const Call& call) {
    return hex(call.span);
}

Cells call_cells(const Job& job, const Forest& forest, const TreeRow& row, bool full_names) {
    const std::string indent(2 * row.depth, ' ');
    if (row.left_out > 0) {
        Cells cells(kCallHeader.size());
        cells[0] = indent + "... " + std::to_string(row.left_out) + " more calls below";
        return cells;
    }
    const Call& call = job.calls[row.call];
    const model::CallParts parts = named_parts(job, call);
    const model::CallTimes times = model::call_times(job, call);
    std::string name = cut_name(parts.method, full_names) + "(" + cut_name(parts.from, full_names) +
                       " -> " + cut_name(parts.to, full_names) + ")";
    if (forest.parent_missing(row.call)) name += " (its caller's request began before the capture)";
    // Where it was served, or not at all.
    const bool served = call.server != kNone;
    const model::Process* process =
        served ? &job.processes[job.halves[call.server].process] : nullptr;
    return {indent + name,
            outcome(job, call),
            time_text(times.caller_ns),
            time_text(times.service_ns),
            time_text(times.queued_ns),
            time_text(times.rest_ns),
            served ? printable(job.nodes[process->node].name) : "-",
            served ? std::to_string(process->pid) : "-",
            span_text(call)};
}

void write_call(JsonWriter& json, const Job& job, const Forest& forest, Index index) {
    const Call& call = job.calls[index];
    const model::CallParts parts = named_parts(job, call);
    const model::CallTimes times = model::call_times(job, call);
    json.field("call", index);
    if (forest.parent(index) != kNone) json.field("parent", forest.parent(index));
    if (forest.parent_missing(index)) json.field("parent_missing", true);
    json.field("trace_id", trace_text(call));
    json.field("span_id", span_text(call));
    json.field("caller", parts.from);
    json.field("callee", parts.to);
    json.field("method", parts.method);
    json.field("state", trace::state_text(call));
    json.field("status", outcome(job, call));
    const auto place = [&](const char* key, Index half) {
        if (half == kNone) return;
        const model::Process& process = job.processes[job.halves[half].process];
        json.key(key);
        json.begin_object();
        json.field("node", job.nodes[process.node].name);
        json.field("pid", process.pid);
        if (process.rank >= 0) json.field("rank", process.rank);
        json.end_object();
    };
    place("called_from", call.client);
    place("served_at", call.server);
    field_us(json, "caller_us", times.caller_ns);
    field_us(json, "service_us", times.service_ns);
    field_us(json, "queued_us", times.queued_ns);
    field_us(json, "rest_us", times.rest_ns);
    field_us(json, "request_us", times.request_ns);
    field_us(json, "reply_us", times.reply_ns);
    if (times.request_ns) json.field_us("bound_us", times.bound_ns);
}

void left_align(std::vector<Cells>& rows, std::size_t column) {
    std::size_t widest = 0;
    for (const Cells& row : rows) widest = std::max(widest, length_of(row[column]));
    for (Cells& row : rows) row[column].append(widest - length_of(row[column]), ' ');
}

std::string slowest_text(const Job& job, const Forest& forest, std::size_t count, bool full_names) {
    std::vector<std::vector<Cells>> blocks;
    std::vector<Cells> all;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < std::min(count, forest.roots().size()); ++i) {
        const std::size_t before = all.size();
        for (const TreeRow& row : tree_rows(job, forest, forest.roots()[i], {}))
            all.push_back(call_cells(job, forest, row, full_names));
        sizes.push_back(all.size() - before);
    }
    left_align(all, 0);
    auto at = all.begin();
    for (const std::size_t size : sizes) {
        const auto end = at + static_cast<std::ptrdiff_t>(size);
        blocks.emplace_back(at, end);
        at = end;
    }
    return right_aligned(kCallHeader, blocks);
}

void write_slowest(JsonWriter& json, const Job& job, const Forest& forest, std::size_t count) {
    json.begin_array();
    for (std::size_t i = 0; i < std::min(count, forest.roots().size()); ++i) {
        const Index root = forest.roots()[i];
        json.begin_object();
        json.field("trace_id", trace_text(job.calls[root]));
        json.field("calls_in_all", forest.size(root));
        json.key("calls");
        json.begin_array();
        std::uint64_t left_out = 0;
        for (const TreeRow& row : tree_rows(job, forest, root, {})) {
            left_out += row.left_out;
            if (row.left_out > 0) continue;
            json.begin_object();
            json.field("depth", static_cast<std::uint64_t>(row.depth));
            write_call(json, job, forest, row.call);
            json.end_object();
        }
        json.end_array();
        json.field("left_out", left_out);
        json.end_object();
    }
    json.end_array();
}

}  // namespace ringside::viewer_export::rpc
