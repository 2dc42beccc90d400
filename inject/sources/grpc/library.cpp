#include "inject/sources/grpc/library.hpp"

#include "inject/core/fixed_text.hpp"
#include "schema/segment.hpp"

namespace ringside::inject::grpc {

constinit Library g_library{};

namespace {

/// Whether a slice's count is laid out as ours are: a count of 1, and a function of the core.
bool counts_as_known(const SlotSet& slots) {
    using Copy = Slice(const char*, std::size_t);
    using Unref = void(Slice);
    auto* const copy = reinterpret_cast<Copy*>(find_symbol(slots, "grpc_slice_from_copied_buffer"));
    auto* const unref = reinterpret_cast<Unref*>(find_symbol(slots, "grpc_slice_unref"));
    if (copy == nullptr || unref == nullptr) return false;
    char text[64] = {};
    const Slice slice = copy(text, sizeof text);
    const bool known = reinterpret_cast<std::uintptr_t>(slice.count) > 1 &&
                       slice.count->references == 1 && slice.count->destroy != nullptr &&
                       slice.counted.length == sizeof text && slice.counted.bytes != text;
    unref(slice);
    return known;
}

const char* first_unknown_version(const SlotSet& slots) {
    using Version = const char*();
    static constinit FixedText<schema::kReasonBytes> reason;
    for (std::uint32_t nth = 0;; ++nth) {
        auto* const version =
            reinterpret_cast<Version*>(find_symbol(slots, "grpc_version_string", nth));
        if (version == nullptr) return nth == 0 ? "gRPC's core tells no version" : nullptr;
        const char* const text = version();
        if (starts_with(text, kKnownCore)) continue;
        reason.clear();
        reason.append("unknown version of gRPC: core ").append(text);
        return reason.append(" (known: 29, gRPC 1.51)").c_str();
    }
}

template <class Function>
void find(const SlotSet& slots, const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(find_symbol(slots, symbol));
}

}  // namespace

const char* look_up_library(const SlotSet& slots) {
    const char* unknown = first_unknown_version(slots);
    if (unknown != nullptr) return unknown;
    find(slots, "grpc_call_get_peer", g_library.peer_of);
    find(slots, "gpr_free", g_library.free_text);
    find(slots, "grpc_byte_buffer_length", g_library.length_of);
    if (g_library.peer_of == nullptr || g_library.free_text == nullptr ||
        g_library.length_of == nullptr || !counts_as_known(slots))
        return "gRPC's core is not laid out as 1.51's";
    return nullptr;
}

}  // namespace ringside::inject::grpc
