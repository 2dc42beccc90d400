// The join's rules once more, slowly and one by one, over all halves at once: what the join must say of any capture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "halves.hpp"

namespace ringside::agent::test {

/// What is compared of a call.
struct JoinedHalves {
    std::optional<HalfIndex> client;
    std::optional<HalfIndex> server;
    RpcState state;
    bool unfinished = false;
    bool reply = false;
    auto operator<=>(const JoinedHalves&) const = default;
};

class JoinReference {
public:
    explicit JoinReference(const std::vector<NodeCapture>& nodes) : nodes_(nodes) {}

    std::vector<JoinedHalves> run() {
        std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::vector<HalfIndex>>
            ids;
        for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
            for (std::uint32_t h = 0; h < nodes_[n].halves.size(); ++h) {
                const schema::RequestId& id = nodes_[n].halves[h].id;
                if (id.span.value == 0) {
                    settle({{n, h}});
                } else {
                    ids[{id.span.value, id.trace.hi, id.trace.lo}].push_back({n, h});
                }
            }
        }
        for (auto& [id, halves] : ids) split(halves);
        std::sort(calls_.begin(), calls_.end());
        return std::move(calls_);
    }

    std::uint64_t ambiguous = 0;

private:
    using Times = std::vector<HalfIndex>;
    static constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();

    const Half& half(HalfIndex at) const { return nodes_[at.node].halves[at.half]; }
    std::int64_t ns(HalfIndex at, std::uint64_t ticks) const {
        return nodes_[at.node].node_clock().leader_ns(Ticks{ticks}).value;
    }
    std::int64_t begin(HalfIndex at) const { return ns(at, half(at).begin_ticks); }
    std::int64_t end(HalfIndex at) const {
        return half(at).ended ? ns(at, half(at).end_ticks) : kEver;
    }
    bool replied(HalfIndex at) const {
        return half(at).ended && half(at).status == schema::RpcStatus::kOk;
    }
    static std::int64_t sum(std::int64_t ns, std::int64_t by) {
        std::int64_t result = 0;
        return __builtin_add_overflow(ns, by, &result) ? kEver : result;
    }
    std::int64_t bound(std::uint32_t a, std::uint32_t b) const {
        if (a == b) return 0;
        const auto of = [&](std::uint32_t n) {
            return std::min(nodes_[n].clock.bound_ns, kEver / 8);
        };
        return of(a) + of(b);
    }

