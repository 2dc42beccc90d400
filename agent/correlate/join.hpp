// Halves to calls as they come: which client's half and which server's half are one request, and what the ones without their other are.
// Pure: the leader and the offline join use the same.
//
//   halves, in the order of their begins -> open halves -> a use of an id that no half can join any more -> pairs -> states -> CallSink
//
// Memory: what is open, and as much again. Parents and trees' trace ids are the reader's to find: they depend on calls that end later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "agent/correlate/halves.hpp"
#include "schema/job_generated.h"

namespace ringside::agent {

using RpcState = fbs::RpcState;

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

/// HalfRef.node of a half that is not there.
inline constexpr std::uint32_t kNoNode = ~0u;

/// Where calls go, as they are joined: in no order that means anything.
class CallSink {
public:
    virtual ~CallSink() = default;
    virtual void add(const fbs::Call& call) = 0;
};

/// A half's begin.
struct HalfBegin {
    std::uint32_t process = 0;  ///< Join::process()
    std::uint32_t peer = 0;     ///< Join::worker()
    schema::LaneId lane;
    std::uint64_t position = 0;
    bool server = false;
    schema::RequestId id;
    std::uint64_t key = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t ticks = 0;
    std::uint64_t wire_id = 0;
};

/// A single pair whose times contradict each other by less than this beyond the bound is joined all the same and counted as an order
/// violation: the clocks were wrong. By more, it is two requests that share an id (init_rpc takes far longer than this).
inline constexpr std::int64_t kViolationGraceNs = 10'000'000;

class Join {
public:
    /// @param nodes  borrowed, what they say of processes and clocks; their halves are not looked at
    /// @param sink   borrowed
    Join(std::span<const NodeCapture> nodes, const JoinOptions& options, CallSink& sink);
    ~Join();

    /// Numbers by which halves name their process and the worker on their other side.
    std::uint32_t process(std::uint32_t node, std::uint32_t index);
    std::uint32_t worker(std::string_view name);

    void begin(const HalfBegin& half);
    /// Ends the half of this key; where its begin is still to come, it takes it then.
    void end(std::uint32_t process, std::uint64_t key, std::uint64_t ticks,
             schema::RpcStatus status);
    /// A begin and its end in one.
    void whole(const HalfBegin& half, std::uint64_t end_ticks, schema::RpcStatus status);

    /// Whatever comes from now on is of this time (leader_ns) or later. What lags behind all the same is taken, too, but may find its
    /// other gone. Calls that can no longer change go to the sink: at once, or where that would cost more than it frees, soon.
    void advance(std::int64_t now_ns);
    /// Nothing comes any more.
    JoinCounts finish();

    /// Halves that are kept now, and the most that ever were.
    std::size_t open() const;
    std::size_t most_open() const;

private:
    class State;
    std::unique_ptr<State> state_;
};

/// Joins halves that are in memory: the nodes' own.
JoinCounts join(std::span<const NodeCapture> nodes, const JoinOptions& options, CallSink& sink);

}  // namespace ringside::agent
