// What a trace's nodes have answered, put together: the join's input with final clock corrections, and the reply. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/control/messages.hpp"
#include "agent/control/roster.hpp"
#include "agent/correlate/halves.hpp"
#include "agent/correlate/join.hpp"

namespace ringside::agent {

struct TraceResult {
    std::vector<NodeCapture> captures;   ///< one a node, also of those that failed
    std::vector<fbs::TraceNodeT> nodes;  ///< likewise
    std::int64_t start_spread_ns = 0;    ///< how far apart the nodes' actual starts may lie
    std::int64_t duration_ns = 0;        ///< of the longest capture, by what it holds
};

/// Takes the halves out of `nodes`.
/// @param start_ns, stop_ns  the agreed instants, leader_ns; start 0: there were none
TraceResult make_result(std::vector<NodeState>& nodes, Nanoseconds start_ns, Nanoseconds stop_ns);

/// The reply, but for what only the run knows: ids and paths.
fbs::TraceReplyT trace_reply(TraceResult& result, const JoinCounts& counts);

}  // namespace ringside::agent
