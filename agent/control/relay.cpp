#include "agent/control/relay.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "agent/control/beside.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

/// The server's socket has room for 64 messages to a client, and learns late that some have gone.
constexpr std::size_t kMostLetters = 16;
constexpr std::size_t kMostUnsentBytes = std::size_t{8} << 20;
constexpr std::size_t kMostWaiting = 64;
constexpr std::size_t kMostWaitingBytes = std::size_t{4} << 20;
constexpr std::size_t kMostForwardBytes = std::size_t{4} << 20;
/// Beside a message's bytes, of what libzmq needs for it.
constexpr std::size_t kOverheadBytes = 256;
/// What lies ready goes in one message, as far as these.
constexpr std::size_t kFramesInLetter = 64;
constexpr std::size_t kLetterBytes = std::size_t{256} << 10;
constexpr std::size_t kMostPassedBytes = kMostAnswerBytes - kEnvelopeBytes - kLetterBytes;
constexpr long kTickMs = 100;
/// Of our own pings; the leader's ids count from 1 on.
constexpr std::uint64_t kOwnPings = std::uint64_t{1} << 63;
constexpr std::size_t kPingReplyBytes = 512;
constexpr std::size_t kSamplesTold = 4;

/// What a leader asks nodes in a trace. Nothing else is passed on: no second relay, which could be this one again, nothing that ends an agent or reads a file.
bool is_passed_on(fbs::Content kind) {
    switch (kind) {
        case fbs::Content::PingRequest:
        case fbs::Content::StatusRequest:
        case fbs::Content::PrepareRequest:
        case fbs::Content::BeginRequest:
        case fbs::Content::StopRequest:
        case fbs::Content::HalvesRequest:
        case fbs::Content::IterationsRequest:
            return true;
        default:
            return false;
    }
}

std::unique_ptr<fbs::RelayFaultT> fault(std::uint32_t node, const Error& error) {
    const fbs::ErrorReplyT said = error_reply(error);
    auto fault = std::make_unique<fbs::RelayFaultT>();
    fault->node = node;
    fault->code = said.code;
    fault->message = said.message;
    return fault;
}

std::span<const std::uint8_t> bytes_of(const zmq::message_t& frame) {
    return {static_cast<const std::uint8_t*>(frame.data()), frame.size()};
}

std::size_t size_of(fbs::MessageT& message) {
    std::size_t bytes = 0;
    if (const auto* request = content_as<fbs::RelayRequestT>(message)) {
        for (const auto& relayed : request->messages)
            bytes += relayed->body.size() + relayed->nodes.size() * sizeof relayed->nodes[0];
    }
    return bytes;
}

schema::Result<void> may_be_passed_on(const MessageBytes& body) {
    const auto kind = kind_of(body, Speaker::kClient);
    if (!kind) return kind.error();
    if (is_passed_on(*kind)) return {};
    return Error{ErrorCode::kUsage,
                 std::string("pass on a ") + fbs::EnumNameContent(*kind) +
                     ": a relay takes what a trace asks its nodes, and nothing else"};
}

/// One for all who are to have it; `held` goes with the last of them.
zmq::message_t shared_by_all(MessageBytes body, std::shared_ptr<void> held) {
    struct Shared {
        MessageBytes bytes;
        std::shared_ptr<void> held;
    };
    auto* const kept = new Shared{std::move(body), std::move(held)};
    return {kept->bytes.data(), kept->bytes.size(),
            [](void*, void* hint) { delete static_cast<Shared*>(hint); }, kept};
}

}  // namespace

std::shared_ptr<void> RelayFlow::hold(const std::shared_ptr<RelayFlow>& flow, std::size_t bytes) {
    flow->letters_.fetch_add(1, std::memory_order_relaxed);
    flow->bytes_.fetch_add(bytes, std::memory_order_relaxed);
    // Whoever releases it last may do so when the relay has gone.
    return {flow.get(), [flow, bytes](void*) {
                flow->letters_.fetch_sub(1, std::memory_order_relaxed);
                flow->bytes_.fetch_sub(bytes, std::memory_order_relaxed);
                flow->event_.raise();
            }};
}

