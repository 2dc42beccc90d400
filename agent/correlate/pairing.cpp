#include "agent/correlate/pairing.hpp"

#include <algorithm>

#include "agent/correlate/join.hpp"

namespace ringside::agent {
namespace {

constexpr std::uint64_t kMostPairsTried = 1u << 16;
// Two bounds and a time of this century add up without overflow.
constexpr std::int64_t kWidestBoundNs = std::numeric_limits<std::int64_t>::max() / 8;

/// Whether time allows that `server` served `client`.
/// @param next_begin_ns  when the client's process began its next request of this id: what arrives after that is the next one's
bool compatible(const OpenHalf& client, const OpenHalf& server, std::int64_t next_begin_ns,
                std::int64_t bound_ns) {
    if (later(server.begin_ns, bound_ns) < client.begin_ns) return false;
    if (server.begin_ns > later(next_begin_ns, bound_ns)) return false;
    // A timeout ends the client's half whenever it likes; a reply comes after its request has arrived. That it comes after the server's
    // end as well is checked once they are joined: here it would tell apart nothing that the begins don't.
    return !client.replied() || server.begin_ns <= later(client.end_ns, bound_ns);
}

}  // namespace

std::int64_t later(std::int64_t ns, std::int64_t by_ns) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(ns, by_ns, &sum)) return kNever;
    return sum;
}

PairBound::PairBound(std::span<const NodeCapture> nodes) {
    for (const NodeCapture& node : nodes)
        bounds_.push_back(std::clamp<std::int64_t>(node.clock.bound_ns, 0, kWidestBoundNs));
}

IdUse first_use(std::span<const OpenHalf* const> halves) {
    IdUse use;
    std::int64_t sure = std::numeric_limits<std::int64_t>::min();
    std::int64_t failed_end = sure;  // of the clients that no reply ended
    bool served = false;
    // Processes whose last request ended without a reply: it may arrive whenever, until they use the id again or it is found.
    std::vector<std::uint32_t> waiting;
    const auto reach = [&] {
        if (served) return std::max(sure, failed_end);
        return waiting.empty() ? sure : kNever;
    };
    while (use.halves < halves.size()) {
        const OpenHalf& half = *halves[use.halves];
        if (use.halves > 0 && (half.begin_ns > use.reach_ns || half.span == 0)) break;
        ++use.halves;
        if (!half.ended()) sure = kNever;
        if (half.server) {
            served = true;
            sure = std::max(sure, later(half.begin_ns, half.wait_ns));
        } else {
            const std::int64_t until = later(half.end_ns, half.wait_ns);
            if (!waiting.empty()) std::erase(waiting, half.process);
            if (half.replied()) {
                sure = std::max(sure, until);
            } else {
                failed_end = std::max(failed_end, until);
                waiting.push_back(half.process);
            }
        }
        use.reach_ns = reach();
    }
    return use;
}

void Pairing::run(std::span<const OpenHalf* const> halves) {
    clients_.clear();
    servers_.clear();
    for (const OpenHalf* half : halves)
        (half->server ? servers_ : clients_).push_back({half, 0, kNoPartner});
    if (clients_.empty() || servers_.empty()) return;
    if (clients_.size() == 1 && servers_.size() == 1) return pair_two();
    pair_many();
}

void Pairing::pair_two() {
    const OpenHalf& client = *clients_[0].half;
    const OpenHalf& server = *servers_[0].half;
    const std::int64_t bound = later(bounds_.between(client.node, server.node), kViolationGraceNs);
    if (compatible(client, server, kNever, bound)) clients_[0].partner = servers_[0].partner = 0;
}

/// Joins those that are each other's only candidate. Going on from there by elimination would be a guess: a half may be lost.
void Pairing::pair_many() {
    // No job calls init_rpc so often: a segment that is not what it says. It costs its own calls, not the join.
    const bool too_many = std::uint64_t{clients_.size()} * servers_.size() > kMostPairsTried;
    if (too_many) {
        for (Side& side : clients_) side.choices = 2;
        for (Side& side : servers_) side.choices = 2;
        return;
    }
    std::vector<std::uint32_t> only(clients_.size(), kNoPartner);
    for (std::uint32_t c = 0; c < clients_.size(); ++c) {
        const OpenHalf& client = *clients_[c].half;
        const std::int64_t next = next_begin(c);
        for (std::uint32_t s = 0; s < servers_.size(); ++s) {
            const OpenHalf& server = *servers_[s].half;
            if (!compatible(client, server, next, bounds_.between(client.node, server.node)))
                continue;
            ++clients_[c].choices;
            ++servers_[s].choices;
            only[c] = s;
        }
    }
    for (std::uint32_t c = 0; c < clients_.size(); ++c) {
        if (clients_[c].choices != 1 || servers_[only[c]].choices != 1) continue;
        clients_[c].partner = only[c];
        servers_[only[c]].partner = c;
    }
}

/// The same process asking again with the same id has been through init_rpc: nothing of the old one arrives any more.
std::int64_t Pairing::next_begin(std::size_t client) const {
    for (std::size_t c = client + 1; c < clients_.size(); ++c) {
        if (clients_[c].half->process == clients_[client].half->process)
            return clients_[c].half->begin_ns;
    }
    return kNever;
}

}  // namespace ringside::agent
