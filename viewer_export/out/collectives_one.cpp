// One collective: when each of its members arrived and left, who came last, who is missing.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "viewer_export/out/collectives_view.hpp"
#include "viewer_export/out/gpu_place.hpp"
#include "viewer_export/out/rpc_edges.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export {

using model::Arrival;
using model::Collective;
using model::Collectives;
using model::Index;
using model::Job;

namespace collectives {

namespace {

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
    constexpr std::size_t kMost = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(kMost, ranks.size()); ++i)
        text += (i == 0 ? "rank " : ", ") + std::to_string(ranks[i]);
    if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
    return text;
}

}  // namespace

std::string member_text(const Job& job, Index process, std::int32_t rank) {
    return rank < 0 ? place_text(job, process) : "rank " + std::to_string(rank);
}

std::string id_text(const Collectives& all, const Collective& collective) {
    return printable(all.groups[collective.group].label) + ":" +
           std::to_string(collective.sequence);
}

std::string missing_text(const Collectives& all, const Collective& collective) {
    if (collective.complete) return {};
    const auto ranks = all.missing(collective);
    const std::uint32_t size = all.groups[collective.group].size;
    const std::string known = ranks.empty() ? "" : ": " + ranks_text(ranks);
    return std::to_string(size - collective.count) + " of " + std::to_string(size) +
           " members not seen in it" + known;
}

std::string differ_text(const Job& job, const Collectives& all, const Collective& collective) {
    if (!collective.names_differ) return {};
    std::map<Index, std::vector<std::int32_t>> others;
    for (const Arrival* each = all.begin(collective); each != all.end(collective); ++each) {
        if (each->name != collective.name) others[each->name].push_back(each->rank);
    }
    std::string text;
    for (auto& [name, ranks] : others) {
        std::sort(ranks.begin(), ranks.end());
        text += (text.empty() ? "" : ", ") + ranks_text(ranks) +
                (ranks.size() == 1 ? " is in " : " are in ") + printable(job.names[name]);
    }
    return text + " where others are in " + printable(job.names[collective.name]);
}

void write_one(JsonWriter& json, const Job& job, const Collectives& all,
               const Collective& collective) {
    const Arrival* const last = all.last(collective);
    json.begin_object();
    json.field("id", id_text(all, collective));
    json.field("group", all.groups[collective.group].label);
    json.field("sequence", collective.sequence);
    json.field("function", job.names[collective.name]);
    json.field("members", all.groups[collective.group].size);
    json.field("complete", collective.complete);
    if (last != nullptr) json.field("last", last->rank);
    if (collective.count > 1) json.field_us("gap_us", collective.gap_ns);
    if (collective.bound_ns >= 0) json.field_us("bound_us", collective.bound_ns);
    rpc::field_us(json, "work_us", all.work_ns(collective));
    rpc::field_us(json, "wait_us", all.wait_ns(collective));
    json.key("missing");
    json.begin_array();
    for (const std::int32_t rank : all.missing(collective)) json.value(rank);
    json.end_array();
    json.key("arrivals");
    json.begin_array();
    for (const Arrival* each = all.begin(collective); each != all.end(collective); ++each) {
        const model::Process& process = job.processes[each->process];
        json.begin_object();
        json.field("rank", each->rank);
        json.field("node", job.nodes[process.node].name);
        json.field("pid", process.pid);
        json.field("function", job.names[each->name]);
        json.field("begin_ns", each->begin_ns);
        json.field_us("late_us", each->begin_ns - all.begin(collective)->begin_ns);
        if (each->end == model::End::kEnded)
            json.field_us("time_us", each->end_ns - each->begin_ns);
        if (each->own_ns >= 0) json.field_us("own_before_us", each->own_ns);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

}  // namespace collectives

namespace {

schema::Result<Collective> find(const Collectives& all, const std::string& which) {
    const auto colon = which.rfind(':');
    std::uint64_t sequence = 0;
    const char* const end = which.data() + which.size();
    if (colon == std::string::npos ||
        std::from_chars(which.data() + colon + 1, end, sequence).ptr != end || sequence == 0) {
        return schema::Error{schema::ErrorCode::kUsage,
                             "--collective " + which +
                                 ": write GROUP:SEQUENCE, as in world:12; `ringside rpc --json` "
                                 "has those of the slowest, an export those of all"};
    }
    const std::string label = which.substr(0, colon);
    for (const Collective& each : all.all) {
        if (each.sequence == sequence && all.groups[each.group].label == label) return each;
    }
    std::string groups;
    for (const auto& group : all.groups) groups += (groups.empty() ? "" : ", ") + group.label;
    return schema::Error{schema::ErrorCode::kNothingMatched,
                         "--collective " + which + ": no group has one of that number here; " +
                             (groups.empty() ? "no collective was recorded" : "groups: " + groups)};
}

const Cells kHeader = {"Member", "Node", "Pid", "Function", "Late", "Wait", "Time", "Own before"};

std::string text_of(const Job& job, const Collectives& all, const Collective& collective) {
    std::vector<Cells> rows;
    const std::int64_t last = (all.end(collective) - 1)->begin_ns;
    for (const Arrival* each = all.begin(collective); each != all.end(collective); ++each) {
        const model::Process& process = job.processes[each->process];
        const std::string_view open = trace::end_text(job, each->end, each->process);
        rows.push_back({collectives::member_text(job, each->process, each->rank),
                        printable(job.nodes[process.node].name), std::to_string(process.pid),
                        rpc::cut_name(job.names[each->name], false),
                        rpc::time_text(each->begin_ns - all.begin(collective)->begin_ns),
                        collective.complete ? rpc::time_text(last - each->begin_ns) : "-",
                        open.empty() ? rpc::time_text(each->end_ns - each->begin_ns) : "not ended",
                        each->own_ns < 0 ? "-" : rpc::time_text(each->own_ns)});
    }
    std::string text = collectives::id_text(all, collective) + " " +
                       printable(job.names[collective.name]) + "\n" +
                       right_aligned(kHeader, {rows}) +
                       "Late: after the first arrival; own before: since it was last in a "
                       "collective, less other calls of MPI\n";
    const Arrival* const late = all.last(collective);
    if (late != nullptr) {
        text += "last: " + collectives::member_text(job, late->process, late->rank) + ", by " +
                rpc::time_text(collective.gap_ns) + "; others waited " +
                rpc::time_text(all.wait_ns(collective)) + " for it\n";
    } else if (collective.complete && collective.count > 1) {
        text += "last: undetermined (the clocks can't tell)\n";
    }
    for (const std::string& line : {collectives::missing_text(all, collective),
                                    collectives::differ_text(job, all, collective)}) {
        if (!line.empty()) text += line + "\n";
    }
    return text + clock_line(job) + "\n";
}

}  // namespace

schema::Result<std::string> render_collective(const Job& job, const std::string& which) {
    const Collectives all = model::join_collectives(job);
    const auto found = find(all, which);
    if (!found) return found.error();
    return text_of(job, all, *found);
}

schema::Result<std::string> collective_json(const Job& job, const std::string& which) {
    const Collectives all = model::join_collectives(job);
    const auto found = find(all, which);
    if (!found) return found.error();
    StringSink sink;
    {
        JsonWriter json(sink);
        collectives::write_one(json, job, all, *found);
        json.text("\n");
    }
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