bool RelayFlow::has_room() const {
    return letters_.load(std::memory_order_relaxed) < kMostLetters &&
           bytes_.load(std::memory_order_relaxed) < kMostUnsentBytes;
}

Relay::Relay(NodeService& service, zmq::context_t& context, Outbox& outbox, std::string leader,
             std::vector<std::string> endpoints)
    : service_(service),
      outbox_(outbox),
      leader_(std::move(leader)),
      endpoints_(std::move(endpoints)),
      unsent_(kMostForwardBytes),
      links_(context, [this] { return ending_.load(std::memory_order_relaxed); }) {}

Relay::~Relay() {
    end();
    if (thread_.joinable()) thread_.join();
}

schema::Result<void> Relay::begin(std::uint64_t id) {
    return run_beside(thread_, [this, id] { run(id); });
}

void Relay::end() {
    ending_.store(true, std::memory_order_relaxed);
    flow_->event().raise();
}

bool Relay::take(fbs::MessageT message) {
    {
        const std::lock_guard lock(mutex_);
        const std::size_t bytes = size_of(message);
        if (inbox_.size() >= kMostWaiting || inbox_bytes_ + bytes > kMostWaitingBytes) return false;
        inbox_bytes_ += bytes;
        inbox_.push_back(std::move(message));
    }
    flow_->event().raise();
    return true;
}

void Relay::tell(MessageBytes bytes) {
    Letter letter{leader_, std::move(bytes)};
    letter.held = RelayFlow::hold(flow_, letter.bytes.size());
    outbox_.post(std::move(letter));
}

void Relay::run(std::uint64_t opened_by) {
    open(opened_by);
    while (!ending_.load(std::memory_order_relaxed)) {
        std::vector<zmq::pollitem_t> items{{nullptr, flow_->event().fd(), ZMQ_POLLIN, 0}};
        if (flow_->has_room()) links_.add_to(items);
        ::zmq_poll(items.data(), static_cast<int>(items.size()), kTickMs);
        // First: what comes from here on raises it again.
        flow_->event().lower();
        std::vector<fbs::MessageT> asked;
        {
            const std::lock_guard lock(mutex_);
            asked.swap(inbox_);
            inbox_bytes_ = 0;
        }
        for (fbs::MessageT& message : asked) handle(message);
        if (flow_->has_room()) pass_back();
        go_on_with_clocks();
    }
    refuse_clocks();
    over_.store(true, std::memory_order_release);
}

void Relay::open(std::uint64_t id) {
    const auto results = links_.connect(endpoints_, service_.keys());
    fbs::RelayOpenReplyT reply;
    for (std::size_t i = 0; i < results.size(); ++i) {
        connected_.push_back(static_cast<bool>(results[i]));
        if (!results[i])
            reply.faults.push_back(fault(static_cast<std::uint32_t>(i), results[i].error()));
    }
    spdlog::debug("relay to {} nodes, {} of them can't be reached", results.size(),
                  reply.faults.size());
    tell(pack(id, std::move(reply)));
}

void Relay::handle(fbs::MessageT& message) {
    if (auto* request = content_as<fbs::RelayRequestT>(message)) pass_on(*request);
    if (message.content.type == fbs::Content::RelayClocksRequest) begin_clocks(message.id);
}

void Relay::pass_on(fbs::RelayRequestT& request) {
    fbs::RelayReplyT reply;
    for (const auto& message : request.messages) {
        auto fits = may_be_passed_on(message->body);
        const std::size_t size = message->body.size() + kOverheadBytes;
        auto held = fits ? unsent_.hold(size) : nullptr;
        if (fits && !held)
            fits = Error{ErrorCode::kRefused, "pass on " + std::to_string(message->body.size()) +
                                                  " bytes: " + std::to_string(kMostForwardBytes) +
                                                  " wait here already for nodes that read nothing"};
        zmq::message_t body = shared_by_all(std::move(message->body), std::move(held));
        for (const std::uint32_t node : message->nodes) {
            if (node >= connected_.size() || !connected_[node]) continue;
            const auto sent = fits ? links_.send(node, body) : fits;
            if (!sent && reply.faults.size() < kMostRelayed)
                reply.faults.push_back(fault(node, sent.error()));
        }
    }
    if (!reply.faults.empty()) tell(pack(0, std::move(reply)));
}

