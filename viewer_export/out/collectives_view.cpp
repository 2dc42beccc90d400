#include "viewer_export/out/collectives_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <vector>

#include "schema/sources.hpp"
#include "viewer_export/model/late_rank.hpp"
#include "viewer_export/out/rpc_edges.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export::collectives {

using model::Collective;
using model::CollectiveGroup;
using model::Collectives;
using model::Index;
using model::Job;
using model::Late;
using model::LateRank;
using model::MemberSums;

namespace {

constexpr std::size_t kMostLines = 10;

const Cells kHeader = {"Group",      "Function",        "Count",       "Members", "Complete",
                       "Incomplete", "Work p50",        "p95",         "Max",     "Wait p50",
                       "p95",        "Last most often", "Undetermined"};
constexpr const char* kNotes =
    "Work: from the last arrival to the last end; wait: what all others waited for the last one, "
    "added up; undetermined: two came last within what the\n"
    "clocks of their nodes are right to.\n";
constexpr const char* kHostNote =
    "NCCL's (nccl-...) are what the hosts call: what their GPUs do with it begins later, and may "
    "end in another order.\n";

/// A group's collectives of one function.
struct Row {
    Index group = 0;
    Index name = 0;
    std::uint64_t count = 0;
    std::uint64_t complete = 0;
    std::uint64_t undetermined = 0;
    model::Durations work, wait;
    std::map<Index, std::pair<std::int32_t, std::uint64_t>>
        last;  ///< by process: its rank, how often
};

/// By count.
std::vector<Row> rows_of(const Collectives& all) {
    std::map<std::pair<Index, Index>, Row> rows;
    for (const Collective& each : all.all) {
        Row& row = rows[{each.group, each.name}];
        row.group = each.group;
        row.name = each.name;
        ++row.count;
        row.complete += each.complete;
        row.work.add(all.work_ns(each));
        row.wait.add(all.wait_ns(each));
        if (const model::Arrival* last = all.last(each)) {
            auto& [rank, times] = row.last[last->process];
            rank = last->rank;
            ++times;
        } else {
            row.undetermined += each.complete;
        }
    }
    std::vector<Row> result;
    result.reserve(rows.size());
    for (auto& [key, row] : rows) result.push_back(std::move(row));
    std::stable_sort(result.begin(), result.end(),
                     [](const Row& a, const Row& b) { return a.count > b.count; });
    return result;
}

auto most_often(const Row& row) {
    return std::max_element(row.last.begin(), row.last.end(), [](const auto& a, const auto& b) {
        return a.second.second < b.second.second;
    });
}

std::string last_text(const Job& job, const Row& row) {
    const auto most = most_often(row);
    if (most == row.last.end()) return "-";
    return member_text(job, most->first, most->second.first) + " (" +
           std::to_string(most->second.second) + ")";
}

std::string rows_text(const Job& job, const Collectives& all, std::vector<Row>& rows,
                      const RpcOptions& options) {
    std::vector<Cells> lines;
    for (Row& row : rows) {
        if (options.row_limit != 0 && lines.size() == options.row_limit) break;
        const CollectiveGroup& group = all.groups[row.group];
        lines.push_back(
            {rpc::cut_name(group.label, options.full_names),
             rpc::cut_name(job.names[row.name], options.full_names), std::to_string(row.count),
             std::to_string(group.size), std::to_string(row.complete),
             std::to_string(row.count - row.complete), rpc::time_text(row.work.percentile(50)),
             rpc::time_text(row.work.percentile(95)), rpc::time_text(row.work.percentile(100)),
             rpc::time_text(row.wait.percentile(50)), rpc::time_text(row.wait.percentile(95)),
             last_text(job, row), std::to_string(row.undetermined)});
    }
    std::string text = right_aligned(kHeader, {lines});
    if (lines.size() < rows.size())
        text += std::to_string(rows.size() - lines.size()) + " more rows: --row-limit 0\n";
    return text;
}

const MemberSums& of_most(const CollectiveGroup& group) {
    return group.members[group.late.member];
}

std::string times_text(const CollectiveGroup& group) {
    return "last in " + std::to_string(of_most(group).last) + " of " +
           std::to_string(group.late.complete);
}

/// What is said after "undetermined".
std::string why(const Job& job, const CollectiveGroup& group) {
    const LateRank& late = group.late;
    const std::string who = member_text(job, of_most(group).process, of_most(group).rank);
    switch (late.verdict) {
        case Late::kNamed:
            return {};
        case Late::kAlone:
            return "one member";
        case Late::kIncomplete:
            return "no collective has all " + std::to_string(group.size) +
                   " members in these dumps";
        case Late::kClocks:
            return "in " + std::to_string(late.undetermined) + " of " +
                   std::to_string(late.complete) + " the clocks can't tell who was last";
        case Late::kChance:
            return "nobody is last all along more often than chance would have it: " + who +
                   " in " + std::to_string(of_most(group).last) + " of " +
                   std::to_string(late.complete) + ", most often in " +
                   std::to_string(late.parts_last) + " of " + std::to_string(late.parts) +
                   " parts of the time";
        case Late::kSmall:
            return who + " is " + times_text(group) + ", by " + rpc::time_text(late.gap_ns) +
                   " of " + rpc::time_text(late.period_ns) + " between two: too little";
        case Late::kCameOut:
            return who + " is " + times_text(group) +
                   ", but comes late out of the one before: its own time between two explains "
                   "less than half of it";
    }
    return {};
}

std::string late_text(const Job& job, const CollectiveGroup& group) {
    const MemberSums& most = of_most(group);
    const std::string label = printable(group.label);
    if (group.late.verdict != Late::kNamed)
        return "late: undetermined in " + label + " (" + why(job, group) + ")\n";
    return "late: " + member_text(job, most.process, most.rank) + " of " + label + ": " +
           times_text(group) + ", others waited " + rpc::time_text(most.wait_ns) + " for it, by " +
           rpc::time_text(group.late.gap_ns) + " in the median of " +
           rpc::time_text(group.late.period_ns) + " between two\n";
}

/// The late ones, then why of the others there is none.
std::string late_lines(const Job& job, const Collectives& all) {
    std::string named, others;
    std::size_t left = kMostLines, more = 0;
    for (const CollectiveGroup& group : all.groups) {
        if (group.late.verdict == Late::kNamed) {
            named += late_text(job, group);
        } else if (left > 0) {
            others += late_text(job, group);
            --left;
        } else {
            ++more;
        }
    }
    if (more > 0) others += "late: undetermined in " + std::to_string(more) + " more groups\n";
    return named + others;
}

/// Members in different functions, and who is not there.
std::string odd_lines(const Job& job, const Collectives& all) {
    std::string text;
    std::uint64_t differ = 0, missing = 0;
    for (const Collective& each : all.all) {
        if (each.names_differ && ++differ <= kMostLines)
            text += id_text(all, each) + ": " + differ_text(job, all, each) + "\n";
        // The newest tell what hangs.
        missing += !each.complete;
    }
    if (differ > kMostLines)
        text += std::to_string(differ - kMostLines) + " more with different functions\n";
    if (missing == 0) return text;
    std::vector<const Collective*> newest;
    for (const Collective& each : all.all) {
        if (!each.complete) newest.push_back(&each);
    }
    std::sort(newest.begin(), newest.end(), [&](const Collective* a, const Collective* b) {
        return all.begin(*a)->begin_ns > all.begin(*b)->begin_ns;
    });
    newest.resize(std::min<std::size_t>(newest.size(), 3));
    for (const Collective* each : newest) {
        text += "incomplete: " + id_text(all, *each) + " " + printable(job.names[each->name]) +
                ": " + missing_text(all, *each) + "\n";
    }
    return text;
}

/// Those that took longest from the first arrival on.
std::vector<const Collective*> slowest_of(const Collectives& all, std::size_t count) {
    std::vector<std::pair<std::int64_t, const Collective*>> times;
    for (const Collective& each : all.all) {
        std::int64_t until = 0;
        for (const model::Arrival* arrival = all.begin(each); arrival != all.end(each); ++arrival)
            until = std::max(until, arrival->end_ns);
        times.emplace_back(all.begin(each)->begin_ns - until, &each);
    }
    count = std::min(count, times.size());
    std::partial_sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count),
                      times.end());
    std::vector<const Collective*> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(times[i].second);
    return result;
}

