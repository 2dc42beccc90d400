#include "agent/control/roster.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr Milliseconds kTick{100};
constexpr Milliseconds kTouch{500};  ///< between pings while waiting, of so many nodes:
constexpr int kNodesForTouch = 1000;
constexpr Milliseconds kMostTouch{2000};
constexpr Milliseconds kProbe{200};
constexpr Milliseconds kForEach{2};  ///< what a node adds to a round's limit
constexpr Milliseconds kPingLimit{1000};
constexpr std::size_t kPingedAtOnce = 8;
constexpr std::size_t kMostInARow = 256;  ///< messages before the clock is looked at
constexpr Milliseconds kMeetLimit{2000};

Error gone(const NodeState& node, const std::string& action, Milliseconds after) {
    return {ErrorCode::kNoAgent, action + ": the agent at " + node.endpoint +
                                     " has not answered for " + std::to_string(after.count()) +
                                     " ms; is it stopped, or its machine overloaded?"};
}

}  // namespace

Roster::Roster(NodeService& own, zmq::context_t& context, std::function<void()> tick,
               const Event& nudge)
    : own_(own), links_(context), tick_(std::move(tick)), nudge_(nudge) {
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

void Roster::no_longer_wait(NodeState& node) {
    if (std::exchange(node.waiting_for_, 0) != 0) --waiting_;
}

void Roster::drop(NodeState& node, Error error) {
    node.taking_part = false;
    no_longer_wait(node);
    node.error = std::move(error);
}

void Roster::add_peers(const std::vector<std::string>& peers) {
    std::unordered_set<std::string> known{own().endpoint};
    std::vector<std::string> endpoints;
    for (const std::string& peer : peers) {
        if (known.insert(peer).second) endpoints.push_back(peer);
    }
    // The job's key, else the user's: an agent that was started without a job's name has that one.
    const auto connected = links_.connect(endpoints, own_.keys());
    nodes_.reserve(endpoints.size() + 1);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        NodeState state;
        state.endpoint = endpoints[i];
        state.name = endpoints[i];  // until it has told its own
        state.peer = i;
        nodes_.push_back(std::move(state));
        // An endpoint without a socket is a peer all the same: the reply says what is wrong with it.
        if (!connected[i]) drop(nodes_.back(), connected[i].error());
    }
}

void Roster::meet(const std::vector<std::string>& peers) {
    add_peers(peers);
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

void Roster::ask(NodeState& node, const Round& round) {
    if (node.own() || !node.taking_part) return;
    const std::uint64_t id = ++last_id_;
    const MessageBytes bytes = round.request(node, id);
    if (bytes.empty()) return;
    // A question that is asked again and again must not make one that is silent look alive.
    if (!round.may_fail) node.heard_ = Clock::now();
    node.waiting_for_ = id;
    ++waiting_;
    if (auto sent = links_.send(node.peer, bytes); !sent) drop(node, sent.error());
}

void Roster::ask_more(const Round& round) {
    while (waiting_ < round.at_once && asked_ < nodes_.size()) ask(nodes_[asked_++], round);
}

void Roster::run(const Round& round) {
    const SteadyTime limit =
        Clock::now() + round.limit + kForEach * static_cast<int>(nodes_.size());
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
    asked_ = 0;
    ask_more(round);
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
        if (!round.may_fail) drop(node, gone(node, round.action, round.limit));
    }
    // Where not all are asked at once: those whose turn has not come.
    for (; asked_ < nodes_.size(); ++asked_) {
        NodeState& node = nodes_[asked_];
        if (node.taking_part && !round.may_fail) drop(node, gone(node, round.action, round.limit));
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
        NodeState& node = nodes_[frame->peer + 1];
        if (!node.taking_part) continue;
        if (frame->parts) {
            drop(node, {ErrorCode::kInput, "read a reply of " + node.endpoint +
                                               ": it has several parts; is that an agent?"});
            continue;
        }
        auto message = unpack_message(
            {static_cast<const std::uint8_t*>(frame->body.data()), frame->body.size()});
        if (message)
            take(node, *message, received, round);
        else
            drop(node, message.error());
    }
}

