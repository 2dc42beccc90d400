// What a half without its other is: an orphan, because the other side was being recorded or died, or cut, because it lies outside the
// capture. Used by join.cpp alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/correlate/join.hpp"
#include "agent/correlate/pairing.hpp"

namespace ringside::agent {

/// Answers by worker name which processes of the capture went by it, and by process what became of it.
class Sides {
public:
    Sides(std::span<const NodeCapture> nodes, std::span<const TimedHalf> halves,
          const PairBound& bounds);

    /// kOrphan or kCut, of a half that found no partner.
    RpcState state_of(const TimedHalf& half) const;
    /// When the process of this half ended, leader_ns; nothing while it runs.
    std::optional<std::int64_t> process_end_ns(std::uint32_t node, std::uint32_t process) const;

private:
    struct Peer {
        std::uint32_t node;
        std::uint32_t process;
        bool recorded;
        std::optional<std::int64_t> end_ns;
    };
    /// A client's call: what number its framework had reached when.
    struct Counted {
        std::int64_t begin_ns;
        std::uint64_t least_wire_id;  ///< of this call and all before it
    };

    RpcState client_state(const TimedHalf& half, const std::vector<Peer>& peers) const;
    RpcState server_state(const TimedHalf& half, const std::vector<Peer>& peers) const;
    bool died_before(const TimedHalf& half, const Peer& peer) const;
    bool made_inside(const TimedHalf& half, const Peer& peer) const;
    void count_calls() const;
    const Half& source(const TimedHalf& half) const;

    std::span<const NodeCapture> nodes_;
    std::span<const TimedHalf> halves_;
    const PairBound& bounds_;
    std::vector<std::int64_t>
        start_ns_;  // of each node's capture, leader_ns; the least number: from the first instruction
    std::unordered_map<std::string_view, std::vector<Peer>> workers_;
    std::unordered_map<std::uint64_t, std::optional<std::int64_t>>
        ends_;  // by node << 32 | process
    mutable std::unordered_map<std::uint64_t, std::vector<Counted>>
        calls_;  // likewise; made when asked for
    mutable bool counted_ = false;
};

}  // namespace ringside::agent
