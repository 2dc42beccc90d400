#include "agent/control/roster.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>

#include "agent/control/beside.hpp"
#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr Milliseconds kTouch{500};  ///< between pings while waiting, of so many nodes:
constexpr int kNodesForTouch = 1000;
constexpr Milliseconds kMostTouch{2000};
constexpr Milliseconds kProbe{200};
constexpr Milliseconds kForEach{2};       ///< what a node adds to a round's limit
constexpr std::size_t kMostInARow = 256;  ///< messages before the clock is looked at
constexpr Milliseconds kMeetLimit{2000};

bool is_asked(const NodeState& node, const Round& round) {
    return round.of_relays ? !node.relayed.empty() : node.has_way() && node.taking_part;
}

}  // namespace

Roster::Roster(NodeService& own, zmq::context_t& context, std::function<void()> tick,
               const Event& nudge)
    : own_(own),
      // Asked by all who look for peers: progress is told by this thread alone.
      links_(context,
             [this, leader = std::this_thread::get_id()] {
                 if (std::this_thread::get_id() == leader) tick_();
                 return nudge_.raised();
             }),
      tick_(std::move(tick)),
      nudge_(nudge) {
    NodeState state;
    state.endpoint = own.identity().endpoint;
    state.name = own.engine().options().node;
    state.host = own.identity().host;
    state.reached = true;
    state.own_ = true;
    const EngineStatus status = own.engine().status();
    state.capturing = status.capturing;
    state.capture_id = status.capture_id;
    state.counts_iterations = true;
    nodes_.push_back(std::move(state));
}

void Roster::no_longer_wait(NodeState& node) {
    if (std::exchange(node.waiting_for_, 0) != 0) --waiting_;
}

void Roster::drop(NodeState& node, Error error) {
    node.taking_part = false;
    no_longer_wait(node);
    node.error = std::move(error);
}

Error Roster::gone(const NodeState& node, const std::string& action, Milliseconds after) {
    return {ErrorCode::kNoAgent, action + ": the agent at " + node.endpoint +
                                     " has not answered for " + std::to_string(after.count()) +
                                     " ms; is it stopped, or its machine overloaded?"};
}

/// The agent does not answer any more: neither for itself nor for those behind it.
void Roster::lose(NodeState& node, const Error& error) {
    lose_relayed(node, error);
    if (node.taking_part)
        drop(node, error);
    else
        no_longer_wait(node);
}

void Roster::add_peers(const std::vector<std::string>& peers) {
    std::unordered_set<std::string> known{own().endpoint};
    nodes_.reserve(peers.size() + 1);
    for (const std::string& peer : peers) {
        if (!known.insert(peer).second) continue;
        NodeState state;
        state.endpoint = peer;
        state.name = peer;  // until it has told its own
        nodes_.push_back(std::move(state));
    }
}

void Roster::connect_to(const std::vector<std::size_t>& nodes) {
    if (nodes.empty()) return;
    std::vector<std::string> endpoints;
    endpoints.reserve(nodes.size());
    for (const std::size_t index : nodes) endpoints.push_back(nodes_[index].endpoint);
    // The job's key, else the user's: an agent that was started without a job's name has that one.
    const auto connected = links_.connect(endpoints, own_.keys());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        NodeState& node = nodes_[nodes[i]];
        node.link = linked_.size();
        linked_.push_back(nodes[i]);
        // An endpoint without a socket is a peer all the same: the reply says what is wrong with it.
        if (!connected[i]) drop(node, connected[i].error());
    }
}

void Roster::meet(const std::vector<std::string>& peers, const TreeShape& shape) {
    add_peers(peers);
    connect_to(find_relays(shape));
    ask_who();
    refuse_double_names();
}

/// Those that are connected and have not said it yet.
void Roster::ask_who() {
    Round round;
    round.action = "ask who it is";
    round.limit = round.silence = kMeetLimit;
    round.request = [](NodeState& node, std::uint64_t id) {
        return !node.reached ? pack(id, fbs::StatusRequestT{}) : MessageBytes();
    };
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
        node.relays_at_most_ = std::min<std::size_t>(status->relays, kMostRelayed);
        if (auto checked = check_name("the node's name", node.name); !checked)
            drop(node, checked.error());
    };
    run(round);
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

