#include "inject/sources/nccl/hooks.hpp"

#include <utility>

#include "inject/sources/nccl/calls.hpp"

namespace ringside::inject::nccl {

namespace {

void* g_originals[kFunctionCount];

template <std::uint8_t kIndex, class Nth>
struct Wrapper;

template <std::size_t>
using WordOf = Word;

/// Passes all arguments on as words, so that one wrapper serves all functions of its arity.
template <std::uint8_t kIndex, std::size_t... kNth>
struct Wrapper<kIndex, std::index_sequence<kNth...>> {
    using Original = int(WordOf<kNth>...);

    static int call(WordOf<kNth>... words) {
        const Word arguments[sizeof...(kNth) + 1] = {words...};
        Frame frame{kIndex, arguments};
        before_call(frame);
        const int result = reinterpret_cast<Original*>(g_originals[kIndex])(words...);
        after_call(frame, result);
        return result;
    }
};

// Filled where NCCL is mapped, by code: in a table of the compiler's each pointer would be the loader's to relocate, at the start of every program.
constinit SlotHook g_hooks[kFunctionCount]{};

[[gnu::cold]] void fill_hooks(SlotHook* hook) {
#define RINGSIDE_HOOK(function, words, ...)                                                     \
    *hook++ = {                                                                                 \
        kFunctions[k##function].name,                                                           \
        reinterpret_cast<void*>(Wrapper<k##function, std::make_index_sequence<(words)>>::call), \
        &g_originals[k##function], 0};
    RINGSIDE_NCCL(RINGSIDE_HOOK)
#undef RINGSIDE_HOOK
}

SlotSet g_callers = {
    .providers = {"libnccl.so"},
    .objects = {},
    .hooks = g_hooks,
    .hook_count = kFunctionCount,
    .symbol_prefix = "nccl",
    .except = {"libnccl.so"},
    .any_target = true,
};

}  // namespace

SlotSet& caller_slots() {
    if (g_hooks[0].symbol == nullptr) fill_hooks(g_hooks);
    return g_callers;
}

}  // namespace ringside::inject::nccl
