#include "inject/core/push_depth.hpp"

namespace ringside::inject {

__thread PushDepths t_push_depths __attribute__((tls_model("initial-exec"), visibility("hidden")));

namespace {

PushDepths& depths() {
    // Another capture's open stack is empty: so are its counts.
    if (t_push_depths.word != t_slot.word) {
        t_push_depths = {};
        t_push_depths.word = t_slot.word;
        t_push_depths.sources = g_process.control->source_mask.load(std::memory_order_relaxed);
    }
    return t_push_depths;
}

}  // namespace

std::uint64_t push_key(SourceId source, std::uint64_t domain) {
    const std::uint32_t slot = PushDepths::slot_of(source, domain);
    return PushDepths::key_of(slot, ++depths().depth[slot]);
}

std::uint64_t pop_key(SourceId source, std::uint64_t domain) {
    const std::uint32_t slot = PushDepths::slot_of(source, domain);
    std::uint16_t& depth = depths().depth[slot];
    return depth == 0 ? 0 : PushDepths::key_of(slot, depth--);
}

void push_new_name(SourceId source, const char* text) {
    const HookScope hook(source, Writes::kNothing);
    if (!hook) return;
    const NameId name = hook.lane().intern_cached(text);
    hook.lane().begin_range(source, 0, name, push_key(source, 0), 0);
}

}  // namespace ringside::inject
