#include "viewer_export/model/waits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace ringside::viewer_export::model {
namespace {

/// Of a hostile dump's group: members beyond that are not looked for.
constexpr std::uint32_t kMostMembers = 1u << 16;

std::int64_t age_of(const Job& job, const Process& process, std::uint64_t begin_ticks) {
    const Node& node = job.nodes[process.node];
    const std::uint64_t end = process.end_ticks != 0 ? process.end_ticks : node.stop_ticks;
    return node.calibration.node_ns(end) - node.calibration.node_ns(begin_ticks);
}

class Finder {
public:
    explicit Finder(const Job& job) : job_(job) {}

    JobWaits run() {
        JobWaits found;
        collect();
        note_deaths(found);
        for (auto& [place, wait] : places_) found.waits.push_back(std::move(wait));
        for (Wait& wait : found.waits) {
            if (wait.sequence != 0) {
                add_members(wait);
            } else if (wait.peer >= 0) {
                wait.others.push_back(party_of(by_rank(wait), wait));
            }
        }
        std::stable_sort(found.waits.begin(), found.waits.end(),
                         [](const Wait& a, const Wait& b) { return oldest(a) > oldest(b); });
        find_cycles(found);
        find_never_came(found);
        return found;
    }

private:
    // source, group, sequence, peer, tag, function: those that wait in one place.
    using Place = std::tuple<std::uint8_t, std::uint64_t, std::uint64_t, std::int32_t, std::int32_t,
                             std::string, Index>;

    static std::int64_t oldest(const Wait& wait) {
        std::int64_t age = 0;
        for (const Waiting& one : wait.waiting) age = std::max(age, one.age_ns);
        return age;
    }

    void collect() {
        for (Index i = 0; i < job_.processes.size(); ++i) {
            const Process& process = job_.processes[i];
            note_ranks(process, i);
            if (process.fate != Fate::kRunning) continue;
            for (const OpenCall& call : process.open_calls) {
                const std::int64_t age = age_of(job_, process, call.begin_ticks);
                if (age <= kLeastWaitNs) continue;
                add(i, call, age);
                auto& own = oldest_[i];
                if (!own || own->age_ns < age) own = Waiting{i, call, age};
            }
        }
        for (auto& [place, wait] : places_) {
            std::sort(wait.waiting.begin(), wait.waiting.end(),
                      [&](const Waiting& a, const Waiting& b) {
                          return std::pair(job_rank_of(job_.processes[a.process]), a.process) <
                                 std::pair(job_rank_of(job_.processes[b.process]), b.process);
                      });
        }
    }

    void note_deaths(JobWaits& found) const {
        for (Index i = 0; i < job_.processes.size(); ++i) {
            const Process& process = job_.processes[i];
            const auto oldest = std::min_element(
                process.open_calls.begin(), process.open_calls.end(),
                [](const auto& a, const auto& b) { return a.begin_ticks < b.begin_ticks; });
            if (process.fate == Fate::kKilled && oldest != process.open_calls.end())
                found.died.push_back({i, *oldest, age_of(job_, process, oldest->begin_ticks)});
        }
    }

    void add(Index process, const OpenCall& call, std::int64_t age) {
        const bool collective = call.group != 0 && call.sequence != 0;
        // Those of one collective are told together, whatever each has called; of others each process by itself.
        Place place{static_cast<std::uint8_t>(call.source),
                    call.group,
                    collective ? call.sequence : 0,
                    collective ? schema::kNoPeer : call.peer,
                    collective ? schema::kAnyTag : call.tag,
                    collective ? "" : call.function,
                    collective ? kNone : process};
        Wait& wait = places_[place];
        if (wait.waiting.empty()) {
            wait.function = call.function;
            wait.source = call.source;
            wait.group = call.group;
            wait.sequence = collective ? call.sequence : 0;
            wait.peer = collective ? schema::kNoPeer : call.peer;
            wait.tag = collective ? schema::kAnyTag : call.tag;
        }
        const Group* const group = group_of(job_.processes[process], call.group);
        if (group != nullptr && wait.label.empty()) {
            wait.label = group->label;
            wait.size = group->size;
        }
        const auto same = std::find_if(wait.waiting.begin(), wait.waiting.end(),
                                       [&](const Waiting& one) { return one.process == process; });
        if (same == wait.waiting.end()) {
            wait.waiting.push_back({process, call, age});
        } else if (same->age_ns < age) {
            *same = {process, call, age};
        }
    }

    /// A source's ranks are those of its own job: torch's and MPI's need not be the same.
    void note_ranks(const Process& process, Index index) {
        std::set<std::pair<schema::SourceId, std::int32_t>> own;
        for (const Group& group : process.groups) {
            if (group.job_rank >= 0) own.emplace(group.source, group.job_rank);
        }
        if (process.rank >= 0) own.emplace(schema::SourceId::kNone, process.rank);
        for (const auto& rank : own) ranks_.emplace(rank, index);
    }

    /// The process of this rank that is in the wait's group; where none is, one whose rank it is by this source's groups, else by the launcher. Where
    /// several claim that (workers of a loader inherit it), one that has groups is meant.
    Index by_rank(const Wait& wait) const {
        Index found = kNone;
        for (const schema::SourceId source : {wait.source, schema::SourceId::kNone}) {
            for (auto [at, end] = ranks_.equal_range({source, wait.peer}); at != end; ++at) {
                const Process& process = job_.processes[at->second];
                if (group_of(process, wait.group) != nullptr) return at->second;
                if (found == kNone || !process.groups.empty()) found = at->second;
            }
            if (found != kNone) break;
        }
        return found;
    }

