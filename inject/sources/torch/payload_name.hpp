// Which function a request calls, read from its payload: a careful walk over the pickle, without Python and without unpickling.
//
//   Python call          flag byte, then a pickle (protocol 2 to 5) of PythonUDF(func, args, kwargs): the second global is the function
//   Python remote call   a JIT pickle whose first string is such a pickle
//   script call          a JIT pickle (args ..., "aten::add.Tensor(...) -> Tensor", "torch.ops.aten.add"), or "__torch__.module.fn" last
//   wrapped call         one of these, then a JIT pickle with the inner type, then its length (8 bytes, big-endian)
//
// The bytes are the job's own, but any shape is survived: every length is checked, opcodes are bounded, the unknown ends the walk.
// Called by rpc_calls (both ends); pure, so that it is tested and fuzzed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside::inject::torch {

/// Slices of the payload; empty where unknown.
struct PayloadName {
    std::string_view module;
    std::string_view function;
};

/// Finds the called function's name.
/// @param payload  `size` bytes; the result points into them
/// @return `aten::add` without overload for a builtin, module and qualified name for a Python function, `__torch__...` for TorchScript
PayloadName payload_name(const char* payload, std::size_t size);

/// The type of the request that an autograd or profiling request wraps.
/// @param type  the outer MessageType
/// @return the inner type where `type` wraps one and it can be read, else `type`
std::int32_t effective_type(std::int32_t type, const char* payload, std::size_t size);

/// How torch's own requests are shown: `rref_user_delete`; `to_here` for fetches, null for calls and remote calls.
/// @param type  an effective type
const char* bookkeeping_name(std::int32_t type);

}  // namespace ringside::inject::torch
