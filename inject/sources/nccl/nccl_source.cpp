#include "inject/sources/nccl/nccl_source.hpp"

#include <atomic>

#include "inject/core/fixed_text.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/nccl/communicators.hpp"
#include "inject/sources/nccl/hooks.hpp"
#include "schema/sources.hpp"

namespace ringside::inject::nccl {

namespace {

struct Reached {
    schema::SourceLevel level = schema::SourceLevel::kNotInstrumented;
    const char* reason = "";
};

template <class Result>
bool find(const SlotSet& slots, const char* symbol, Result*& function) {
    function = reinterpret_cast<Result*>(find_symbol(slots, symbol));
    return function != nullptr;
}

void patch_under_lock(void* out) {
    auto& reached = *static_cast<Reached*>(out);
    SlotSet& slots = caller_slots();
    const char* const soname = provider_soname(slots);
    if (!starts_with(soname, "libnccl.so.2")) {
        static constinit FixedText<schema::kReasonBytes> reason;
        reason.clear();
        reason.append("unknown NCCL library: ").append(soname).append(" (known: libnccl.so.2)");
        reached.reason = reason.c_str();
    } else if (!find(slots, "ncclCommCount", g_library.comm_count) ||
               !find(slots, "ncclCommUserRank", g_library.comm_user_rank)) {
        reached.reason = "the NCCL library lacks functions that NCCL 2 has";
    } else if (scan_slots(slots) == 0) {
        reached.reason = "nobody calls it through a slot (yet)";
    } else {
        write_slots(slots, true);
        reached.level = schema::SourceLevel::kFull;
    }
}

}  // namespace

[[gnu::cold]] void patch_loaded_objects() {
    // Once each: what a later look finds is no news, and a level that fell stays.
    static constinit std::atomic<const char*> announced{nullptr};
    Reached reached;
    if (!object_loaded("libnccl.so") || !with_loader_lock(patch_under_lock, &reached)) return;
    if (announced.exchange(reached.reason, std::memory_order_relaxed) != reached.reason)
        announce_source(schema::kNccl, reached.level, reached.reason);
}

}  // namespace ringside::inject::nccl