void write_row(JsonWriter& json, const Job& job, const Collectives& all, Row& row) {
    json.begin_object();
    json.field("group", all.groups[row.group].label);
    json.field("function", job.names[row.name]);
    json.field("count", row.count);
    json.field("members", all.groups[row.group].size);
    json.field("complete", row.complete);
    json.field("incomplete", row.count - row.complete);
    rpc::field_us(json, "work_p50_us", row.work.percentile(50));
    rpc::field_us(json, "work_p95_us", row.work.percentile(95));
    rpc::field_us(json, "work_max_us", row.work.percentile(100));
    rpc::field_us(json, "wait_p50_us", row.wait.percentile(50));
    rpc::field_us(json, "wait_p95_us", row.wait.percentile(95));
    if (const auto most = most_often(row); most != row.last.end()) {
        json.field("last_most_often", most->second.first);
        json.field("last_times", most->second.second);
    }
    json.field("undetermined", row.undetermined);
    json.end_object();
}

void write_group(JsonWriter& json, const Job& job, const CollectiveGroup& group) {
    const LateRank& late = group.late;
    json.begin_object();
    json.field("group", group.label);
    json.field("source", source_name(group.source));
    json.field("size", group.size);
    json.field("complete", late.complete);
    json.field("undetermined", late.undetermined);
    if (late.verdict == Late::kNamed) {
        json.field("late", of_most(group).rank);
    } else {
        json.field("late_undetermined", why(job, group));
    }
    json.field_us("gap_p50_us", late.gap_ns);
    json.field_us("own_time_excess_p50_us", late.excess_ns);
    json.field_us("between_p50_us", late.period_ns);
    json.key("members");
    json.begin_array();
    for (const MemberSums& member : group.members) {
        json.begin_object();
        json.field("rank", member.rank);
        json.field("node", job.nodes[job.processes[member.process].node].name);
        json.field("pid", job.processes[member.process].pid);
        json.field("last", member.last);
        json.field_us("wait_us", member.wait_ns);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

}  // namespace

std::string section(const Job& job, const RpcOptions& options) {
    const Collectives all = model::join_collectives(job);
    if (all.empty()) return {};
    std::vector<Row> rows = rows_of(all);
    std::string text = "\nCollectives\n" + rows_text(job, all, rows, options) + kNotes;
    if (std::any_of(all.groups.begin(), all.groups.end(),
                    [](const CollectiveGroup& group) { return group.source == schema::kNccl; }))
        text += kHostNote;
    text += late_lines(job, all) + odd_lines(job, all);
    if (all.unknown > 0)
        text += std::to_string(all.unknown) +
                " without a sequence number: joined with nothing, in no row\n";
    return text;
}

void write(JsonWriter& json, const Job& job, const RpcOptions& options) {
    const Collectives all = model::join_collectives(job);
    std::vector<Row> rows = rows_of(all);
    json.begin_object();
    json.key("rows");
    json.begin_array();
    for (Row& row : rows) write_row(json, job, all, row);
    json.end_array();
    json.key("groups");
    json.begin_array();
    for (const CollectiveGroup& group : all.groups) write_group(json, job, group);
    json.end_array();
    json.key("slowest");
    json.begin_array();
    for (const Collective* each : slowest_of(all, options.slowest))
        write_one(json, job, all, *each);
    json.end_array();
    json.key("different_functions");
    json.begin_array();
    for (const Collective& each : all.all) {
        if (each.names_differ) json.value(id_text(all, each) + ": " + differ_text(job, all, each));
    }
    json.end_array();
    json.field("without_sequence", all.unknown);
    json.end_object();
}

}  // namespace ringside::viewer_export::collectives
