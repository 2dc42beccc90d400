#include "inject/sources/mpi/mpi_source.hpp"

#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/mpi/hooks.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

namespace {

struct Reached {
    schema::SourceLevel level = schema::SourceLevel::kNotInstrumented;
    const char* reason = nullptr;  ///< null: there is no MPI
};

void patch_under_lock(void* out) {
    auto& reached = *static_cast<Reached*>(out);
    if (provider_soname(program_slots())[0] == 0) {
        if (object_loaded("libmpi_abi.so"))
            reached.reason = "unsupported: the standard ABI (libmpi_abi.so)";
        return;
    }
    reached.reason = look_up_library(program_slots());
    if (reached.reason != nullptr) return;
    std::uint32_t slots = 0;
    for (SlotSet* const set : {&program_slots(), &fortran_slots()}) {
        slots += scan_slots(*set);
        write_slots(*set, true);
    }
    reached = slots != 0 ? Reached{schema::SourceLevel::kFull, ""}
                         : Reached{schema::SourceLevel::kNotInstrumented,
                                   "nobody calls it through a slot (yet)"};
}

void announce(const Reached& reached) {
    // Once each: what a later look finds is no news, and a level that fell (hooked after MPI_Init) stays.
    static constinit std::atomic<const char*> announced{nullptr};
    if (announced.exchange(reached.reason, std::memory_order_relaxed) != reached.reason)
        announce_source(schema::SourceId::kMpi, reached.level, reached.reason);
}

}  // namespace

// With what else runs once: a start of a program without MPI has the page then.
[[gnu::cold]] void patch_loaded_objects() {
    Reached reached;
    if (object_loaded("libmpi") && with_loader_lock(patch_under_lock, &reached) &&
        reached.reason != nullptr)
        announce(reached);
}

}  // namespace ringside::inject::mpi
