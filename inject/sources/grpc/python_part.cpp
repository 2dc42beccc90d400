#include "inject/sources/grpc/python_part.hpp"

#include <atomic>

#include "inject/core/slots/slots.hpp"
#include "inject/core/source.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject::grpc {
namespace {

RINGSIDE_START_DATA constinit std::atomic<bool> g_announced{false};

}  // namespace

// With what else runs once: a start of a program without Python has the page then.
[[gnu::cold]] void announce_python() {
    if (g_announced.load(std::memory_order_relaxed) || !object_loaded("cygrpc")) return;
    if (g_announced.exchange(true, std::memory_order_relaxed)) return;
    announce_source(schema::SourceId::kGrpc, schema::SourceLevel::kDegraded,
                    "no Python part: calls of Python's gRPC are not recorded");
}

}  // namespace ringside::inject::grpc

/// The Python part says that it has wrapped gRPC.
/// @param missing  what it could not; "": nothing
extern "C" __attribute__((visibility("default"))) void ringside_grpc_python(const char* missing) {
    using namespace ringside;
    inject::grpc::announce_python();  // first, where nobody has looked since the module was loaded
    inject::announce_source(
        schema::SourceId::kGrpc,
        *missing == 0 ? schema::SourceLevel::kFull : schema::SourceLevel::kDegraded, missing);
}
