#include "viewer_export/model/collectives.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "schema/sources.hpp"
#include "viewer_export/model/late_rank.hpp"

namespace ringside::viewer_export::model {
namespace {

using schema::SourceId;

/// A torch that doesn't name its groups begins each one's sequence anywhere: those of one group lie closer together.
constexpr std::uint64_t kApart = 1000;

struct Entry {
    Index group;
    std::uint64_t sequence;
    Arrival arrival;
};

bool is_collective(const Job& job, SourceId source, std::uint8_t detail, Index attributes) {
    if (attributes >= job.attributes.size()) return false;
    if (source == SourceId::kMpi) return detail == schema::kMpiCollective;
    if (source == schema::kNccl) return detail == schema::kNcclCollective;
    return source == SourceId::kTorch &&
           job.attributes[attributes].payload == schema::PayloadType::kUnsigned;
}

/// Which group a process means by a label.
class Groups {
public:
    Groups(const Job& job, std::vector<CollectiveGroup>& groups) : job_(job), groups_(groups) {
        for (const Process& process : job.processes) {
            for (const Group& group : process.groups) {
                std::set<std::uint64_t>& ids = ids_[{group.source, group.label}];
                ids.insert(group.id);
            }
        }
    }

    /// @return the group, and the process's rank in it
    std::pair<Index, std::int32_t> find(Index process, SourceId source, Index category) {
        const auto [entry, added] = known_.try_emplace({process, source, category});
        if (added) entry->second = look_up(process, source, job_.names[category]);
        return entry->second;
    }

private:
    std::pair<Index, std::int32_t> look_up(Index index, SourceId source, const std::string& label) {
        const Process& process = job_.processes[index];
        for (const Group& group : process.groups) {
            if (group.source != source || group.label != label) continue;
            const Index found = add(source, label, group.id);
            groups_[found].size = std::max(groups_[found].size, group.size);
            return {found, group.rank};
        }
        // The page of groups holds the newest: what it forgot here, others may know.
        const auto ids = ids_.find({source, label});
        const bool one = ids != ids_.end() && ids->second.size() == 1;
        return {add(source, label, one ? *ids->second.begin() : 0), process.rank};
    }
    Index add(SourceId source, const std::string& label, std::uint64_t id) {
        const auto [entry, added] =
            index_.try_emplace({source, label, id}, static_cast<Index>(groups_.size()));
        if (added) {
            groups_.emplace_back();
            groups_.back().source = source;
            groups_.back().label = label;
            groups_.back().id = id;
            groups_.back().size = 0;
        }
        return entry->second;
    }

    const Job& job_;
    std::vector<CollectiveGroup>& groups_;
    std::map<std::pair<SourceId, std::string>, std::set<std::uint64_t>> ids_;
    std::map<std::tuple<SourceId, std::string, std::uint64_t>, Index> index_;
    std::map<std::tuple<Index, SourceId, Index>, std::pair<Index, std::int32_t>> known_;
};

/// The ranges of collectives, each with its group; what has no number is counted.
std::vector<Entry> collect(const Job& job, Collectives& result) {
    std::vector<Entry> entries;
    Groups groups(job, result.groups);
    const auto take = [&](const auto& range, Index process, Index lane, Index event) {
        if (!is_collective(job, range.source, range.detail, range.attributes)) return;
        const auto sequence = static_cast<std::uint64_t>(range.argument);
        if (sequence == 0) {
            ++result.unknown;
            return;
        }
        const auto [group, rank] =
            groups.find(process, range.source, job.attributes[range.attributes].category);
        entries.push_back({group,
                           sequence,
                           {range.begin_ns, range.end_ns, -1, process, rank, range.name, lane,
                            event, range.end}});
    };
    if (job.attributes.empty()) return entries;
    for (Index lane = 0; lane < job.lanes.size(); ++lane) {
        const auto& ranges = job.lanes[lane].ranges;
        for (Index i = 0; i < ranges.size(); ++i) {
            if (!ranges[i].is_operator) take(ranges[i], job.lanes[lane].process, lane, i);
        }
    }
    for (Index i = 0; i < job.asyncs.size(); ++i)
        take(job.asyncs[i], job.lanes[job.asyncs[i].lane].process, kNone, i);
    return entries;
}

/// One range of a process in a collective: from the first one's begin to the last one's end.
void merge_repeats(std::vector<Entry>& entries) {
    const auto key = [](const Entry& entry) {
        return std::tuple(entry.group, entry.sequence, entry.arrival.process);
    };
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        return std::tuple(key(a), a.arrival.begin_ns) < std::tuple(key(b), b.arrival.begin_ns);
    });
    auto to = entries.begin();
    for (auto from = entries.begin(); from != entries.end(); ++from) {
        if (to != entries.begin() && key(*(to - 1)) == key(*from)) {
            Arrival& arrival = (to - 1)->arrival;
            arrival.end_ns = std::max(arrival.end_ns, from->arrival.end_ns);
            arrival.end = std::max(arrival.end, from->arrival.end);
        } else {
            *to++ = *from;
        }
    }
    entries.erase(to, entries.end());
}

