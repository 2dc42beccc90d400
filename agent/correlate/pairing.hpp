// Pairs halves of one request id. Most ids have one client's and one server's half; where init_rpc was called twice they repeat, and time
// within the clock bound tells them apart, or nothing does and they are counted. Used by join.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/correlate/halves.hpp"
#include "agent/correlate/open_halves.hpp"

namespace ringside::agent {

/// a + b, kept within the range.
std::int64_t later(std::int64_t ns, std::int64_t by_ns);

/// Bounds of the nodes' clocks.
class PairBound {
public:
    explicit PairBound(std::span<const NodeCapture> nodes);
    /// Of the difference of two times; 0 on one node.
    std::int64_t between(std::uint32_t node, std::uint32_t other) const {
        if (node == other) return 0;
        return bounds_[node] + bounds_[other];
    }

    std::int64_t of(std::uint32_t node) const { return bounds_[node]; }

private:
    std::vector<std::int64_t> bounds_;  // each at most an eighth of the range
};

/// One use of an id: halves that time does not set apart from each other.
struct IdUse {
    std::size_t halves = 0;
    std::int64_t reach_ns = 0;  ///< a half that begins later is of another use; kNever: none does
};

/// The first use of an id.
/// @param halves  of one id, in the order of their begins; at least one
/// @return the same whether or not halves that begin beyond its reach are among them
IdUse first_use(std::span<const OpenHalf* const> halves);

/// Pairs the halves of one use.
class Pairing {
public:
    static constexpr std::uint32_t kNoPartner = std::numeric_limits<std::uint32_t>::max();
    explicit Pairing(const PairBound& bounds) : bounds_(bounds) {}

    /// @param halves  in the order of their begins; what this returns is in client() and server() until the next call
    void run(std::span<const OpenHalf* const> halves);

    struct Side {
        const OpenHalf* half;
        std::uint32_t choices;  ///< of the other side; 1 and a partner, or ambiguous
        std::uint32_t partner;  ///< a place on the other side; kNoPartner
        bool ambiguous() const { return partner == kNoPartner && choices > 0; }
    };
    std::span<const Side> clients() const { return clients_; }
    std::span<const Side> servers() const { return servers_; }

private:
    void pair_two();
    void pair_many();
    std::int64_t next_begin(std::size_t client) const;

    const PairBound& bounds_;
    std::vector<Side> clients_;
    std::vector<Side> servers_;
};

}  // namespace ringside::agent
