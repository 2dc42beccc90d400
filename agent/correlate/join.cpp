#include "agent/correlate/join.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/correlate/open_halves.hpp"
#include "agent/correlate/pairing.hpp"
#include "agent/correlate/sides.hpp"

namespace ringside::agent {
namespace {

using schema::mix64;
using schema::RpcStatus;

/// Looking through all open halves costs as much as so many new ones at least.
constexpr std::size_t kLeastBetweenSweeps = 4096;

}  // namespace

class Join::State {
public:
    State(std::span<const NodeCapture> nodes, const JoinOptions& options, CallSink& sink)
        : options_(options),
          sink_(sink),
          bounds_(nodes),
          sides_(nodes, bounds_),
          pairing_(bounds_) {
        for (const NodeCapture& node : nodes) {
            clocks_.push_back(node.node_clock());
            name_hashes_.push_back(schema::hash_bytes(node.name.data(), node.name.size(),
                                                      mix64(options.capture_id + 1)));
        }
    }

    Sides& sides() { return sides_; }
    std::size_t open() const { return halves_.size(); }
    std::size_t most_open() const { return most_open_; }

    void begin(const HalfBegin& from) {
        OpenHalf half = open_half(from);
        if (!early_.empty()) take_early_end(half);
        add(half);
    }

    void whole(const HalfBegin& from, std::uint64_t end_ticks, RpcStatus status) {
        OpenHalf half = open_half(from);
        half.end_ns = leader_ns(half.node, end_ticks);
        half.status = status;
        add(half);
    }

    void end(std::uint32_t process, std::uint64_t key, std::uint64_t ticks, RpcStatus status) {
        const std::int64_t end_ns = leader_ns(sides_.node_of(process), ticks);
        if (halves_.end(process, key, end_ns, status)) return;
        early_.emplace(mix64(key) ^ process, EarlyEnd{key, process, end_ns, status});
        ++added_;
    }

    void advance(std::int64_t now_ns) {
        now_ns_ = std::max(now_ns_, now_ns);
        if (added_ < std::max(kLeastBetweenSweeps, halves_.sweep_cost() / 2)) return;
        sweep();
        // Their begins lie before the capture, or were lost.
        std::erase_if(early_, [&](const auto& entry) { return entry.second.end_ns < now_ns_; });
    }

    JoinCounts finish() {
        now_ns_ = kNever;
        finishing_ = true;
        sweep();
        return counts_;
    }

private:
    /// An end that was read before its begin: they are on two lanes.
    struct EarlyEnd {
        std::uint64_t key;
        std::uint32_t process;
        std::int64_t end_ns;
        RpcStatus status;
    };

    std::int64_t leader_ns(std::uint32_t node, std::uint64_t ticks) const {
        return clocks_[node].leader_ns(Ticks{ticks}).value;
    }

    OpenHalf open_half(const HalfBegin& from) {
        OpenHalf half;
        half.node = sides_.node_of(from.process);
        half.process = from.process;
        half.lane = from.lane.index;
        half.generation = from.lane.generation;
        half.position = from.position;
        half.span = from.id.span.value;
        half.trace_hi = from.id.trace.hi;
        half.trace_lo = from.id.trace.lo;
        half.begin_ns = leader_ns(half.node, from.ticks);
        half.wait_ns = sides_.wait_ns(half.node, from.peer);
        half.key = from.key;
        half.parent_key = from.parent_key;
        half.wire_id = from.wire_id;
        half.peer = from.peer;
        half.server = from.server;
        return half;
    }

    void add(const OpenHalf& half) {
        if (!half.server) sides_.count_call(half);
        halves_.add(half);
        ++added_;
        most_open_ = std::max(most_open_, halves_.size());
    }

    void take_early_end(OpenHalf& half) {
        const auto [first, last] = early_.equal_range(mix64(half.key) ^ half.process);
        auto found = last;
        for (auto at = first; at != last; ++at) {
            const EarlyEnd& end = at->second;
            if (end.key == half.key && end.process == half.process && end.end_ns >= half.begin_ns &&
                (found == last || end.end_ns < found->second.end_ns))
                found = at;
        }
        if (found == last) return;
        half.end_ns = found->second.end_ns;
        half.status = found->second.status;
        early_.erase(found);
    }

    void sweep() {
        added_ = 0;
        halves_.sweep([this](std::span<const OpenHalf* const> of_id) {
            std::size_t done = 0;
            while (done < of_id.size()) {
                const IdUse use = first_use(of_id.subspan(done));
                if (!finishing_ && use.reach_ns >= now_ns_) break;
                settle(of_id.subspan(done, use.halves));
                done += use.halves;
            }
            return done;
        });
    }

    void settle(std::span<const OpenHalf* const> use) {
        if (use.size() == 1) return tell_single(*use[0], false);
        pairing_.run(use);
        for (const Pairing::Side& client : pairing_.clients()) {
            if (client.partner == Pairing::kNoPartner) {
                tell_single(*client.half, client.ambiguous());
            } else {
                tell_pair(*client.half, *pairing_.servers()[client.partner].half);
            }
        }
        for (const Pairing::Side& server : pairing_.servers()) {
            if (server.partner == Pairing::kNoPartner)
                tell_single(*server.half, server.ambiguous());
        }
    }

    void tell_single(const OpenHalf& half, bool ambiguous) {
        const RpcState state = ambiguous ? RpcState::Cut : sides_.state_of(half);
        counts_.ambiguous += ambiguous;
        ++(state == RpcState::Orphan ? counts_.orphans : counts_.cut);
        tell(half.server ? nullptr : &half, half.server ? &half : nullptr, state, false);
    }

