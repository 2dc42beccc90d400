// What a half without its other is: an orphan, because the other side was being recorded or died, or cut, because it lies outside the
// capture; and how long one is waited for. Used by join.cpp alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/correlate/join.hpp"
#include "agent/correlate/pairing.hpp"

namespace ringside::agent {

/// Answers by worker name which processes of the capture went by it, and by process what became of it. Both have numbers here.
class Sides {
public:
    /// @param nodes  borrowed; their halves are not looked at
    Sides(std::span<const NodeCapture> nodes, const PairBound& bounds);

    std::uint32_t process(std::uint32_t node, std::uint32_t index);
    std::uint32_t worker(std::string_view name);

    /// Whether a half with this other side is a message's: sent by the one, received by the other, answered by nobody.
    bool names_rank(std::uint32_t worker) const { return workers_[worker].rank; }

    /// Counts a client's half: by it is told which later ones were made inside the capture. Those of one process in any order. Messages
    /// don't count: they are numbered by channel.
    void count_call(const OpenHalf& client);

    /// How far from a half of this node its other, a half of the worker that it names, may lie by the two clocks. A worker that the
    /// capture does not have may be on any node where there are any.
    std::int64_t wait_ns(std::uint32_t node, std::uint32_t worker) const;

    /// kOrphan or kCut, of a half that found no partner. All that began before its begin and the clocks' bound are counted.
    RpcState state_of(const OpenHalf& half) const;
    /// A half that its process did not live to end.
    bool left_open(const OpenHalf& half) const {
        return !half.ended() && processes_[half.process].end_ns;
    }
    std::uint32_t index_of(std::uint32_t process) const { return processes_[process].index; }
    std::uint32_t node_of(std::uint32_t process) const { return processes_[process].node; }

private:
    struct Process {
        std::uint32_t node = 0;
        std::uint32_t index = 0;
        std::optional<std::int64_t> end_ns;
        /// What number its framework had reached when: begin -> the least number from then on back. Only where it falls: seldom.
        std::map<std::int64_t, std::uint64_t> least_wire_ids;
    };
    struct Peer {
        std::uint32_t process;
        bool recorded;
    };
    /// The two widest bounds of some nodes: how far any of them may be from a node, which may be one of them.
    struct Widest {
        void add(std::uint32_t of, std::int64_t bound_ns);
        std::int64_t from(std::uint32_t other, const PairBound& bounds) const;
        std::uint32_t node = 0;
        std::int64_t first_ns = -1;   ///< the node's; -1: there is none
        std::int64_t second_ns = -1;  ///< another one's
    };
    struct Worker {
        bool rank = false;  ///< as messages name their other side
        std::vector<Peer> processes;
        Widest nodes{};  ///< of these
    };
    struct Recording {
        std::int64_t start_ns;  ///< the least number: from the first instruction
        std::int64_t stop_ns;   ///< the greatest number: nobody knows
    };

    RpcState client_state(const OpenHalf& half, const std::vector<Peer>& peers) const;
    RpcState server_state(const OpenHalf& half, const std::vector<Peer>& peers) const;
    RpcState sent_state(const OpenHalf& half, const std::vector<Peer>& peers) const;
    RpcState received_state(const OpenHalf& half, const std::vector<Peer>& peers) const;
    bool never_received(const OpenHalf& half, const Peer& peer) const;
    bool began_recorded(const OpenHalf& half, const Peer& peer) const;
    bool is_recorded_at(std::int64_t ns, const OpenHalf& half, const Peer& peer) const;
    bool died_before(const OpenHalf& half, const Peer& peer) const;
    bool made_inside(const OpenHalf& half, const Peer& peer) const;

    const PairBound& bounds_;
    std::vector<Recording> recordings_;  // of each node, leader_ns
    Widest nodes_with_workers_;
    std::vector<Process> processes_;
    std::unordered_map<std::uint64_t, std::uint32_t> process_numbers_;  // by node << 32 | index
    std::unordered_map<std::string, std::uint32_t> worker_numbers_;
    std::vector<Worker> workers_;
};

}  // namespace ringside::agent
