#include "inject/core/slots/slot_table.hpp"

#include "inject/core/slots/loader_tables.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

constinit LoaderTables g_loader_tables{};

namespace {

RINGSIDE_START_DATA constinit std::uint32_t slot_count = 0;
RINGSIDE_START_DATA constinit SlotSet* sets[kMaxSlotSets]{};

}  // namespace

std::uint32_t set_number(const SlotSet& set) {
    for (std::uint32_t i = 0; i < kMaxSlotSets; ++i) {
        if (sets[i] == nullptr) sets[i] = const_cast<SlotSet*>(&set);
        if (sets[i] == &set) return i;
    }
    return kMaxSlotSets;
}

SlotSet* set_of(std::uint32_t number) {
    return sets[number];
}

bool add_slot(const Slot& slot) {
    for (const Slot* known = slots_begin(); known != slots_end(); ++known) {
        if (known->at == slot.at) return false;
    }
    if (slot_count == kMaxSlots) return false;
    ++slot_count;
    *slots_begin() = slot;
    return true;
}

void forget_slots_of(const LoadedObject& object) {
    Slot* kept = slots_end();
    for (const Slot* slot = slots_end(); slot-- != slots_begin();) {
        if (slot->object == object.base || object.holds(slot->original)) continue;
        *--kept = *slot;
    }
    slot_count = static_cast<std::uint32_t>(slots_end() - kept);
    for (SlotSet* set : sets) {
        for (std::uint32_t i = 0; set != nullptr && i < set->hook_count; ++i) {
            void** original = set->hooks[i].original;
            if (object.holds(reinterpret_cast<std::uintptr_t>(*original))) *original = nullptr;
        }
    }
}

std::uint32_t count_slots(SlotSet& set, std::uint32_t number) {
    for (std::uint32_t i = 0; i < set.hook_count; ++i) set.hooks[i].slots = 0;
    std::uint32_t count = 0;
    for (const Slot* slot = slots_begin(); slot != slots_end(); ++slot) {
        if (slot->set != number) continue;
        ++slot->hook->slots;
        ++count;
    }
    return count;
}

Slot* slots_begin() {
    return slots_end() - slot_count;
}
Slot* slots_end() {
    return g_loader_tables.slots + kMaxSlots;
}

}  // namespace ringside::inject
