#include "agent/control/roster.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr Milliseconds kTick{100};
constexpr Milliseconds kTouch{500};  ///< between pings while waiting
constexpr Milliseconds kPingLimit{1000};
constexpr Milliseconds kMeetLimit{2000};

Error gone(const NodeState& node, const std::string& action, Milliseconds after) {
    return {ErrorCode::kNoAgent, action + ": the agent at " + node.endpoint +
                                     " has not answered for " + std::to_string(after.count()) +
                                     " ms; is it stopped, or its machine overloaded?"};
}

bool is_refused(const Error& error) {
    return error.code == ErrorCode::kRefused;
}

}  // namespace

Roster::Roster(NodeService& own, zmq::context_t& context, std::function<void()> tick,
               const Event& nudge)
    : own_(own), context_(context), tick_(std::move(tick)), nudge_(nudge) {
    NodeState state;
    state.endpoint = own.identity().endpoint;
    state.name = own.engine().options().node;
    state.host = own.identity().host;
    state.reached = true;
    const EngineStatus status = own.engine().status();
    state.capturing = status.capturing;
    state.capture_id = status.capture_id;
    state.counts_iterations = true;
    nodes_.push_back(std::move(state));
}

void Roster::drop(NodeState& node, Error error) {
    node.taking_part = false;
    node.waiting_for_ = 0;
    node.error = std::move(error);
}

void Roster::add_peer(const std::string& endpoint) {
    const bool known = std::any_of(nodes_.begin(), nodes_.end(), [&](const NodeState& node) {
        return node.endpoint == endpoint;
    });
    if (known) return;
    NodeState state;
    state.endpoint = endpoint;
    state.name = endpoint;  // until it has told its own
    // The job's, else the user's: an agent that was started without a job's name has that one.
    const std::vector<Key> keys = own_.keys();
    auto link = Link::connect(context_, endpoint, keys.empty() ? nullptr : &keys[0]);
    for (std::size_t i = 1; i < keys.size() && !link && is_refused(link.error()); ++i)
        link = Link::connect(context_, endpoint, &keys[i]);
    if (link) {
        state.link.emplace(std::move(*link));
        nodes_.push_back(std::move(state));
        return;
    }
    // An endpoint without a socket is a peer all the same: the reply says what is wrong with it.
    state.link.emplace(Link::unconnected(context_, endpoint));
    nodes_.push_back(std::move(state));
    drop(nodes_.back(), link.error());
}

void Roster::meet(const std::vector<std::string>& peers) {
    nodes_.reserve(peers.size() + 1);
    for (const std::string& peer : peers) add_peer(peer);
    Round round;
    round.action = "ask who it is";
    round.limit = round.silence = kMeetLimit;
    round.request = [](NodeState&, std::uint64_t id) { return pack(id, fbs::StatusRequestT{}); };
    round.reply = [this](NodeState& node, fbs::MessageT& message) {
        auto* status = content_as<fbs::StatusReplyT>(message);
        if (status == nullptr)
            return drop(node, {ErrorCode::kInput,
                               "ask " + node.endpoint +
                                   " who it is: it answered something else; is it an agent?"});
        node.name = status->node;
        node.host = status->host;
        node.reached = true;
        node.capturing = status->capturing;
        node.capture_id = status->capture_id;
        node.counts_iterations = status->counts_iterations;
        if (auto checked = check_name("the node's name", node.name); !checked)
            drop(node, checked.error());
    };
    run(round);
    refuse_double_names();
}

/// Dumps bear their node's name and are gathered in one folder.
void Roster::refuse_double_names() {
    std::set<std::string> names;
    for (NodeState& node : nodes_) {
        if (!node.taking_part) continue;
        if (!names.insert(node.name).second) {
            drop(node, {ErrorCode::kRefused,
                        "the agent at " + node.endpoint + " calls its node '" + node.name +
                            "', as another one does; start it with another --node"});
        }
    }
}

Nanoseconds Roster::node_time_of(const NodeState& node, Nanoseconds leader_ns) const {
    return node.own() ? leader_ns : node.rough.node_ns(leader_ns);
}

std::int64_t Roster::worst_rtt_ns() const {
    std::int64_t worst = 0;
    for (const NodeState& node : nodes_) {
        if (!node.taking_part) continue;
        for (const PingSample& sample : node.before) worst = std::max(worst, sample.rtt_ns());
    }
    return worst;
}

bool Roster::waiting() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const NodeState& node) { return node.waiting_for_ != 0; });
}

void Roster::run(const Round& round) {
    const SteadyTime limit = Clock::now() + round.limit;
    for (NodeState& node : nodes_) {
        if (node.own() || !node.taking_part) continue;
        const std::uint64_t id = node.link->next_id();
        const MessageBytes bytes = round.request(node, id);
        if (bytes.empty()) continue;
        // A question that is asked again and again must not make one that is silent look alive.
        if (!round.may_fail) node.heard_ = Clock::now();
        node.waiting_for_ = id;
        if (auto sent = node.link->send(bytes); !sent) drop(node, sent.error());
    }
    Event done;
    schema::Result<void> result;
    std::thread beside;
    bool own_runs = false;
    if (round.own && own().taking_part) {
        own_runs = true;
        beside = std::thread([&] {
            result = round.own(own());
            done.raise();
        });
    }
    while (waiting() && Clock::now() < limit) pump(limit, nullptr, &round);
    give_up_late(round);
    while (own_runs) {
        pump(Clock::now() + kTick, &done, nullptr);
        own_runs = !done.raised();
    }
    if (beside.joinable()) beside.join();
    if (!result) drop(own(), result.error());
}

