#include "agent/correlate/pairing.hpp"

#include <algorithm>
#include <tuple>

namespace ringside::agent {
namespace {

constexpr std::uint64_t kMostPairsTried = 1u << 16;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// Two bounds and a time of this century add up without overflow.
constexpr std::int64_t kWidestBoundNs = std::numeric_limits<std::int64_t>::max() / 8;

std::int64_t later(std::int64_t ns, std::int64_t by_ns) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(ns, by_ns, &sum)) return std::numeric_limits<std::int64_t>::max();
    return sum;
}

bool same_id(const TimedHalf& a, const TimedHalf& b) {
    return a.span == b.span && a.trace_hi == b.trace_hi && a.trace_lo == b.trace_lo;
}

/// Whether time allows that `server` served `client`.
/// @param next_begin_ns  when the client's process began its next request of this id: what arrives after that is the next one's
bool compatible(const TimedHalf& client, const TimedHalf& server, std::int64_t next_begin_ns,
                std::int64_t bound_ns) {
    if (later(server.begin_ns, bound_ns) < client.begin_ns) return false;
    if (server.begin_ns > later(next_begin_ns, bound_ns)) return false;
    // A timeout ends the client's half whenever it likes; a reply comes after its request has arrived. That it comes after the server's
    // end as well is checked once they are joined: here it would tell apart nothing that the begins don't.
    return !client.replied || server.begin_ns <= later(client.end_ns, bound_ns);
}

/// One group of halves with the same id, as positions in the whole: clients [first, middle), servers [middle, last).
struct Group {
    std::uint32_t first;
    std::uint32_t middle;
    std::uint32_t last;
};

class Pairing {
public:
    Pairing(std::span<const TimedHalf> halves, const PairBound& bounds)
        : halves_(halves), bounds_(bounds) {
        pairs_.partner.assign(halves.size(), kNoPartner);
        pairs_.ambiguous.assign(halves.size(), 0);
    }

    Pairs run() {
        const auto size = static_cast<std::uint32_t>(halves_.size());
        for (std::uint32_t first = 0; first < size;) {
            std::uint32_t middle = first;
            while (middle < size && same_id(halves_[first], halves_[middle]) &&
                   !halves_[middle].server) {
                ++middle;
            }
            std::uint32_t last = middle;
            while (last < size && same_id(halves_[first], halves_[last])) ++last;
            pair_group({first, middle, last});
            first = last;
        }
        return std::move(pairs_);
    }

private:
    void pair_group(const Group& group) {
        const std::uint32_t clients = group.middle - group.first;
        const std::uint32_t servers = group.last - group.middle;
        if (clients == 0 || servers == 0 || halves_[group.first].span == 0) return;
        if (clients == 1 && servers == 1) return pair_two(group.first, group.middle);
        pair_many(group);
    }

    void pair_two(std::uint32_t client, std::uint32_t server) {
        const std::int64_t bound = later(
            bounds_.between(halves_[client].at.node, halves_[server].at.node), kViolationGraceNs);
        if (compatible(halves_[client], halves_[server], kNever, bound)) link(client, server);
    }

    /// Joins those that are each other's only candidate. Going on from there by elimination would be a guess: a half may be lost.
    void pair_many(const Group& group) {
        const std::uint32_t servers = group.last - group.middle;
        // No job calls init_rpc so often: a segment that is not what it says. It costs its own calls, not the join.
        if (std::uint64_t{group.middle - group.first} * servers > kMostPairsTried) {
            std::fill(pairs_.ambiguous.begin() + group.first, pairs_.ambiguous.begin() + group.last,
                      std::uint8_t{1});
            return;
        }
        std::vector<std::uint32_t> client_choices(group.middle - group.first, 0);
        std::vector<std::uint32_t> server_choices(servers, 0);
        std::vector<std::uint32_t> only(group.middle - group.first, kNoPartner);
        for (std::uint32_t c = group.first; c < group.middle; ++c) {
            const std::int64_t next = next_begin(c, group.middle);
            for (std::uint32_t s = group.middle; s < group.last; ++s) {
                const std::int64_t bound = bounds_.between(halves_[c].at.node, halves_[s].at.node);
                if (!compatible(halves_[c], halves_[s], next, bound)) continue;
                ++client_choices[c - group.first];
                ++server_choices[s - group.middle];
                only[c - group.first] = s;
            }
        }
        settle(group, client_choices, server_choices, only);
    }

    void settle(const Group& group, const std::vector<std::uint32_t>& client_choices,
                const std::vector<std::uint32_t>& server_choices,
                const std::vector<std::uint32_t>& only) {
        for (std::uint32_t c = group.first; c < group.middle; ++c) {
            const std::uint32_t choices = client_choices[c - group.first];
            const std::uint32_t s = only[c - group.first];
            if (choices == 1 && server_choices[s - group.middle] == 1) {
                link(c, s);
            } else if (choices > 0) {
                pairs_.ambiguous[c] = 1;
            }
        }
        for (std::uint32_t s = group.middle; s < group.last; ++s) {
            if (pairs_.partner[s] == kNoPartner && server_choices[s - group.middle] > 0)
                pairs_.ambiguous[s] = 1;
        }
    }

    /// The same process asking again with the same id has been through init_rpc: nothing of the old one arrives any more.
    std::int64_t next_begin(std::uint32_t client, std::uint32_t middle) const {
        for (std::uint32_t c = client + 1; c < middle; ++c) {
            if (halves_[c].at.node == halves_[client].at.node &&
                halves_[c].process == halves_[client].process) {
                return halves_[c].begin_ns;
            }
        }
        return kNever;
    }

    void link(std::uint32_t client, std::uint32_t server) {
        pairs_.partner[client] = server;
        pairs_.partner[server] = client;
    }

    std::span<const TimedHalf> halves_;
    const PairBound& bounds_;
    Pairs pairs_;
};

}  // namespace

PairBound::PairBound(std::span<const NodeCapture> nodes) {
    for (const NodeCapture& node : nodes)
        bounds_.push_back(std::clamp<std::int64_t>(node.clock.bound_ns, 0, kWidestBoundNs));
}

bool before(const TimedHalf& a, const TimedHalf& b) {
    if (a.span != b.span) return a.span < b.span;
    return std::tie(a.trace_hi, a.trace_lo, a.server, a.begin_ns, a.at) <
           std::tie(b.trace_hi, b.trace_lo, b.server, b.begin_ns, b.at);
}

Pairs pair_halves(std::span<const TimedHalf> halves, const PairBound& bounds) {
    return Pairing(halves, bounds).run();
}

}  // namespace ringside::agent
