#include "inject/core/push_depth.hpp"

namespace ringside::inject {

namespace {

/// The domains that have a counter of their own, in no order; 0: free. Never taken back: programs make a few and keep them.
constinit std::atomic<std::uint64_t> g_domains[PushKeys::kOwn]{};

}  // namespace

std::uint32_t push_counter(SourceId source, std::uint64_t domain) {
    if (domain == 0) return PushKeys::no_domain(source);
    const std::uint64_t wanted = domain ^ static_cast<std::uint64_t>(source) << 56;
    const std::uint64_t hash = schema::mix64(wanted);
    for (std::uint32_t i = 0; i < PushKeys::kOwn && wanted != 0; ++i) {
        const auto at = static_cast<std::uint32_t>((hash + i) % PushKeys::kOwn);
        std::uint64_t found = g_domains[at].load(std::memory_order_relaxed);
        // Relaxed: the entry is all that there is to see.
        if (found == 0 &&
            g_domains[at].compare_exchange_strong(found, wanted, std::memory_order_relaxed))
            found = wanted;
        if (found == wanted) return schema::kSourceCount + at;
    }
    return schema::kSourceCount + PushKeys::kOwn +
           static_cast<std::uint32_t>(hash % PushKeys::kShared);
}

std::uint64_t push_key(SourceId source, std::uint64_t domain) {
    return ++t_slot.pushed.innermost[push_counter(source, domain)];
}

std::uint64_t pop_key(SourceId source, std::uint64_t domain) {
    const std::uint32_t counter = push_counter(source, domain);
    return t_slot.pushed.is_open(counter) ? t_slot.pushed.innermost[counter]-- : 0;
}

void push_new_name(SourceId source, const char* text) {
    // Texts that are put together never lie where they lay: what they say is known all the same.
    const NameId known = g_name_cache.find(text, {});
    if (known != schema::kNoName &&
        push_at_once(source, PushKeys::no_domain(source), capture_word(), known)) [[likely]]
        return g_address_cache.keep(text, known);
    const HookScope hook(source, Writes::kNothing);
    if (!hook) return;
    const NameId name = hook.lane().intern_stranger(text);
    hook.lane().begin_range(source, 0, name, push_key(source, 0), 0);
}

}  // namespace ringside::inject
