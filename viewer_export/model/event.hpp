// Events of a job as a view may ask for them: plain values in vectors, one per record or pair of records, in nanoseconds of one clock.
// No bytes, no text: names are indices into Job::names. Filled by load/, read by out/.
#pragma once

#include <cstdint>
#include <limits>

#include "schema/ids.hpp"
#include "schema/names.hpp"
#include "schema/record.hpp"
#include "schema/request_id.hpp"

namespace ringside::viewer_export::model {

/// An index into one of the job's vectors (names, processes, lanes, halves, calls): which one, the member's name says.
using Index = std::uint32_t;
inline constexpr Index kNone = std::numeric_limits<Index>::max();
/// Of an event's `request`: records were lost around its begin, so nobody knows which request it belongs to.
inline constexpr Index kUnknownRequest = kNone - 1;
/// Of an event that is no record of its own (it stood in a lane's open stack): no position.
inline constexpr std::uint64_t kNoPosition = std::numeric_limits<std::uint64_t>::max();

/// How an event ends. Where it doesn't, its end is the last evidence: when its process was seen dead, or the capture's stop.
enum class End : std::uint8_t {
    kEnded = 0,
    kOpen = 1,       ///< it went on when the capture stopped
    kUnfinished = 2  ///< its process died first
};

/// What a framework said of an event beside its name.
struct Attributes {
    Index domain = kNone;                                      ///< Job::names
    Index category = kNone;                                    ///< Job::names
    std::uint32_t colour = 0;                                  ///< ARGB; 0: none
    schema::PayloadType payload = schema::PayloadType::kNone;  ///< what the event's argument is
    bool operator==(const Attributes&) const = default;
};

/// A range on one thread: a Range or Operator record, or an entry of a lane's open stack.
struct Range {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t position;  ///< of its record in its lane; kNoPosition: it never ended
    std::int64_t argument;   ///< Operator: sequence number, -1 none; Range: the argument
    Index name;
    Index request;  ///< Job::halves: the server half that its lane served at its begin; kNone;
                    ///< kUnknownRequest
    std::uint32_t thread;          ///< Operator: the framework's number of this thread
    std::uint32_t forward_thread;  ///< Operator: of its forward operator's thread; 0: none
    schema::SourceId source;
    std::uint8_t detail;  ///< torch: RecordScope
    End end;
    bool is_operator;
    Index attributes = kNone;  ///< Job::attributes
    Index shapes = kNone;      ///< Operator: Job::names; the text of its input shapes

    std::int64_t duration_ns() const { return end_ns - begin_ns; }
};
static_assert(sizeof(Range) == 64);

/// One that a program's author named, not a framework's operator.
inline bool is_users(const Range& range) {
    return range.source != schema::SourceId::kTorch ||
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kUser);
}

/// A range that may end on another thread: an AsyncBegin and its AsyncEnd.
struct AsyncRange {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t position;  ///< of the AsyncBegin
    std::uint64_t key;
    std::uint64_t argument;
    Index name;
    Index lane;      ///< of the begin
    Index end_lane;  ///< kNone: no end
    Index request;   ///< as in Range
    schema::SourceId source;
    std::uint8_t detail;
    End end;
    Index attributes = kNone;  ///< as in Range

    std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

/// One side of an RPC: an RpcBegin and its RpcEnd.
struct Half {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t begin_ticks;  ///< raw, of its node: for the join
    std::uint64_t end_ticks;    ///< 0: no end
    std::uint64_t position;     ///< of the RpcBegin
    std::uint64_t key;
    std::uint64_t parent_key;
    schema::TraceId trace;  ///< as recorded; the call's stands in Call
    std::uint64_t span;
    std::uint64_t wire_id;
    std::uint64_t request_bytes;
    std::uint64_t reply_bytes;
    std::uint32_t wire_type;
    Index name;    ///< the function
    Index module;  ///< kNone: unknown
    Index peer;    ///< the other worker's name; kNone: unknown
    Index self;    ///< the own worker's name; kNone: unknown
    Index process;
    Index lane;
    Index end_lane;  ///< kNone: no end
    Index call;      ///< Job::calls; always set
    std::int16_t self_id;
    std::int16_t peer_id;
    schema::RpcMode mode;
    schema::RpcSide side;
    schema::RpcStatus status;
    schema::SourceId source;
    End end;
    /// A fetch that torch's own `to_here#` range on its lane tells already: bookkeeping beside it.
    bool inside_fetch_range;
    bool outside = false;  ///< of the iterations that were asked for

    /// A record that views show.
    bool shown() const { return position != kNoPosition && !outside; }
    bool server() const { return side == schema::RpcSide::kServer; }
    /// Of a message: sent by the one, received by the other, answered by nobody.
    bool of_message() const { return source == schema::SourceId::kMpi; }
    bool ended() const { return end == End::kEnded; }
    std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

/// As in job.fbs, and what there is without an index.
enum class CallState : std::uint8_t { kJoined = 0, kOrphan = 1, kCut = 2, kUnjoined = 3 };

/// One request: both of its halves, or the one that is there.
struct Call {
    schema::TraceId trace;
    std::uint64_t span;
    Index parent;  ///< Job::calls: the call that was being served when this one was made; kNone
    Index client;  ///< Job::halves; kNone: not in these dumps
    Index server;
    CallState state;
    bool unfinished;  ///< begun, and never ended because a process died
    bool reply;       ///< the ends of its halves are the two ends of one reply

    /// The request is in these dumps at both ends.
    bool both() const { return client != kNone && server != kNone; }
};

/// A stretch of time in which a thread works for a request: its lane's context.
struct Serving {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    Index half;  ///< Job::halves: the server half; kUnknownRequest: nobody knows for whom
    Index lane;
    bool
        begin_known;  ///< else the thread may have begun before: records were lost, or the capture began later
};

/// A Mark, an Iteration's boundary or a Counter.
struct Value {
    std::int64_t ns;
    std::uint64_t position;
    std::uint64_t value;
    std::uint64_t argument;
    Index name;
    Index lane;
    Index request;  ///< as in Range
    schema::RecordKind kind;
    schema::SourceId source;
    std::uint8_t detail;
    Index attributes = kNone;  ///< as in Range
};

}  // namespace ringside::viewer_export::model