bool Roster::anybody() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const NodeState& node) { return node.taking_part; });
}

Nanoseconds Roster::node_time_of(const NodeState& node, Nanoseconds leader_ns) const {
    return node.own() ? leader_ns : node.rough.node_ns(leader_ns);
}

std::int64_t Roster::worst_rtt_ns() const {
    // To a node directly, and from a relay to a node.
    std::int64_t worst[2] = {0, 0};
    for (const NodeState& node : nodes_) {
        std::int64_t& of = worst[node.relay == NodeState::kNone ? 0 : 1];
        for (const PingSample& sample : node.before) of = std::max(of, sample.rtt_ns());
    }
    return worst[0] + worst[1];
}

void Roster::ask(NodeState& node, const Round& round) {
    if (!is_asked(node, round)) return;
    const MessageBytes bytes = round.request(node, round_id_);
    if (bytes.empty()) return;
    // A question that is asked again and again must not make one that is silent look alive.
    if (!round.may_fail) node.heard_ = Clock::now();
    node.waiting_for_ = round_id_;
    ++waiting_;
    if (auto sent = send(node, bytes); !sent) lose(node, sent.error());
}

void Roster::ask_more(const Round& round) {
    while (waiting_ < round.at_once && asked_ < nodes_.size()) ask(nodes_[asked_++], round);
    send_bundles();
}

schema::Result<void> Roster::send(NodeState& node, const MessageBytes& bytes) {
    if (node.relay == NodeState::kNone) return links_.send(node.link, bytes);
    if (bytes.size() > kMostThroughRelay)
        return Error{ErrorCode::kUsage, "send " + std::to_string(bytes.size()) +
                                            " bytes through a relay: that is too much; name "
                                            "fewer processes"};
    bundle(nodes_[node.relay], node.number_, bytes);
    return {};
}

void Roster::run(const Round& round) {
    const SteadyTime limit =
        Clock::now() + round.limit + kForEach * static_cast<int>(nodes_.size());
    Event done;
    schema::Result<void> result;
    std::thread beside;
    const bool own_part = round.own && own().taking_part;
    bool own_runs = own_part && run_beside(beside, [&] {
                        result = round.own(own());
                        done.raise();
                    });
    asked_ = 0;
    round_id_ = ++last_id_;
    ask_more(round);
    if (own_part && !own_runs) result = round.own(own());
    while (waiting_ > 0 && Clock::now() < limit) {
        pump(limit, nullptr, &round);
        ask_more(round);
    }
    give_up_late(round);
    while (own_runs) {
        pump(Clock::now() + kTick, &done, nullptr);
        own_runs = !done.raised();
    }
    if (beside.joinable()) beside.join();
    if (!result) drop(own(), result.error());
}

void Roster::give_up_late(const Round& round) {
    if (waiting_ == 0) return;
    for (NodeState& node : nodes_) {
        if (node.waiting_for_ == 0) continue;
        no_longer_wait(node);
        if (!round.may_fail) lose(node, gone(node, round.action, round.limit));
    }
    // Where not all are asked at once: those whose turn has not come.
    for (; asked_ < nodes_.size(); ++asked_) {
        NodeState& node = nodes_[asked_];
        const bool late = is_asked(node, round) && !round.request(node, round_id_).empty();
        if (late && !round.may_fail) lose(node, gone(node, round.action, round.limit));
    }
}

/// Waits for messages until `until`, a tick, or `wake`; handles what came.
void Roster::pump(SteadyTime until, const Event* wake, const Round* round) {
    tick_();
    std::vector<zmq::pollitem_t> items;
    links_.add_to(items);
    if (wake != nullptr) items.push_back({nullptr, wake->fd(), ZMQ_POLLIN, 0});
    const auto left = std::chrono::duration_cast<Milliseconds>(until - Clock::now());
    // The C function: an interrupted wait is no exception, the callers look at the clock anyway.
    ::zmq_poll(items.data(), static_cast<int>(items.size()),
               std::clamp(left + Milliseconds(1), Milliseconds(0), kTick).count());
    read(round);
    // After the reading: who has answered while this thread was busy is not silent.
    keep_in_touch(round);
}

