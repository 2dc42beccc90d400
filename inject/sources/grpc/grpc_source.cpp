#include "inject/sources/grpc/grpc_source.hpp"

#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/grpc/hooks.hpp"
#include "inject/sources/grpc/library.hpp"

namespace ringside::inject::grpc {
namespace {

struct Reached {
    schema::SourceLevel level;
    const char* reason;
};

void patch_under_lock(void* out) {
    auto* reached = static_cast<Reached*>(out);
    // Each time: another copy may have come, of another version, whose slots must be left alone.
    const char* unknown = look_up_library(grpc_slots());
    if (unknown != nullptr) {
        *reached = {schema::SourceLevel::kNotInstrumented, unknown};
        return;
    }
    scan_slots(grpc_slots());
    write_slots(grpc_slots(), true);
    const char* missing = first_missing();
    *reached = missing == nullptr ? Reached{schema::SourceLevel::kFull, ""}
                                  : Reached{schema::SourceLevel::kDegraded, missing};
}

}  // namespace

// With what else runs once: a start of a program without gRPC has the page then.
[[gnu::cold]] void patch_loaded_objects() {
    if (!object_loaded("libgrpc.so") && !object_loaded("libgrpc_unsecure.so")) return;
    Reached reached{};
    if (with_loader_lock(patch_under_lock, &reached))
        announce_source(schema::SourceId::kGrpc, reached.level, reached.reason);
}

}  // namespace ringside::inject::grpc
