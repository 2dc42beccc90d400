// gRPC in Python: both Debian's module and PyPI's wheel have the C core inside and show no symbol of it, so the Python part tells of the calls
// (inject/python/ringside/grpc_*.py), by the functions of ../api. Here is only whether it does.
#pragma once

namespace ringside::inject::grpc {

/// Objects have been loaded: where Python's gRPC is among them its level says what is missing, until the Python part has come.
/// @thread any, also from within a constructor that dlopen() runs
void announce_python();

}  // namespace ringside::inject::grpc