/// Groups without names are told apart by their sequences, those with one name by a number.
void split_groups(std::vector<Entry>& entries, std::vector<CollectiveGroup>& groups) {
    Index original = kNone, current = kNone;
    std::uint64_t before = 0;
    for (Entry& entry : entries) {
        const bool other = entry.group != original;
        if (other) original = current = entry.group;
        if (!other && groups[original].label.empty() && entry.sequence - before > kApart) {
            current = static_cast<Index>(groups.size());
            groups.push_back(groups[original]);
        }
        before = entry.sequence;
        entry.group = current;
    }
    std::map<std::string, int> seen;
    for (CollectiveGroup& group : groups) {
        const bool nameless = group.label.empty();
        if (nameless) group.label = "unnamed";
        const int number = ++seen[group.label];
        if (nameless || number > 1) group.label += "-" + std::to_string(number);
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.group < b.group; });
}

/// Of each process its own time before each of its collectives: what begins or ends in between is another's, and so is other calls' time.
void find_own_times(const Job& job, std::vector<Entry>& entries) {
    struct Times {
        std::vector<std::int64_t> edges;                           ///< of collectives
        std::vector<std::pair<std::int64_t, std::int64_t>> calls;  ///< begins, time until then
    };
    std::vector<Times> times(job.processes.size());
    for (const Entry& entry : entries) {
        auto& edges = times[entry.arrival.process].edges;
        edges.push_back(entry.arrival.begin_ns);
        if (entry.arrival.end == End::kEnded) edges.push_back(entry.arrival.end_ns);
    }
    for (const Lane& lane : job.lanes) {
        if (times[lane.process].edges.empty()) continue;
        for (const Range& range : lane.ranges) {
            if (range.source == SourceId::kMpi && range.detail == schema::kMpiCall)
                times[lane.process].calls.emplace_back(range.begin_ns, range.duration_ns());
        }
    }
    for (Times& each : times) {
        std::sort(each.edges.begin(), each.edges.end());
        std::sort(each.calls.begin(), each.calls.end());
        std::int64_t sum = 0;
        for (auto& [begin, taken] : each.calls) taken = sum += taken;
    }
    for (Entry& entry : entries) {
        const Times& of = times[entry.arrival.process];
        const auto edge =
            std::lower_bound(of.edges.begin(), of.edges.end(), entry.arrival.begin_ns);
        if (edge == of.edges.begin()) continue;
        const auto called_by = [&](std::int64_t ns) {
            const auto after =
                std::lower_bound(of.calls.begin(), of.calls.end(),
                                 std::pair(ns, std::numeric_limits<std::int64_t>::min()));
            return after == of.calls.begin() ? 0 : (after - 1)->second;
        };
        const std::int64_t since = *(edge - 1);
        entry.arrival.own_ns = std::max<std::int64_t>(
            entry.arrival.begin_ns - since - (called_by(entry.arrival.begin_ns) - called_by(since)),
            0);
    }
}

void find_members(const std::vector<Entry>& entries, std::vector<CollectiveGroup>& groups) {
    std::vector<std::map<Index, std::int32_t>> members(groups.size());
    for (const Entry& entry : entries)
        members[entry.group].emplace(entry.arrival.process, entry.arrival.rank);
    for (Index i = 0; i < groups.size(); ++i) {
        for (const auto& [process, rank] : members[i]) groups[i].members.push_back({process, rank});
        std::sort(groups[i].members.begin(), groups[i].members.end(),
                  [](const MemberSums& a, const MemberSums& b) {
                      return std::tuple(a.rank, a.process) < std::tuple(b.rank, b.process);
                  });
        groups[i].size =
            std::max(groups[i].size, static_cast<std::uint32_t>(groups[i].members.size()));
    }
}

