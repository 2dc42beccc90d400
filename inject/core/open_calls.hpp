// What this process waits for, and where its groups stand: the page behind the segment's header (schema/open_calls.hpp), kept also while nothing is
// recorded, so that a capture begun after a hang shows it. Used by sources whose calls wait for other processes: MPI, torch's collectives.
//
//     schema::OpenCall* call = own_open_call();
//     begin_open_call(call, {SourceId::kMpi, "MPI_Recv", 0, 0, peer, tag}, now());
//     ... the original ...
//     end_open_call(call);
//
// The page is made real at the first claim, within the limits of other memory (budget.hpp); where it is refused there are no entries, and null is
// fine everywhere. No lock, no malloc; what a signal handler's call writes over is told wrong for a moment, and nothing else.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "schema/ids.hpp"
#include "schema/open_calls.hpp"
#include "schema/units.hpp"

namespace ringside::inject {

using schema::SourceId;
using schema::Ticks;

/// A call that may wait for other processes.
struct WaitingCall {
    SourceId source;
    const char* function;        ///< as its records are named; cut at 23 bytes
    std::uint64_t group = 0;     ///< GroupFacts::id
    std::uint64_t sequence = 0;  ///< of a collective in its group
    std::int32_t peer = schema::kNoPeer;
    std::int32_t tag = schema::kAnyTag;
    /// Whether NULs follow the function's name, to 24 bytes at least: nobody must look for its end then.
    bool padded = false;
};

/// The calling thread's entry: claimed at its first use, given back at the thread's end.
/// @return null: there is no page, or all of it is in use
/// @thread thread-safe, async-signal tolerant
schema::OpenCall* own_open_call();

/// An entry for a call that ends on another thread.
/// @return as own_open_call()
schema::OpenCall* claim_open_call();
/// Gives back what claim_open_call() gave; its call has ended. Null is fine.
/// @thread any
void release_open_call(schema::OpenCall* call);

struct GroupFacts {
    SourceId source;
    std::uint64_t id;   ///< not 0; equal at all members
    const char* label;  ///< cut at 31 bytes
    std::uint32_t size;
    std::int32_t rank;
    std::int32_t job_rank;
};

/// The state of this group, made where there is none. Where none is free: that of the group that was not used for longest, as far as that is seen
/// when one is looked for. Two threads that claim one group at one moment may make two of it; readers take the one that is further.
/// @return null: there is no page, or others write to all of it
/// @thread thread-safe, async-signal tolerant
schema::GroupState* claim_group(const GroupFacts& facts);
/// Frees the state of a group that is no more; null, or another group's by now, is fine.
void release_group(schema::GroupState* state, std::uint64_t id);

// Without a symbol of the core in them, so that a plugin may have them inline.

/// A text in whole words, its source behind it. Of a literal it is a few constants.
template <std::uint32_t kWords>
inline void store_text(schema::SourcedText<kWords>& out, const char* text, SourceId source,
                       bool padded = false) {
    constexpr std::uint32_t kMost = schema::SourcedText<kWords>::kMaxBytes;
    char bytes[kWords * 8] = {};
    if (padded) {
        __builtin_memcpy(bytes, text, kMost);
    } else {
        const std::size_t length = __builtin_strlen(text);
        __builtin_memcpy(bytes, text, length < kMost ? length : kMost);
    }
    bytes[kMost] = static_cast<char>(source);
    for (std::uint32_t i = 0; i < kWords; ++i) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, bytes + std::size_t{8} * i, 8);
        out.words[i].store(word, std::memory_order_release);
    }
}

/// The thread (or, of a claimed entry, the process) is in this call from now on.
/// @param call  null is fine
/// @thread whoever has the entry
inline void begin_open_call(schema::OpenCall* call, const WaitingCall& waiting, Ticks begin) {
    if (call == nullptr) return;
    const std::uint32_t version = call->version.load(std::memory_order_relaxed) | 1;
    // Each store behind it is a release, so whoever sees one of them sees the odd version. The agent reads the file, twice, and takes what is equal.
    call->version.store(version, std::memory_order_relaxed);
    call->group.store(waiting.group, std::memory_order_release);
    call->sequence.store(waiting.sequence, std::memory_order_release);
    call->peer.store(waiting.peer, std::memory_order_release);
    call->tag.store(waiting.tag, std::memory_order_release);
    store_text(call->function, waiting.function, waiting.source, waiting.padded);
    call->begin.store(begin.value, std::memory_order_release);
    // The entry is whole.
    call->version.store(version + 1, std::memory_order_release);
}

/// ... and no longer. The rest stays: one store.
inline void end_open_call(schema::OpenCall* call) {
    if (call != nullptr) call->begin.store(0, std::memory_order_release);
}

/// The group's collective `sequence` has begun here.
/// @return false: there is no state, or it is another group's by now: claim it
/// @thread thread-safe
inline bool advance_group(schema::GroupState* state, std::uint64_t id, std::uint64_t sequence) {
    if (state == nullptr) return false;
    std::uint64_t last = state->last.load(std::memory_order_relaxed);
    do {
        // Read before the group was looked at: where another thread has replaced the group since, it is no longer that.
        if (state->group.load(std::memory_order_acquire) != id) return false;
    } while (last < sequence &&
             !state->last.compare_exchange_weak(last, sequence, std::memory_order_acq_rel));
    return true;
}

// --- for core/ alone ---

/// The calling thread ends: its entry is free again.
void give_back_own_open_call();

/// A forked child: it is in no call, and its page is not real yet.
/// @thread the child's only one
void reset_open_calls_after_fork();

}  // namespace ringside::inject