void Roster::read(const Round* round) {
    for (std::size_t i = 0; i < kMostInARow; ++i) {
        auto frame = links_.receive();
        if (!frame) return;
        const Nanoseconds received = leader_now();
        NodeState& node = nodes_[linked_[frame->peer]];
        if (!node.taking_part && node.relayed.empty()) continue;
        if (frame->parts) {
            lose(node, {ErrorCode::kInput, "read a reply of " + node.endpoint +
                                               ": it has several parts; is that an agent?"});
            continue;
        }
        auto message = unpack_message(
            {static_cast<const std::uint8_t*>(frame->body.data()), frame->body.size()},
            Speaker::kNode);
        if (!message)
            lose(node, message.error());
        else if (auto* passed = content_as<fbs::RelayReplyT>(*message))
            take_passed(node, *passed, received, round);
        else
            take(node, *message, received, round);
    }
}

/// Under last_id_: nodes of one relay are pinged by one message.
void Roster::send_ping(NodeState& node) {
    node.ping_id_ = last_id_;
    fbs::PingRequestT ping;
    if (node.holding) ping.capture_id = node.capture_id;
    const MessageBytes bytes = pack(node.ping_id_, ping);
    node.ping_sent_ = leader_now();
    (void)send(node, bytes);
}

/// Between pings while waiting; thousands of nodes are asked less often.
Milliseconds Roster::touch() const {
    return std::clamp(kTouch * static_cast<int>(nodes_.size()) / kNodesForTouch, kTouch,
                      kMostTouch);
}

void Roster::keep_in_touch(const Round* round) {
    const SteadyTime now = Clock::now();
    if (sweep_ || now - last_look_ < kTick) return;
    last_look_ = now;
    if (now - last_touch_ >= touch()) {
        last_touch_ = now;
        ++last_id_;
        const bool relays_alone = round != nullptr && round->of_relays;
        for (NodeState& node : nodes_) {
            const bool pinged = relays_alone ? !node.relayed.empty() : node.taking_part;
            if (node.has_way() && pinged) send_ping(node);
        }
        send_bundles();
    }
    if (round != nullptr) look_for_silent(*round, now);
}

void Roster::look_for_silent(const Round& round, SteadyTime now) {
    bool probed = false;
    for (NodeState& node : nodes_) {
        if (node.waiting_for_ == 0) continue;
        if (now - node.heard_ > round.silence + touch() - kTouch) {
            lose(node, gone(node, round.action, round.silence));
        } else if (!probed && now - node.heard_ > 2 * touch()) {
            NodeState& way = node.relay == NodeState::kNone ? node : nodes_[node.relay];
            // One that takes time a look: the others' messages wait meanwhile. Of those behind a relay one, too: it is the same one that is looked for.
            probed = is_tcp(way.endpoint) || node.relay != NodeState::kNone;
            if (auto alive = probe_endpoint(way.endpoint, kProbe); !alive) lose(way, alive.error());
        }
    }
}

void Roster::take(NodeState& node, fbs::MessageT& message, Nanoseconds received,
                  const Round* round) {
    node.heard_ = Clock::now();
    if (const auto* ping = content_as<fbs::PingReplyT>(message)) {
        // Read late, after whatever else was in the queue: a wide sample, and honest about it.
        if (sweep_ && sweep_->take(index_of(node), message.id, {ping->node_ns}, received)) return;
        if (message.id == node.ping_id_) {
            node.ping_id_ = 0;
            return node.during.push_back({node.ping_sent_, {ping->node_ns}, received});
        }
    }
    const auto unread = unread_by(node.endpoint, message);
    if ((message.id != node.waiting_for_ && !unread) || node.waiting_for_ == 0 || round == nullptr)
        return;
    no_longer_wait(node);
    if (unread) return round->may_fail ? void() : drop(node, *unread);
    if (const auto* error = content_as<fbs::ErrorReplyT>(message)) {
        if (round->of_relays) return lose_relayed(node, error_of(*error));
        return round->may_fail ? void() : drop(node, error_of(*error));
    }
    round->reply(node, message);
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
