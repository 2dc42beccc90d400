#include "inject/sources/mpi/library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "inject/core/fixed_text.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/objects.hpp"
#include "schema/segment.hpp"

namespace ringside::inject::mpi {

constinit Library g_library{};
constinit Abi g_abi{};

namespace {

/// Where Open MPI's own handles lie: in the library, or where the executable has a copy of its data.
struct Span {
    std::uintptr_t first = 0, end = 0;
    bool holds(Word address) const { return address >= first && address < end; }
};
constinit Span g_data[2];

/// Sizes of the library's own types: the handle, and the size in the low 16 bits.
constinit std::atomic<std::uint64_t> g_sizes[64];

/// The address as the program has it: its executable may have taken a copy of the library's data.
Word datum(const SlotSet& slots, const char* symbol) {
    void* const global = real_dlsym()(RTLD_DEFAULT, symbol);
    return reinterpret_cast<Word>(global != nullptr ? global : find_symbol(slots, symbol));
}

Span span_of(Word address) {
    const LoadedObject* const object = object_at(address);
    return object != nullptr ? Span{object->first, object->end} : Span{};
}

bool look_up_handles(const SlotSet& slots) {
    g_abi = kOpenMpi;
    g_abi.comm_world = datum(slots, "ompi_mpi_comm_world");
    g_abi.comm_self = datum(slots, "ompi_mpi_comm_self");
    g_abi.comm_null = datum(slots, "ompi_mpi_comm_null");
    g_abi.request_null = datum(slots, "ompi_request_null");
    g_data[0] = span_of(g_abi.comm_world);
    g_data[1] = span_of(reinterpret_cast<Word>(find_symbol(slots, "ompi_mpi_comm_world")));
    return g_abi.comm_self != 0 && g_abi.comm_null != 0 && g_abi.request_null != 0;
}

template <class Result>
bool find(const SlotSet& slots, const char* symbol, Result*& function) {
    function = reinterpret_cast<Result*>(find_symbol(slots, symbol));
    return function != nullptr;
}

bool look_up_functions(const SlotSet& slots) {
    Library& mpi = g_library;
    return find(slots, "PMPI_Initialized", mpi.initialized) &&
           find(slots, "PMPI_Comm_rank", mpi.comm_rank) &&
           find(slots, "PMPI_Comm_size", mpi.comm_size) &&
           find(slots, "PMPI_Comm_test_inter", mpi.comm_test_inter) &&
           find(slots, "PMPI_Comm_group", mpi.comm_group) &&
           find(slots, "PMPI_Comm_remote_group", mpi.comm_remote_group) &&
           find(slots, "PMPI_Group_size", mpi.group_size) &&
           find(slots, "PMPI_Group_translate_ranks", mpi.group_translate_ranks) &&
           find(slots, "PMPI_Group_free", mpi.group_free) &&
           find(slots, "PMPI_Type_size", mpi.type_size);
}

}  // namespace

const char* look_up_library(const SlotSet& slots) {
    if (g_abi.handle_bytes != 0) return nullptr;
    static constinit FixedText<schema::kReasonBytes> reason;
    const char* const soname = provider_soname(slots);
    const bool open_mpi = starts_with(soname, "libmpi.so.40");
    // MPICH's ABI: Intel's and Cray's libraries have it, too, and its number.
    if (!open_mpi && std::strstr(soname, ".so.12") == nullptr) {
        reason.clear();
        reason.append("unknown MPI library: ").append(soname);
        return reason.append(" (known: libmpi.so.40, and MPICH's ABI, libmpi*.so.12)").c_str();
    }
    if (!look_up_functions(slots) || (open_mpi && !look_up_handles(slots))) {
        g_abi = {};
        return "the MPI library lacks functions that MPI 3 has";
    }
    if (!open_mpi) g_abi = kMpich;
    return nullptr;
}

std::uint64_t type_bytes(Word type) {
    type = g_abi.handle(type);
    // MPICH's own types bear their size.
    if (g_abi.handle_bytes == 4 && (type & 0xfc000000) == 0x4c000000) return type >> 8 & 0xff;
    const bool own = g_data[0].holds(type) || g_data[1].holds(type);
    std::atomic<std::uint64_t>& kept = g_sizes[type >> 5 & 63];
    const std::uint64_t there = kept.load(std::memory_order_relaxed);
    if (own && there >> 16 == type) return there & 0xffff;
    int size = 0;
    if (g_library.type_size(type, &size) != 0 || size < 0) return 0;
    if (own && size <= 0xffff)
        kept.store(type << 16 | static_cast<std::uint32_t>(size), std::memory_order_relaxed);
    return static_cast<std::uint32_t>(size);
}

}  // namespace ringside::inject::mpi