    /// The process's call of this collective, however young.
    static const OpenCall* call_of(const Process& process, const Wait& wait) {
        for (const OpenCall& call : process.open_calls) {
            if (call.source == wait.source && call.group == wait.group &&
                call.sequence == wait.sequence)
                return &call;
        }
        return nullptr;
    }

    /// What a process does that `wait` waits for; kNone: it is not seen.
    Party party_of(Index index, const Wait& wait) const {
        Party party;
        party.process = index;
        if (index == kNone) {
            party.job_rank = wait.peer;
            return party;
        }
        const Process& process = job_.processes[index];
        party.job_rank = job_rank_of(process);
        const Group* const group = group_of(process, wait.group);
        if (group != nullptr) {
            party.member = group->rank;
            party.last = group->last;
        }
        const auto own = oldest_.find(index);
        if (process.fate != Fate::kRunning) {
            party.standing = Standing::kDied;
        } else if (own != oldest_.end() && own->second) {
            party.standing = Standing::kElsewhere;
            party.call = own->second->call;
            party.age_ns = own->second->age_ns;
        } else {
            party.standing = Standing::kFree;
        }
        if (wait.sequence == 0 || party.last < wait.sequence || party.standing == Standing::kDied)
            return party;
        party.standing = Standing::kPassed;
        if (const OpenCall* const call = call_of(process, wait)) {
            party.standing = Standing::kInIt;
            party.call = *call;
            party.age_ns = age_of(job_, process, call->begin_ticks);
        }
        return party;
    }

    void add_members(Wait& wait) {
        std::set<std::int32_t> seen;
        std::set<Index> inside;
        for (const Waiting& one : wait.waiting) {
            inside.insert(one.process);
            const Group* const group = group_of(job_.processes[one.process], wait.group);
            if (group != nullptr) seen.insert(group->rank);
        }
        for (Index i = 0; i < job_.processes.size(); ++i) {
            const Group* const group = group_of(job_.processes[i], wait.group);
            if (group == nullptr || inside.contains(i)) continue;
            // Beside one that lives, what an earlier process of that rank has left says nothing.
            seen.insert(group->rank);
            wait.others.push_back(party_of(i, wait));
        }
        for (std::uint32_t rank = 0; rank < std::min(wait.size, kMostMembers); ++rank) {
            if (seen.contains(static_cast<std::int32_t>(rank))) continue;
            Party party;
            party.member = static_cast<std::int32_t>(rank);
            wait.others.push_back(party);
        }
        std::stable_sort(wait.others.begin(), wait.others.end(),
                         [](const Party& a, const Party& b) { return a.member < b.member; });
    }

    static bool is_waited_for(const Party& party) {
        return party.standing != Standing::kPassed && party.standing != Standing::kInIt;
    }

    /// One cycle through each process at most: more of them would say the same again.
    void find_cycles(JobWaits& found) const {
        std::map<Index, std::set<Index>> next;
        for (const Wait& wait : found.waits) {
            for (const Waiting& one : wait.waiting) {
                for (const Party& party : wait.others) {
                    if (party.process != kNone && is_waited_for(party))
                        next[one.process].insert(party.process);
                }
            }
        }
        std::set<Index> done;
        for (const auto& [start, unused] : next) {
            if (done.contains(start)) continue;
            std::vector<Index> cycle = shortest_cycle(next, start);
            // Found from its first process on: one that joins it from outside is in none.
            const bool fresh = std::none_of(cycle.begin(), cycle.end(),
                                            [&](Index at) { return done.contains(at); });
            done.insert(cycle.begin(), cycle.end());
            if (!cycle.empty() && fresh) found.cycles.push_back(std::move(cycle));
        }
    }

    static std::vector<Index> shortest_cycle(const std::map<Index, std::set<Index>>& next,
                                             Index start) {
        std::map<Index, Index> from;
        std::vector<Index> queue{start};
        for (std::size_t i = 0; i < queue.size(); ++i) {
            const auto found = next.find(queue[i]);
            if (found == next.end()) continue;
            for (const Index to : found->second) {
                if (to == start) {
                    std::vector<Index> cycle{queue[i]};
                    while (cycle.back() != start) cycle.push_back(from.at(cycle.back()));
                    std::reverse(cycle.begin(), cycle.end());
                    return cycle;
                }
                if (from.emplace(to, queue[i]).second) queue.push_back(to);
            }
        }
        return {};
    }

    static void find_never_came(JobWaits& found) {
        std::set<Index> told;
        for (const Wait& wait : found.waits) {
            for (const Party& party : wait.others) {
                // Of one that is not in this capture nobody knows what it does.
                const bool idle =
                    party.standing == Standing::kFree || party.standing == Standing::kDied;
                if (idle && told.insert(party.process).second) found.never_came.push_back(party);
            }
        }
    }

    const Job& job_;
    std::multimap<std::pair<schema::SourceId, std::int32_t>, Index> ranks_;
    std::map<Place, Wait> places_;
    std::map<Index, std::optional<Waiting>> oldest_;
};

}  // namespace

const Group* group_of(const Process& process, std::uint64_t id) {
    const Group* furthest = nullptr;
    for (const Group& group : process.groups) {
        // Two threads that claimed it at one moment have made two of it.
        if (group.id == id && (furthest == nullptr || group.last > furthest->last))
            furthest = &group;
    }
    return furthest;
}

std::int32_t job_rank_of(const Process& process) {
    for (const Group& group : process.groups) {
        if (group.job_rank >= 0) return group.job_rank;
    }
    return process.rank;
}

JobWaits waits_of(const Job& job) {
    return Finder(job).run();
}

}  // namespace ringside::viewer_export::model
