#include "inject/core/attributes.hpp"

#include <errno.h>

#include <cstring>

#include "inject/core/budget.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/start_data.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject {

using schema::AttributeEntry;
using schema::AttributeId;
using schema::NameState;

namespace {

constexpr auto kFree = static_cast<std::uint16_t>(NameState::kFree);
constexpr auto kFilling = static_cast<std::uint16_t>(NameState::kFilling);
constexpr auto kReady = static_cast<std::uint16_t>(NameState::kReady);
constexpr std::size_t kTableBytes = schema::kAttributeEntries * sizeof(AttributeEntry);

/// Whether the table's pages are real in the present segment.
RINGSIDE_START_DATA constinit std::atomic<bool> table_real{false};
/// In the one before: a forked child's parent's.
RINGSIDE_START_DATA constinit bool was_real = false;

AttributeEntry* entries_of(std::byte* segment) {
    return reinterpret_cast<AttributeEntry*>(segment + schema::kAttributesOffset);
}

bool make_table(std::byte* segment) {
    if (table_real.load(std::memory_order_relaxed)) return true;
    const int saved_errno = errno;
    const bool made = populate_within_limits(segment + schema::kAttributesOffset, kTableBytes);
    errno = saved_errno;
    if (made && table_real.exchange(true, std::memory_order_relaxed)) count_again_less(kTableBytes);
    return made;
}

std::uint32_t hash_of(const AttributeSet& set) {
    const std::uint64_t names =
        static_cast<std::uint64_t>(set.domain.value) << 32 | set.category.value;
    const std::uint64_t looks = static_cast<std::uint64_t>(set.payload) << 32 | set.colour;
    return static_cast<std::uint32_t>(
        schema::mix64(names * 0x9e3779b97f4a7c15ull ^ schema::mix64(looks + 1)));
}

bool matches(const AttributeEntry& entry, const AttributeSet& set) {
    return entry.domain.load(std::memory_order_relaxed) == set.domain.value &&
           entry.category.load(std::memory_order_relaxed) == set.category.value &&
           entry.colour.load(std::memory_order_relaxed) == set.colour &&
           entry.payload.load(std::memory_order_relaxed) == static_cast<std::uint16_t>(set.payload);
}

AttributeId find_or_add(const AttributeSet& set) {
    const std::uint32_t hash = hash_of(set);
    AttributeEntry* entries = entries_of(segment_base());
    for (std::uint32_t probe = 0; probe < schema::kNameProbes; ++probe) {
        const std::uint32_t index = (hash + probe) % schema::kAttributeEntries;
        AttributeEntry& entry = entries[index];
        const AttributeId id{static_cast<std::uint16_t>(index + 1)};
        // SYNC(name): pairs with the release below.
        std::uint16_t state = entry.state.load(std::memory_order_acquire);
        if (state == kReady && matches(entry, set)) return id;
        // One that another thread is filling is passed over, as in the name table.
        if (state != kFree ||
            !entry.state.compare_exchange_strong(state, kFilling, std::memory_order_acquire))
            continue;
        entry.domain.store(set.domain.value, std::memory_order_relaxed);
        entry.category.store(set.category.value, std::memory_order_relaxed);
        entry.colour.store(set.colour, std::memory_order_relaxed);
        entry.payload.store(static_cast<std::uint16_t>(set.payload), std::memory_order_relaxed);
        // SYNC(name): publishes the entry; pairs with the acquires here and in the agent.
        entry.state.store(kReady, std::memory_order_release);
        return id;
    }
    return {};
}

}  // namespace

AttributeId intern_attributes(const AttributeSet& set) {
    if (set.empty()) return {};
    AttributeId id = make_table(segment_base()) ? find_or_add(set) : AttributeId{};
    if (id.value != 0) return id;
    count_loss(schema::Loss::kNamesFull);
    count_loss(schema::Loss::kAttributesLost);
    if (set.colour == 0 || !table_real.load(std::memory_order_relaxed)) return {};
    AttributeSet plain = set;
    plain.colour = 0;
    return plain.empty() ? AttributeId{} : find_or_add(plain);
}

NameId label_of(NameId interned) {
    if (interned != schema::kInlineName) return interned;
    count_loss(schema::Loss::kAttributesLost);
    return unknown_name();
}

NameId intern_label(ThreadLane& lane, const char* text) {
    return text == nullptr || *text == 0 ? schema::kNoName : label_of(lane.intern_cached(text));
}

void forget_attributes() {
    was_real = table_real.exchange(false, std::memory_order_relaxed);
}

std::size_t copy_attributes(std::byte* to_segment, const std::byte* from_segment) {
    // A mere look at pages that are not there would make them real, in the parent's file and within nobody's limits, or be a SIGBUS.
    if (!was_real) return 0;
    const auto* from =
        reinterpret_cast<const AttributeEntry*>(from_segment + schema::kAttributesOffset);
    AttributeEntry* to = nullptr;
    for (std::uint32_t i = 0; i < schema::kAttributeEntries; ++i) {
        // What another thread of the parent was filling stays free.
        if (from[i].state.load(std::memory_order_relaxed) != kReady) continue;
        if (to == nullptr) {
            if (!make_table(to_segment)) return 0;
            to = entries_of(to_segment);
        }
        to[i].domain.store(from[i].domain.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
        to[i].category.store(from[i].category.load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
        to[i].colour.store(from[i].colour.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
        to[i].payload.store(from[i].payload.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
        to[i].state.store(kReady, std::memory_order_relaxed);
    }
    return to != nullptr ? kTableBytes : 0;
}

}  // namespace ringside::inject
