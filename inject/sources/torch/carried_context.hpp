// A thread's context, taken along: into a callback, over a call, back to what it was. It is tagged with the capture that it belongs to,
// since its key means nothing in the next one.
#pragma once

#include "inject/core/emit.hpp"

namespace ringside::inject::torch {

struct CarriedContext {
    Context context;
    std::uint32_t word = 0;  ///< the capture word that it was taken under

    bool serving() const { return context.key != 0; }
};

/// What `lane` serves now.
inline CarriedContext carry_context(const ThreadLane& lane) {
    return {lane.context(), capture_word()};
}

/// Makes `lane` serve `carried`, unless another capture has begun since.
inline void apply_context(ThreadLane& lane, const CarriedContext& carried) {
    if (carried.word == capture_word()) lane.set_context(carried.context);
}

/// The same from outside any HookScope: what a wrapper does after the original has returned.
inline void restore_context(const CarriedContext& carried) {
    HookScope hook(Writes::kNothing);
    if (hook) apply_context(hook.lane(), carried);
}

}  // namespace ringside::inject::torch