    /// Every process that went by this name, with its node.
    std::vector<std::pair<std::uint32_t, const ProcessOutcome*>> named(
        const std::string& name) const {
        std::vector<std::pair<std::uint32_t, const ProcessOutcome*>> found;
        for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
            for (const ProcessOutcome& process : nodes_[n].processes) {
                for (const std::string& worker : process.workers) {
                    if (worker == name) found.emplace_back(n, &process);
                }
            }
        }
        return found;
    }

    std::int64_t wait(HalfIndex at) const {
        std::int64_t widest = 0;
        const auto peers = named(half(at).peer);
        for (const auto& [node, process] : peers) widest = std::max(widest, bound(at.node, node));
        for (std::uint32_t n = 0; peers.empty() && n < nodes_.size(); ++n) {
            for (const ProcessOutcome& process : nodes_[n].processes) {
                if (!process.workers.empty()) widest = std::max(widest, bound(at.node, n));
            }
        }
        return sum(widest, kViolationGraceNs);
    }

    /// How late a half may begin that belongs with these.
    std::int64_t reach(const Times& use) const {
        std::int64_t result = std::numeric_limits<std::int64_t>::min();
        const bool served =
            std::any_of(use.begin(), use.end(), [&](HalfIndex at) { return half(at).server; });
        for (std::size_t i = 0; i < use.size(); ++i) {
            const HalfIndex at = use[i];
            if (!half(at).ended) return kEver;
            std::int64_t until = sum(half(at).server ? begin(at) : end(at), wait(at));
            const bool again = std::any_of(
                use.begin() + static_cast<std::ptrdiff_t>(i) + 1, use.end(),
                [&](HalfIndex other) { return !half(other).server && same_process(at, other); });
            // No reply ended it: its request may arrive whenever, until its process uses the id again or it is found.
            if (!half(at).server && !replied(at) && !served) {
                if (again) continue;
                until = kEver;
            }
            result = std::max(result, until);
        }
        return result;
    }

    bool same_process(HalfIndex a, HalfIndex b) const {
        return a.node == b.node && half(a).process == half(b).process;
    }

    void split(Times& halves) {
        const auto order = [&](HalfIndex at) {
            const Half& from = half(at);
            return std::tuple(begin(at), at.node, from.process, from.lane.index, from.position);
        };
        std::sort(halves.begin(), halves.end(),
                  [&](HalfIndex a, HalfIndex b) { return order(a) < order(b); });
        Times use;
        for (const HalfIndex at : halves) {
            if (!use.empty() && begin(at) > reach(use)) {
                settle(use);
                use.clear();
            }
            use.push_back(at);
        }
        settle(use);
    }

    bool compatible(const Times& clients, std::size_t c, HalfIndex server,
                    std::int64_t slack) const {
        const HalfIndex client = clients[c];
        const std::int64_t bound_ns = sum(bound(client.node, server.node), slack);
        if (sum(begin(server), bound_ns) < begin(client)) return false;
        for (std::size_t next = c + 1; next < clients.size(); ++next) {
            if (!same_process(client, clients[next])) continue;
            if (begin(server) > sum(begin(clients[next]), bound_ns)) return false;
            break;
        }
        return !replied(client) || begin(server) <= sum(end(client), bound_ns);
    }

    void settle(const Times& use) {
        Times clients, servers;
        for (const HalfIndex at : use) (half(at).server ? servers : clients).push_back(at);
        const std::int64_t slack =
            clients.size() == 1 && servers.size() == 1 ? kViolationGraceNs : 0;
        std::vector<std::vector<std::size_t>> of_client(clients.size()), of_server(servers.size());
        for (std::size_t c = 0; c < clients.size(); ++c) {
            for (std::size_t s = 0; s < servers.size(); ++s) {
                if (!compatible(clients, c, servers[s], slack)) continue;
                of_client[c].push_back(s);
                of_server[s].push_back(c);
            }
        }
        std::vector<bool> paired(servers.size(), false);
        for (std::size_t c = 0; c < clients.size(); ++c) {
            if (of_client[c].size() == 1 && of_server[of_client[c][0]].size() == 1) {
                paired[of_client[c][0]] = true;
                pair(clients[c], servers[of_client[c][0]]);
            } else {
                single(clients[c], !of_client[c].empty());
            }
        }
        for (std::size_t s = 0; s < servers.size(); ++s) {
            if (!paired[s]) single(servers[s], !of_server[s].empty());
        }
    }

    const ProcessOutcome* process(HalfIndex at) const {
        for (const ProcessOutcome& process : nodes_[at.node].processes) {
            if (process.index == half(at).process) return &process;
        }
        return nullptr;
    }
    bool left_open(HalfIndex at) const {
        const ProcessOutcome* own = process(at);
        return !half(at).ended && own != nullptr && own->fate != Fate::kRunning;
    }

    /// A message: nobody answers.
    bool one_way(HalfIndex at) const { return is_rank_name(half(at).peer); }

    void pair(HalfIndex client, HalfIndex server) {
        const bool both = half(client).ended && half(server).ended && !one_way(client);
        const bool answered =
            replied(client) || (both && half(client).status == schema::RpcStatus::kError &&
                                end(server) - bound(client.node, server.node) <= end(client));
        calls_.push_back({client, server, RpcState::Joined, left_open(client) || left_open(server),
                          both && answered});
    }

    void single(HalfIndex at, bool unclear) {
        ambiguous += unclear;
        const bool orphan = !unclear && is_orphan(at);
        JoinedHalves call{{}, {}, orphan ? RpcState::Orphan : RpcState::Cut, left_open(at), false};
        (half(at).server ? call.server : call.client) = at;
        calls_.push_back(call);
    }

    bool recorded(std::uint32_t node, const ProcessOutcome& process) const {
        return nodes_[node].halves_complete && ((process.verdict <= Verdict::kHung &&
                                                 process.verdict != Verdict::kNothingRecorded) ||
                                                process.start_delay_ns >= 0);
    }
    std::int64_t told(std::uint32_t node, std::uint64_t ticks) const {
        return nodes_[node].node_clock().leader_ns(Ticks{ticks}).value;
    }

    /// Nobody was seen to receive it, and nobody is left who might.
    bool lost_message(HalfIndex at) const {
        const auto peers = named(half(at).peer);
        for (const auto& [node, peer] : peers) {
            if (peer->fate == Fate::kRunning) return false;
            const std::int64_t died = told(node, peer->end_ticks);
            if (sum(died, bound(at.node, node)) <= begin(at)) continue;
            const bool watched =
                recorded(node, *peer) &&
                (nodes_[node].start_ticks == 0 ||
                 begin(at) - bound(at.node, node) >= told(node, nodes_[node].start_ticks));
            if (!watched || died > told(node, nodes_[node].stop_ticks)) return false;
        }
        return !peers.empty();
    }

    /// Received, and whoever sent it was recorded from the first instruction on.
    bool message_of_nobody(HalfIndex at) const {
        const std::int64_t until = half(at).ended ? end(at) : begin(at);
        for (const auto& [node, peer] : named(half(at).peer)) {
            if (recorded(node, *peer) && nodes_[node].start_ticks == 0 &&
                !past_stop(node, sum(until, bound(at.node, node))))
                return true;
        }
        return false;
    }

    /// Whether a node that may have been stopped before the others was not recorded any more.
    bool past_stop(std::uint32_t node, std::int64_t ns) const {
        return nodes_[node].stop_ticks != 0 && ns > told(node, nodes_[node].stop_ticks);
    }

    bool is_orphan(HalfIndex at) const {
        const Half& own = half(at);
        const auto peers = named(own.peer);
        if (one_way(at) && own.server) return message_of_nobody(at);
        if (one_way(at))
            return (own.ended && own.status == schema::RpcStatus::kPeerGone) || lost_message(at);
        for (const auto& [node, peer] : peers) {
            if (peer->fate == Fate::kRunning) continue;
            const std::int64_t died =
                nodes_[node].node_clock().leader_ns(Ticks{peer->end_ticks}).value;
            if (!own.ended || died <= sum(end(at), bound(at.node, node))) return true;
        }
        if (!own.server && own.ended && own.status == schema::RpcStatus::kPeerGone) return true;
        if (!own.server && !own.ended && !left_open(at)) return false;
        for (const auto& [node, peer] : peers) {
            if (!recorded(node, *peer)) continue;
            const NodeCapture& there = nodes_[node];
            const std::int64_t began = there.node_clock().leader_ns(Ticks{there.start_ticks}).value;
            const std::int64_t slack = bound(at.node, node);
            const std::int64_t until = own.server  ? begin(at)
                                       : own.ended ? end(at)
                                                   : told(at.node, process(at)->end_ticks);
            if (past_stop(node, sum(until, slack))) continue;
            if (there.start_ticks == 0) return true;
            if (!own.server && begin(at) - slack >= began) return true;
            if (own.server && earlier_call(node, *peer, begin(at) + slack, own.wire_id))
                return true;
        }
        return false;
    }

    /// A recorded call of this process until then with a number no greater. Messages are numbered by channel.
    bool earlier_call(std::uint32_t node, const ProcessOutcome& peer, std::int64_t until,
                      std::uint64_t wire_id) const {
        for (std::uint32_t h = 0; h < nodes_[node].halves.size(); ++h) {
            const Half& other = nodes_[node].halves[h];
            if (!other.server && other.process == peer.index && !one_way({node, h}) &&
                begin({node, h}) <= until && other.wire_id <= wire_id)
                return true;
        }
        return false;
    }

    const std::vector<NodeCapture>& nodes_;
    std::vector<JoinedHalves> calls_;
};

}  // namespace ringside::agent::test
