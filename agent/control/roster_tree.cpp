// The roster's part that reaches nodes through others: who is whose relay, envelopes there and back, and clocks that relays measure.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "agent/control/roster.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::size_t kLeastGroup = 16;  ///< where the leader chooses
/// Of a group so many are asked, one after the other, whether they would; then the leader connects to all of it.
constexpr int kMostCandidates = 4;
constexpr std::size_t kBundleBytes = std::size_t{128} << 10;
/// To look for agents that are not there takes two seconds for each kMostAtOnce of them.
constexpr Milliseconds kOpenLimit{60'000};
constexpr Milliseconds kClocksLimit{120'000};
constexpr Milliseconds kLeaveLimit{500};
constexpr std::int64_t kLongestRttNs = std::chrono::nanoseconds(PingSweep::kPingLimit).count();

/// Endpoints of one kind are seen alike by all that have them: a socket file and loopback belong to the leader's host, and mean others elsewhere.
int kind_of_place(const std::string& endpoint) {
    if (!is_tcp(endpoint)) return 0;
    const auto address = tcp_address(endpoint);
    if (!address) return 2;
    const bool loopback =
        address->host == "localhost" || address->host == "::1" || address->host.starts_with("127.");
    return loopback ? 1 : 2;
}

/// Half of what this process may open: processes that it is attached to, dumps, and who asks need theirs.
std::size_t most_connections() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2
                                                   : std::numeric_limits<std::size_t>::max();
}

std::string through(const NodeState& relay) {
    return "through the relay '" + relay.name + "' at " + relay.endpoint + ": ";
}

/// All times of these, by the clock of who took them.
NodeInterval taken_between(const std::vector<PingSample>& before,
                           const std::vector<PingSample>& after) {
    NodeInterval taken{{std::numeric_limits<std::int64_t>::max()},
                       {std::numeric_limits<std::int64_t>::min()}};
    for (const auto* samples : {&before, &after}) {
        for (const PingSample& sample : *samples) {
            taken.from = std::min(taken.from, sample.sent_leader_ns);
            taken.to = std::max(taken.to, sample.received_leader_ns);
        }
    }
    return taken;
}

}  // namespace

ClockMeasurement clock_of(const std::vector<NodeState>& nodes, const NodeState& node,
                          NodeInterval valid) {
    if (node.relay == NodeState::kNone || (node.before.empty() && node.after.empty()))
        return measure_clock(node.before, node.during, node.after, valid);
    const NodeState& relay = nodes[node.relay];
    const ClockCorrection way = measure_clock(relay.before, relay.during, relay.after,
                                              taken_between(node.before, node.after))
                                    .correction;
    return measure_clock(taken_by_relay(node.before, way), node.during,
                         taken_by_relay(node.after, way), valid);
}

/// Neighbours in the list are neighbours in the tree.
std::vector<Roster::Group> Roster::groups(const TreeShape& shape) const {
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(nodes_.size())));
    const std::size_t wanted =
        shape.nodes_a_relay != 0 ? shape.nodes_a_relay : std::max(root, kLeastGroup);
    const std::size_t size = std::min(wanted, kMostRelayed) + 1;
    std::vector<Group> made;
    for (const int kind : {0, 1, 2}) {
        bool full = true;
        for (std::size_t i = 1; i < nodes_.size(); ++i) {
            if (kind_of_place(nodes_[i].endpoint) != kind) continue;
            if (full) made.emplace_back();
            made.back().nodes.push_back(i);
            full = made.back().nodes.size() == size;
        }
    }
    return made;
}

/// Connects to relays, and through them to others.
/// @return the nodes that are to be connected to themselves
std::vector<std::size_t> Roster::find_relays(const TreeShape& shape) {
    std::vector<Group> made;
    if (nodes_.size() - 1 > std::min(shape.beyond, most_connections())) {
        made = groups(shape);
    } else {
        made.resize(1);
        for (std::size_t i = 1; i < nodes_.size(); ++i) made[0].nodes.push_back(i);
        return made[0].nodes;
    }
    std::vector<std::size_t> direct;
    for (int turn = 0; turn < kMostCandidates; ++turn) {
        std::vector<std::size_t> candidates;
        for (Group& group : made) {
            group.candidate = NodeState::kNone;
            if (group.nodes.size() < 2) continue;
            group.candidate = group.nodes.front();
            group.nodes.erase(group.nodes.begin());
            candidates.push_back(group.candidate);
        }
        if (candidates.empty()) break;
        connect_to(candidates);
        ask_who();
        open_relays(made, shape.asker);
    }
    for (const Group& group : made)
        direct.insert(direct.end(), group.nodes.begin(), group.nodes.end());
    return direct;
}

/// Asks the candidates to be their groups' relays. What is left in a group after it has none.
void Roster::open_relays(std::vector<Group>& groups, const std::string& asker) {
    std::vector<Group*> of(nodes_.size(), nullptr);
    for (Group& group : groups) {
        if (group.candidate != NodeState::kNone) of[group.candidate] = &group;
    }
    Round round;
    round.action = "ask it to be a relay";
    round.limit = kOpenLimit;
    round.at_once = nodes_.size();
    round.may_fail = true;
    round.request = [&](NodeState& node, std::uint64_t id) {
        Group* const group = of[index_of(node)];
        if (group == nullptr || group->nodes.size() > node.relays_at_most_) return MessageBytes();
        fbs::RelayOpenRequestT wanted;
        wanted.asker = asker;
        for (const std::size_t index : group->nodes)
            wanted.endpoints.push_back(nodes_[index].endpoint);
        return pack(id, std::move(wanted));
    };
    round.reply = [&](NodeState& node, fbs::MessageT& message) {
        if (const auto* reply = content_as<fbs::RelayOpenReplyT>(message))
            take_opened(*of[index_of(node)], *reply);
    };
    run(round);
}