void Relay::pass_back() {
    fbs::RelayReplyT reply;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kFramesInLetter && bytes < kLetterBytes; ++i) {
        const auto frame = links_.receive();
        if (!frame) break;
        if (is_own_ping(*frame, service_.engine().node_now())) continue;
        const auto node = static_cast<std::uint32_t>(frame->peer);
        if (frame->parts || frame->body.size() > kMostPassedBytes) {
            reply.faults.push_back(fault(
                node,
                {ErrorCode::kInput, "pass on a message of " + std::to_string(frame->body.size()) +
                                        " bytes: it is too large, or has several "
                                        "parts; is that an agent?"}));
            continue;
        }
        const auto body = bytes_of(frame->body);
        auto message = std::make_unique<fbs::RelayedT>();
        message->nodes = {node};
        message->body.assign(body.begin(), body.end());
        bytes += body.size();
        reply.messages.push_back(std::move(message));
    }
    if (!reply.messages.empty() || !reply.faults.empty()) tell(pack(0, std::move(reply)));
}

bool Relay::is_own_ping(const PeerLinks::Frame& frame, Nanoseconds received) {
    if (!sweep_ || frame.parts || frame.body.size() > kPingReplyBytes) return false;
    auto message = unpack_message(bytes_of(frame.body), Speaker::kNode);
    if (!message || message->id < kOwnPings) return false;
    if (const auto* ping = content_as<fbs::PingReplyT>(*message))
        (void)sweep_->take(frame.peer, message->id, {ping->node_ns}, received);
    return true;
}

void Relay::begin_clocks(std::uint64_t id) {
    if (sweep_) {
        const Error twice{ErrorCode::kRefused,
                          "measure the nodes' clocks: they are being measured; ask again later"};
        return tell(pack(id, error_reply(twice)));
    }
    sweep_for_ = id;
    clocks_ = {};
    std::vector<std::size_t> targets;
    for (std::size_t node = 0; node < connected_.size(); ++node) {
        if (connected_[node]) targets.push_back(node);
    }
    const auto send = [this](std::size_t node) {
        const std::uint64_t ping = kOwnPings | ++last_ping_;
        const MessageBytes bytes = pack(ping, fbs::PingRequestT{});
        const Nanoseconds now = service_.engine().node_now();
        (void)links_.send(node, bytes);
        return PingSweep::Sent{ping, now};
    };
    const auto ended = [this](std::size_t node, const std::vector<PingSample>& samples) {
        std::vector<PingSample> best(std::min(kSamplesTold, samples.size()));
        std::partial_sort_copy(samples.begin(), samples.end(), best.begin(), best.end(),
                               [](const PingSample& one, const PingSample& other) {
                                   return one.rtt_ns() < other.rtt_ns();
                               });
        auto clock = std::make_unique<fbs::RelayClockT>();
        clock->node = static_cast<std::uint32_t>(node);
        for (const PingSample& sample : best)
            clock->samples.emplace_back(sample.sent_leader_ns.value, sample.node_ns.value,
                                        sample.received_leader_ns.value);
        clocks_.nodes.push_back(std::move(clock));
    };
    sweep_.emplace(std::move(targets), send, ended);
}

void Relay::go_on_with_clocks() {
    if (!sweep_) return;
    sweep_->go_on(Clock::now());
    if (!sweep_->over()) return;
    sweep_.reset();
    tell(pack(sweep_for_, std::move(clocks_)));
}

/// Nobody is left without an answer by a relay's end. Nothing is asked of it any more.
void Relay::refuse_clocks() {
    const fbs::ErrorReplyT ended = error_reply(
        {ErrorCode::kRefused, "measure the nodes' clocks: this relay to them has ended meanwhile"});
    if (sweep_) tell(pack(sweep_for_, fbs::ErrorReplyT(ended)));
    const std::lock_guard lock(mutex_);
    for (const fbs::MessageT& message : inbox_) {
        if (message.content.type == fbs::Content::RelayClocksRequest)
            tell(pack(message.id, fbs::ErrorReplyT(ended)));
    }
}

}  // namespace ringside::agent
