// Operators, user ranges, backward and optimizer steps: torch's RecordFunction through one global callback, registered while a capture runs.
// torch's own machinery costs some 200 ns a range as soon as any callback is there; ours adds two clock reads and one record.
// Called by torch_source; its callbacks by torch.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// How much of the operators can be recorded.
struct OperatorAbility {
    bool callbacks = false;  ///< ranges at all
    const char* missing_fields =
        nullptr;  ///< why scope, sequence number or forward thread are off; null: they are known
    bool shapes = false;  ///< input shapes can be had
};

/// Looks up torch's functions and finds RecordFunction's fields (retried until it has worked).
/// @param libraries  where the symbols may be
/// @thread one at a time
OperatorAbility prepare_operators(const SlotSet& libraries);

/// Registers the callback; does nothing when it is registered so.
/// @param with_shapes  ranges have their input shapes; only where they can be had
/// @thread as prepare_operators()
void attach_operators(bool with_shapes);

/// Removes it. A callback that runs on another thread finishes on its own.
/// @thread as prepare_operators()
void detach_operators();

}  // namespace ringside::inject::torch
