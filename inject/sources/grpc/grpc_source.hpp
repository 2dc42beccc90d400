// gRPC over the C core as a shared library (C++ programs; C). No gRPC header, nothing of gRPC linked.
#pragma once

namespace ringside::inject::grpc {

/// Objects have been loaded or unloaded: where the core is among them, and of a version that we know, its callers' slots get our hooks,
/// for good. They look at the capture word themselves.
/// @thread any, also from within a constructor that dlopen() runs
void patch_loaded_objects();

}  // namespace ringside::inject::grpc