void Roster::send_ping(NodeState& node) {
    node.ping_id_ = ++last_id_;
    node.pinged_ = Clock::now();
    const MessageBytes bytes = pack(node.ping_id_, fbs::PingRequestT{});
    node.ping_sent_ = leader_now();
    (void)links_.send(node.peer, bytes);
}

/// Between pings while waiting; thousands of nodes are asked less often.
Milliseconds Roster::touch() const {
    return std::clamp(kTouch * static_cast<int>(nodes_.size()) / kNodesForTouch, kTouch,
                      kMostTouch);
}

void Roster::keep_in_touch(const Round* round) {
    const SteadyTime now = Clock::now();
    if (measuring_ || now - last_look_ < kTick) return;
    last_look_ = now;
    if (now - last_touch_ >= touch()) {
        last_touch_ = now;
        for (NodeState& node : nodes_) {
            if (!node.own() && node.taking_part) send_ping(node);
        }
    }
    if (round == nullptr) return;
    bool probed = false;
    for (NodeState& node : nodes_) {
        if (node.waiting_for_ == 0) continue;
        if (now - node.heard_ > round->silence + touch() - kTouch) {
            drop(node, gone(node, round->action, round->silence));
        } else if (!probed && now - node.heard_ > 2 * touch()) {
            // One that takes time a look: the others' messages wait meanwhile.
            probed = is_tcp(node.endpoint);
            if (auto alive = probe_endpoint(node.endpoint, kProbe); !alive)
                drop(node, alive.error());
        }
    }
}

void Roster::take(NodeState& node, fbs::MessageT& message, Nanoseconds received,
                  const Round* round) {
    node.heard_ = Clock::now();
    const auto* ping = content_as<fbs::PingReplyT>(message);
    // Read late, after whatever else was in the queue: a wide sample, and honest about it.
    if (ping != nullptr && message.id == node.ping_id_)
        return take_ping(node, {node.ping_sent_, {ping->node_ns}, received});
    const auto unread = unread_by(node.endpoint, message);
    if ((message.id != node.waiting_for_ && !unread) || node.waiting_for_ == 0 || round == nullptr)
        return;
    no_longer_wait(node);
    if (unread) return round->may_fail ? void() : drop(node, *unread);
    if (const auto* error = content_as<fbs::ErrorReplyT>(message)) {
        return round->may_fail ? void() : drop(node, error_of(*error));
    }
    round->reply(node, message);
}

void Roster::take_ping(NodeState& node, const PingSample& sample) {
    node.ping_id_ = 0;
    if (!node.epoch_) return node.during.push_back(sample);
    node.epoch_->add(sample);
    if (!node.epoch_->done()) send_ping(node);
}

void Roster::end_epoch(NodeState& node, std::vector<PingSample> NodeState::*samples) {
    const std::vector<PingSample> epoch = node.epoch_->samples();
    node.epoch_.reset();
    node.ping_id_ = 0;
    if (epoch.empty()) {
        // Before the capture a node without a clock is no use; after it its dump still is.
        if (samples == &NodeState::before) drop(node, gone(node, "ping", kPingLimit));
        return;
    }
    auto& kept = node.*samples;
    kept.insert(kept.end(), epoch.begin(), epoch.end());
    if (samples != &NodeState::before) return;
    const Nanoseconds now = epoch.back().node_ns;
    node.rough = measure_clock(kept, {}, {}, {now, now}).correction;
}

void Roster::ping_all(std::vector<PingSample> NodeState::*samples) {
    std::vector<NodeState*> under_way;
    measuring_ = true;
    for (std::size_t next = 1; next < nodes_.size() || !under_way.empty();) {
        for (; next < nodes_.size() && under_way.size() < kPingedAtOnce; ++next) {
            NodeState& node = nodes_[next];
            if (!node.taking_part) continue;
            node.epoch_.emplace(PingPlan{});
            send_ping(node);
            under_way.push_back(&node);
        }
        if (!under_way.empty()) pump(Clock::now() + kTick, nullptr, nullptr);
        const SteadyTime now = Clock::now();
        std::erase_if(under_way, [&](NodeState* node) {
            const bool late = now - node->pinged_ > kPingLimit;
            if (node->taking_part && !late && !node->epoch_->done()) return false;
            if (node->taking_part) end_epoch(*node, samples);
            return true;
        });
    }
    measuring_ = false;
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
