// Collectives of c10d's gloo: which process group and which sequence number in it a `gloo:*` range is of, so that the ranges of all ranks find
// each other. Gloo's own range begins on a thread of gloo's, nameless to the caller, and carries neither; two hooks tell:
//
//   caller   ProcessGroupGloo::allreduce, ... ─ enqueue(work): group, sequence, kept by the work's address
//   gloo     AsyncWork::execute(work): taken out ─ RecordFunction's begin: an async range with both
//
// From the one to the end of the other the process has an open call: it waits for the group's other ranks, captured or not.
// The sequence number is torch's own, getSequenceNumberForGroup().
#pragma once

#include "inject/core/emit.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

inline constexpr std::uint32_t kCollectiveHooks = 3;

/// The hooks, for the table of torch's slots. Absent where torch was built without gloo.
void add_collective_hooks(SlotHook* hooks);

/// Looks up what the hooks call, and writes their slots, for good: what waits is told also while nothing is recorded (core/open_calls.hpp).
/// @param libraries  scanned
void prepare_collectives(SlotSet& libraries);

/// What is known of a collective: category of the attribute set is its group, the argument its sequence number.
struct Collective {
    schema::AttributeId attributes;
    std::uint64_t sequence = 0;  ///< 0: unknown
};

/// The one that this thread is about to run; only once.
Collective take_collective();

}  // namespace ringside::inject::torch