    void tell_pair(const OpenHalf& client, const OpenHalf& server) {
        const std::int64_t bound = bounds_.between(client.node, server.node);
        // An answer that came, good or bad; to a message none does. An error before the server's end is the caller's own (a broken pipe).
        const bool reply =
            client.ended() && server.ended() && !sides_.names_rank(client.peer) &&
            (client.status == RpcStatus::kOk ||
             (client.status == RpcStatus::kError && server.end_ns - bound <= client.end_ns));
        ++counts_.joined_requests;
        counts_.joined_replies += reply;
        const fbs::Call call = tell(&client, &server, RpcState::Joined, reply);
        const bool early_server = call.server_begin_ns() < call.client_begin_ns() - bound;
        const bool early_client = reply && call.client_end_ns() < call.server_end_ns() - bound;
        counts_.order_violations += early_server || early_client;
    }

    fbs::Call tell(const OpenHalf* client, const OpenHalf* server, RpcState state, bool reply) {
        const OpenHalf& either = client != nullptr ? *client : *server;
        const schema::TraceId trace = trace_of(either);
        const bool unfinished = (client != nullptr && sides_.left_open(*client)) ||
                                (server != nullptr && sides_.left_open(*server));
        counts_.unfinished += unfinished;
        const fbs::Call call(
            trace.hi, trace.lo, either.span, ref(client), ref(server),
            server != nullptr ? server->key : 0, client != nullptr ? client->parent_key : 0,
            client != nullptr ? told(*client, client->begin_ns) : 0,
            server != nullptr ? told(*server, server->begin_ns) : 0,
            server != nullptr && server->ended() ? told(*server, server->end_ns) : 0,
            client != nullptr && client->ended() ? told(*client, client->end_ns) : 0, state,
            unfinished, reply);
        sink_.add(call);
        return call;
    }

    fbs::HalfRef ref(const OpenHalf* half) const {
        if (half == nullptr) return {kNoNode, 0, 0, 0, 0};
        return {half->node, sides_.index_of(half->process), half->lane, half->generation,
                half->position};
    }

    /// A time by the clock by which the result tells its times: the corrected one, or the node's own.
    std::int64_t told(const OpenHalf& half, std::int64_t ns) const {
        return options_.corrected ? ns : clocks_[half.node].correction.node_ns({ns}).value;
    }

    schema::TraceId trace_of(const OpenHalf& half) const {
        if ((half.trace_hi | half.trace_lo) != 0) return {half.trace_hi, half.trace_lo};
        std::uint64_t hash = mix64(name_hashes_[half.node] ^ half.span);
        hash = mix64(hash ^ (std::uint64_t{sides_.index_of(half.process)} << 32 | half.lane));
        const std::uint64_t low = mix64(hash ^ half.position ^ 0x9e3779b97f4a7c15ull);
        return {mix64(hash + 0x9e3779b97f4a7c15ull), low == 0 ? 1 : low};
    }

    const JoinOptions options_;
    CallSink& sink_;
    std::vector<NodeClock> clocks_;
    std::vector<std::uint64_t> name_hashes_;
    PairBound bounds_;
    Sides sides_;
    Pairing pairing_;
    OpenHalves halves_;
    std::unordered_multimap<std::uint64_t, EarlyEnd> early_;
    std::int64_t now_ns_ = std::numeric_limits<std::int64_t>::min();
    std::size_t added_ = 0;  // halves and early ends since the last sweep
    std::size_t most_open_ = 0;
    bool finishing_ = false;
    JoinCounts counts_;
};

Join::Join(std::span<const NodeCapture> nodes, const JoinOptions& options, CallSink& sink)
    : state_(std::make_unique<State>(nodes, options, sink)) {}
Join::~Join() = default;

std::uint32_t Join::process(std::uint32_t node, std::uint32_t index) {
    return state_->sides().process(node, index);
}
std::uint32_t Join::worker(std::string_view name) {
    return state_->sides().worker(name);
}
void Join::begin(const HalfBegin& half) {
    state_->begin(half);
}
void Join::end(std::uint32_t process, std::uint64_t key, std::uint64_t ticks, RpcStatus status) {
    state_->end(process, key, ticks, status);
}
void Join::whole(const HalfBegin& half, std::uint64_t end_ticks, RpcStatus status) {
    state_->whole(half, end_ticks, status);
}
void Join::advance(std::int64_t now_ns) {
    state_->advance(now_ns);
}
JoinCounts Join::finish() {
    return state_->finish();
}
std::size_t Join::open() const {
    return state_->open();
}
std::size_t Join::most_open() const {
    return state_->most_open();
}

JoinCounts join(std::span<const NodeCapture> nodes, const JoinOptions& options, CallSink& sink) {
    struct Place {
        std::int64_t begin_ns;
        std::uint32_t node;
        std::uint32_t half;
    };
    std::vector<Place> order;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeClock clock = nodes[n].node_clock();
        for (std::uint32_t h = 0; h < nodes[n].halves.size(); ++h)
            order.push_back({clock.leader_ns(Ticks{nodes[n].halves[h].begin_ticks}).value, n, h});
    }
    std::sort(order.begin(), order.end(),
              [](const Place& a, const Place& b) { return a.begin_ns < b.begin_ns; });
    Join joining(nodes, options, sink);
    for (const Place& place : order) {
        const Half& half = nodes[place.node].halves[place.half];
        joining.advance(place.begin_ns);
        const HalfBegin begin{joining.process(place.node, half.process),
                              joining.worker(half.peer),
                              half.lane,
                              half.position,
                              half.server,
                              half.id,
                              half.key,
                              half.parent_key,
                              half.begin_ticks,
                              half.wire_id};
        if (half.ended) {
            joining.whole(begin, half.end_ticks, half.status);
        } else {
            joining.begin(begin);
        }
    }
    return joining.finish();
}

}  // namespace ringside::agent
