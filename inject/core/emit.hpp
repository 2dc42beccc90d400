// What a hook does: enter, write records, leave. The hot path of the shim: one relaxed load and a branch while nothing is captured.
//
//     HookScope hook;                       // one relaxed load; sets the thread's guard, keeps errno
//     if (!hook) return original(...);      // off, no lane to be had, or a hook inside a hook
//     hook.lane().end_range(key);
//
// Everything here is async-signal tolerant, takes no lock, allocates nothing after a thread's first record (which maps its lane), and
// counts what it cannot write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/record.hpp"
#include "schema/request_id.hpp"
#include "schema/segment.hpp"

namespace ringside::inject {

using schema::NameId;
using schema::SourceId;
using schema::Ticks;

/// The request that a thread serves.
struct Context {
    std::uint64_t key = 0;  ///< of the server half in this segment; 0: none
    schema::TraceId trace;
    schema::SpanId span;
};

/// One half of an RPC at its begin. Names are interned by the caller.
struct RpcBegin {
    SourceId source = SourceId::kNone;
    schema::RpcSide side = schema::RpcSide::kClient;
    schema::RpcMode mode = schema::RpcMode::kUnknown;
    Ticks ticks;
    std::uint64_t key = 0;
    std::uint64_t parent_key = 0;
    schema::RequestId id;
    std::uint64_t bytes = 0;
    NameId function, module, self, peer;
    std::int16_t self_id = -1;
    std::int16_t peer_id = -1;
    std::uint32_t wire_type = 0;
    std::uint64_t wire_id = 0;
};

/// A thread's lane, seen from its one producer: intern, ranges, halves, context (emit_inl.hpp).
/// @thread the owning thread only, inside a HookScope
class ThreadLane;

/// The time inside a hook, and the way to its lane (emit_inl.hpp). Leave it before the original is called: the original may throw
/// (there is no unwinding in here), and a hook inside it would count as reentered.
class HookScope;

/// Now, on the segment's clock.
Ticks now();

/// A key for an async pair or an RPC half: unique in this process, never 0.
/// @thread thread-safe
std::uint64_t next_key();

/// Counts something that was passed over in the whole process.
/// @thread thread-safe, async-signal-safe
void count_loss(schema::Loss loss, std::uint64_t count = 1);

}  // namespace ringside::inject

#include "inject/core/emit_inl.hpp"