/// How far apart two arrivals must be to be told apart. @return none where their clocks were not compared
std::optional<std::int64_t> bound_of(const Job& job, const Arrival& a, const Arrival& b) {
    const Index first = job.processes[a.process].node, second = job.processes[b.process].node;
    if (first == second) return 0;
    const Node& one = job.nodes[first];
    const Node& other = job.nodes[second];
    if (!job.corrected || !one.has_clock || !other.has_clock) return {};
    return one.clock.bound_ns + other.clock.bound_ns;
}

Index name_of_most(const Arrival* first, const Arrival* end) {
    std::map<Index, std::size_t> counts;
    for (const Arrival* each = first; each != end; ++each) ++counts[each->name];
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

/// The arrivals of the one that is last in `all` are complete: who came last, and what they are called.
void close(const Job& job, Collectives& result) {
    Collective& collective = result.all.back();
    const auto first = result.arrivals.begin() + collective.first;
    std::sort(first, result.arrivals.end(), [](const Arrival& a, const Arrival& b) {
        return std::tuple(a.begin_ns, a.process) < std::tuple(b.begin_ns, b.process);
    });
    collective.count = static_cast<std::uint32_t>(result.arrivals.end() - first);
    collective.names_differ = std::any_of(first, result.arrivals.end(), [&](const Arrival& each) {
        return each.name != first->name;
    });
    collective.name = collective.names_differ
                          ? name_of_most(result.begin(collective), result.end(collective))
                          : first->name;
    collective.complete = collective.count == result.groups[collective.group].size;
    if (collective.count < 2) return;
    // Of each other one the clock may be wrong by something else: the last one must be beyond all of them.
    const Arrival& last = result.arrivals.back();
    collective.gap_ns = last.begin_ns - (result.end(collective) - 2)->begin_ns;
    collective.last_known = collective.complete;
    for (auto each = first; each != result.arrivals.end() - 1; ++each) {
        const auto bound = bound_of(job, *each, last);
        if (each + 2 == result.arrivals.end()) collective.bound_ns = bound.value_or(-1);
        if (!bound || last.begin_ns - each->begin_ns <= *bound) collective.last_known = false;
    }
}

}  // namespace

std::optional<std::int64_t> Collectives::work_ns(const Collective& of) const {
    if (!of.complete) return {};
    std::int64_t until = 0;
    for (const Arrival* each = begin(of); each != end(of); ++each) {
        if (each->end != End::kEnded) return {};
        until = std::max(until, each->end_ns);
    }
    return std::max<std::int64_t>(until - (end(of) - 1)->begin_ns, 0);
}

std::optional<std::int64_t> Collectives::wait_ns(const Collective& of) const {
    if (!of.complete) return {};
    std::int64_t sum = 0;
    for (const Arrival* each = begin(of); each != end(of); ++each)
        sum += (end(of) - 1)->begin_ns - each->begin_ns;
    return sum;
}

std::vector<std::int32_t> Collectives::missing(const Collective& of) const {
    std::set<std::int32_t> here;
    for (const Arrival* each = begin(of); each != end(of); ++each) here.insert(each->rank);
    std::vector<std::int32_t> result;
    const CollectiveGroup& group = groups[of.group];
    if (here.contains(-1)) return result;
    if (group.id == 0) {
        for (const MemberSums& member : group.members) {
            if (!here.contains(member.rank)) result.push_back(member.rank);
        }
        return result;
    }
    // A hostile dump's group may have any size.
    constexpr std::uint32_t kMostMembers = 1u << 16;
    for (std::int32_t rank = 0;
         rank < static_cast<std::int32_t>(std::min(group.size, kMostMembers)); ++rank) {
        if (!here.contains(rank)) result.push_back(rank);
    }
    return result;
}

Collectives join_collectives(const Job& job) {
    Collectives result;
    std::vector<Entry> entries = collect(job, result);
    merge_repeats(entries);
    split_groups(entries, result.groups);
    find_own_times(job, entries);
    find_members(entries, result.groups);
    result.arrivals.reserve(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const Entry& entry = entries[i];
        const bool first = i == 0 || entry.group != entries[i - 1].group ||
                           entry.sequence != entries[i - 1].sequence;
        if (first) {
            if (i > 0) close(job, result);
            Collective& collective = result.all.emplace_back();
            collective.sequence = entry.sequence;
            collective.group = entry.group;
            collective.first = static_cast<std::uint32_t>(i);
        }
        result.arrivals.push_back(entry.arrival);
    }
    if (!entries.empty()) close(job, result);
    find_late_ranks(result);
    return result;
}

}  // namespace ringside::viewer_export::model