void Roster::take_opened(Group& group, const fbs::RelayOpenReplyT& reply) {
    NodeState& relay = nodes_[group.candidate];
    std::vector<const fbs::RelayFaultT*> faults(group.nodes.size(), nullptr);
    for (const auto& fault : reply.faults) {
        if (fault->node < faults.size()) faults[fault->node] = fault.get();
    }
    relay.relayed = std::exchange(group.nodes, {});
    relays_.push_back(group.candidate);
    for (std::size_t i = 0; i < relay.relayed.size(); ++i) {
        const std::size_t index = relay.relayed[i];
        NodeState& node = nodes_[index];
        // Another key than the relay's may be one that this agent holds.
        if (faults[i] != nullptr && faults[i]->code == fbs::Code::RefusedCode) {
            group.nodes.push_back(index);
            continue;
        }
        node.relay = group.candidate;
        node.number_ = static_cast<std::uint32_t>(i);
        if (faults[i] != nullptr)
            drop(node, {ErrorCode::kNoAgent, through(relay) + faults[i]->message});
    }
}

/// Puts a message to others for the same relay; one that is the last one's like is told once.
void Roster::bundle(NodeState& relay, std::uint32_t number, const MessageBytes& bytes) {
    auto& messages = relay.bundle_.messages;
    if (!messages.empty() && messages.back()->body == bytes &&
        messages.back()->nodes.size() < kMostRelayed) {
        messages.back()->nodes.push_back(number);
        return;
    }
    if (!messages.empty() && relay.bundle_bytes_ + bytes.size() > kBundleBytes) send_bundle(relay);
    auto message = std::make_unique<fbs::RelayedT>();
    message->nodes = {number};
    message->body = bytes;
    relay.bundle_bytes_ += bytes.size();
    relay.bundle_.messages.push_back(std::move(message));
}

void Roster::send_bundle(NodeState& relay) {
    if (relay.bundle_.messages.empty()) return;
    relay.bundle_bytes_ = 0;
    const MessageBytes bytes = pack(++last_id_, std::exchange(relay.bundle_, {}));
    if (auto sent = links_.send(relay.link, bytes); !sent) lose(relay, sent.error());
}

void Roster::send_bundles() {
    for (const std::size_t index : relays_) send_bundle(nodes_[index]);
}

void Roster::take_passed(NodeState& relay, fbs::RelayReplyT& reply, Nanoseconds received,
                         const Round* round) {
    relay.heard_ = std::chrono::steady_clock::now();
    const auto node_of = [&](std::uint32_t number) -> NodeState* {
        if (number >= relay.relayed.size()) return nullptr;
        NodeState& node = nodes_[relay.relayed[number]];
        return node.taking_part && node.relay == index_of(relay) ? &node : nullptr;
    };
    for (const auto& passed : reply.messages) {
        if (passed->nodes.size() != 1) continue;
        NodeState* const node = node_of(passed->nodes.front());
        if (node == nullptr) continue;
        auto message = unpack_message(passed->body, Speaker::kNode);
        if (message)
            take(*node, *message, received, round);
        else
            drop(*node, message.error());
    }
    for (const auto& fault : reply.faults) {
        if (NodeState* const node = node_of(fault->node))
            drop(*node, {ErrorCode::kNoAgent, through(relay) + fault->message});
    }
    if (!reply.over.empty()) lose_relayed(relay, {ErrorCode::kNoAgent, reply.over});
}

void Roster::lose_relayed(NodeState& relay, const Error& error) {
    relay.bundle_ = {};
    relay.bundle_bytes_ = 0;
    for (const std::size_t index : std::exchange(relay.relayed, {})) {
        NodeState& node = nodes_[index];
        if (node.taking_part && node.relay == index_of(relay))
            drop(node, {ErrorCode::kNoAgent, through(relay) + error.message});
    }
}

void Roster::measure_through_relays(std::vector<PingSample> NodeState::*samples) {
    Round round;
    round.action = "measure its nodes' clocks";
    round.of_relays = true;
    round.limit = kClocksLimit;
    round.request = [](NodeState&, std::uint64_t id) {
        return pack(id, fbs::RelayClocksRequestT{});
    };
    round.reply = [&](NodeState& relay, fbs::MessageT& message) {
        const auto* reply = content_as<fbs::RelayClocksReplyT>(message);
        if (reply == nullptr) return;
        for (const auto& clock : reply->nodes) {
            if (clock->node >= relay.relayed.size()) continue;
            NodeState& node = nodes_[relay.relayed[clock->node]];
            if (!node.taking_part || node.relay != index_of(relay)) continue;
            std::vector<PingSample> epoch;
            for (const fbs::PingTimes& times : clock->samples) {
                const PingSample sample{
                    {times.sent_ns()}, {times.node_ns()}, {times.received_ns()}};
                // The relay's word: it measures as this leader does.
                if (usable(sample) && sample.rtt_ns() <= kLongestRttNs) epoch.push_back(sample);
            }
            end_epoch(node, epoch, samples);
        }
    };
    run(round);
}

void Roster::leave() {
    for (const std::size_t index : relays_) {
        NodeState& relay = nodes_[index];
        if (!relay.relayed.empty())
            (void)links_.send(relay.link, pack(++last_id_, fbs::RelayOpenRequestT{}));
    }
    if (!relays_.empty()) links_.linger(kLeaveLimit);
}

}  // namespace ringside::agent
