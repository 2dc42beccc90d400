#include "inject/core/push_depth.hpp"

#include "schema/request_id.hpp"

namespace ringside::inject {

namespace {

/// Domains of one thread beyond this share a counter: their ranges are then told apart only where they nest.
constexpr std::uint32_t kSlots = 32;
/// No address of user space: those are the keys of other sources.
constexpr std::uint64_t kTag = 0x5055ull << 48;

struct Depths {
    std::uint32_t word;  ///< the capture word that they were counted under
    std::uint16_t depth[kSlots];
};
__thread Depths t_depths __attribute__((tls_model("initial-exec")));

std::uint32_t slot_of(SourceId source, std::uint64_t domain) {
    const std::uint64_t both = domain ^ static_cast<std::uint64_t>(source) << 56;
    return static_cast<std::uint32_t>(schema::mix64(both)) % kSlots;
}

Depths& depths() {
    // Another capture's open stack is empty: so are its counts.
    if (t_depths.word != t_slot.word) {
        t_depths = {};
        t_depths.word = t_slot.word;
    }
    return t_depths;
}

std::uint64_t key_of(std::uint32_t slot, std::uint16_t depth) {
    return kTag | static_cast<std::uint64_t>(slot) << 16 | depth;
}

}  // namespace

std::uint64_t push_key(SourceId source, std::uint64_t domain) {
    const std::uint32_t slot = slot_of(source, domain);
    return key_of(slot, ++depths().depth[slot]);
}

std::uint64_t pop_key(SourceId source, std::uint64_t domain) {
    const std::uint32_t slot = slot_of(source, domain);
    std::uint16_t& depth = depths().depth[slot];
    return depth == 0 ? 0 : key_of(slot, depth--);
}

}  // namespace ringside::inject
