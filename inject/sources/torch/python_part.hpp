// What the Python part tells the shim, through exported C functions: that it is there, and how the next call of this thread was made.
#pragma once

#include "schema/record.hpp"

namespace ringside::inject::torch {

enum class PythonPart : int {
    kAbsent = 0,    ///< sitecustomize did not run (-I, -S, RINGSIDE_PYTHON=0)
    kPresent = 1,   ///< it waits for torch.distributed.rpc
    kWrapping = 2,  ///< torch.distributed.rpc.api is wrapped
    kFailed = 3,    ///< it could not wrap it
};

PythonPart python_part();

/// How the call that this thread is making was made, told once; kUnknown where Python did not say.
schema::RpcMode take_rpc_mode();

}  // namespace ringside::inject::torch
