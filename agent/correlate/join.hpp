// Halves to calls: which client's half and which server's half are one request, which is whose parent, and what the ones without
// their other are. Pure: the leader and the offline join call the same function.
//
//   halves of all nodes -> pairs (by span id, then time) -> states (joined, orphan, cut, unfinished) -> tree (parents, trace ids)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/correlate/halves.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {

/// As in job.fbs.
enum class RpcState : std::uint8_t { kJoined = 0, kOrphan = 1, kCut = 2 };

/// A half by its place in the input.
struct HalfIndex {
    std::uint32_t node = 0;
    std::uint32_t half = 0;
    auto operator<=>(const HalfIndex&) const = default;
};

/// One request: at least one of the two halves is there.
struct Call {
    schema::TraceId trace;
    schema::SpanId span;
    std::int32_t parent = -1;  ///< index in JoinResult::calls
    RpcState state = RpcState::kCut;
    bool unfinished = false;
    bool reply = false;  ///< the server's end and the client's end are the two ends of one reply
    std::optional<HalfIndex> client;
    std::optional<HalfIndex> server;
    std::int64_t client_begin_ns = 0;  ///< leader_ns, all four; 0: unknown
    std::int64_t server_begin_ns = 0;
    std::int64_t server_end_ns = 0;
    std::int64_t client_end_ns = 0;
};

struct JoinCounts {
    std::uint64_t joined_requests = 0;
    std::uint64_t joined_replies = 0;
    std::uint64_t orphans = 0;
    std::uint64_t cut = 0;
    std::uint64_t unfinished = 0;
    std::uint64_t ambiguous = 0;         ///< halves that had candidates time could not tell apart
    std::uint64_t order_violations = 0;  ///< calls with a reply before its request beyond the bound
};

struct JoinOptions {
    std::uint64_t capture_id = 0;  ///< goes into derived trace ids
    /// False: halves are paired as ever, but all times are told, and checked for order, by each node's own clock. For tests of the
    /// correction: taken out, they must see replies before requests.
    bool corrected = true;
};

struct JoinResult {
    std::vector<Call> calls;  ///< by their first known begin
    JoinCounts counts;
};

/// A single pair whose times contradict each other by less than this beyond the bound is joined all the same and counted as an order
/// violation: the clocks were wrong. By more, it is two requests that share an id (init_rpc takes far longer than this).
inline constexpr std::int64_t kViolationGraceNs = 10'000'000;

/// Joins a capture's halves. Time: sorting them; memory: some 100 bytes a half.
/// @thread thread-safe
JoinResult join(std::span<const NodeCapture> nodes, const JoinOptions& options);

}  // namespace ringside::agent