void Roster::give_up_late(const Round& round) {
    for (NodeState& node : nodes_) {
        if (node.waiting_for_ == 0) continue;
        node.waiting_for_ = 0;
        if (!round.may_fail) drop(node, gone(node, round.action, round.limit));
    }
}

/// Waits for messages until `until`, a tick, or `wake`; handles what came.
void Roster::pump(SteadyTime until, const Event* wake, const Round* round) {
    keep_in_touch(round);
    tick_();
    std::vector<zmq::pollitem_t> items;
    std::vector<NodeState*> owners;
    for (NodeState& node : nodes_) {
        if (node.own() || !node.taking_part) continue;
        items.push_back({node.link->socket().handle(), 0, ZMQ_POLLIN, 0});
        owners.push_back(&node);
    }
    if (wake != nullptr) items.push_back({nullptr, wake->fd(), ZMQ_POLLIN, 0});
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now());
    // The C function: an interrupted wait is no exception, the callers look at the clock anyway.
    ::zmq_poll(items.data(), static_cast<int>(items.size()),
               std::clamp(left + Milliseconds(1), Milliseconds(0), kTick).count());
    for (std::size_t i = 0; i < owners.size(); ++i) {
        if ((items[i].revents & ZMQ_POLLIN) != 0) read(*owners[i], round);
    }
}

void Roster::send_ping(NodeState& node) {
    node.ping_id_ = node.link->next_id();
    node.ping_sent_ = leader_now();
    (void)node.link->send(pack(node.ping_id_, fbs::PingRequestT{}));
}

void Roster::keep_in_touch(const Round* round) {
    const SteadyTime now = Clock::now();
    if (now - last_touch_ >= kTouch) {
        last_touch_ = now;
        for (NodeState& node : nodes_) {
            if (!node.own() && node.taking_part) send_ping(node);
        }
    }
    if (round == nullptr) return;
    for (NodeState& node : nodes_) {
        if (node.waiting_for_ == 0) continue;
        if (now - node.heard_ > round->silence) {
            drop(node, gone(node, round->action, round->silence));
        } else if (now - node.heard_ > 2 * kTouch) {
            if (auto alive = node.link->probe(); !alive) drop(node, alive.error());
        }
    }
}

void Roster::read(NodeState& node, const Round* round) {
    while (node.taking_part) {
        auto message = node.link->receive(Clock::now());
        if (!message) return drop(node, message.error());
        if (!*message) return;
        take(node, **message, round);
    }
}

void Roster::take(NodeState& node, fbs::MessageT& message, const Round* round) {
    node.heard_ = Clock::now();
    if (const auto* ping = content_as<fbs::PingReplyT>(message)) {
        // Read late, after whatever else was in the queue: a wide sample, and honest about it.
        if (message.id == node.ping_id_)
            node.during.push_back({node.ping_sent_, {ping->node_ns}, leader_now()});
        return;
    }
    if (message.id != node.waiting_for_ || round == nullptr) return;
    node.waiting_for_ = 0;
    if (const auto* error = content_as<fbs::ErrorReplyT>(message)) {
        return round->may_fail ? void() : drop(node, error_of(*error));
    }
    round->reply(node, message);
}

schema::Result<PingSample> Roster::ping_once(NodeState& node) {
    const std::uint64_t id = node.link->next_id();
    const MessageBytes bytes = pack(id, fbs::PingRequestT{});
    const SteadyTime deadline = Clock::now() + kPingLimit;
    const Nanoseconds sent = leader_now();
    if (auto result = node.link->send(bytes); !result) return result.error();
    while (Clock::now() < deadline) {
        auto message = node.link->receive(deadline);
        const Nanoseconds received = leader_now();
        if (!message) return message.error();
        if (!*message || (*message)->id != id) continue;
        if (const auto* ping = content_as<fbs::PingReplyT>(**message))
            return PingSample{sent, {ping->node_ns}, received};
        return Error{ErrorCode::kInput,
                     "ping " + node.endpoint + ": it answered something else; is it an agent?"};
    }
    return gone(node, "ping", kPingLimit);
}

void Roster::ping_all(std::vector<PingSample> NodeState::*samples) {
    for (NodeState& node : nodes_) {
        if (node.own() || !node.taking_part) continue;
        auto epoch = ping_epoch([&] { return ping_once(node); }, PingPlan{});
        tick_();
        if (!epoch) {
            // Before the capture a node without a clock is no use; after it its dump still is.
            if (samples == &NodeState::before) drop(node, epoch.error());
            continue;
        }
        auto& kept = node.*samples;
        kept.insert(kept.end(), epoch->begin(), epoch->end());
        if (samples != &NodeState::before) continue;
        const Nanoseconds now = epoch->back().node_ns;
        node.rough = measure_clock(kept, {}, {}, {now, now}).correction;
    }
}

bool Roster::wait_until(Nanoseconds leader_ns) {
    while (true) {
        const std::int64_t left = leader_ns.value - leader_now().value;
        if (left <= 0) return true;
        if (nudge_.raised()) return false;
        pump(Clock::now() + std::chrono::nanoseconds(left), &nudge_, nullptr);
    }
}

}  // namespace ringside::agent
