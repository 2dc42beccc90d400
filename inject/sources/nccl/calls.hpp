// What is done before and after each call. The wrappers (hooks.cpp) hold the frame on their stack; the original runs between the two.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/sources/nccl/communicators.hpp"

namespace ringside::inject::nccl {

/// One call, on the wrapper's stack.
struct Frame {
    std::uint8_t index;
    const Word* arguments;
    Communicator* made = nullptr;  ///< by this call
    schema::OpenCall* open = nullptr;
    bool ranged = false;  ///< a range of it is on the open stack

    const Function& function() const { return kFunctions[index]; }
    Word argument(std::uint8_t place) const { return arguments[place]; }
    std::int32_t number(std::uint8_t place) const {
        return static_cast<std::int32_t>(arguments[place]);
    }
};

void before_call(Frame& frame);
void after_call(Frame& frame, int result);

}  // namespace ringside::inject::nccl
