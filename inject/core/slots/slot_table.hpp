// The slots that are known, of all sets, and the store into one. Read and written under the loader's lock.
#pragma once

#include "inject/core/slots/objects.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject {

inline constexpr std::uint32_t kMaxSlotSets = 16;
inline constexpr std::uint32_t kMaxSlots = 4096;

struct Slot {
    std::uintptr_t* at;
    std::uintptr_t original;
    SlotHook* hook;
    std::uintptr_t object;  ///< base of the object that it lies in
    std::uintptr_t stub_first,
        stub_end;  ///< where an unresolved lazy slot points: into its own object; equal: not lazy
    std::uint32_t set;
    bool relro;
};

/// @return the set's number, given at its first use; kMaxSlotSets where all are taken
std::uint32_t set_number(const SlotSet& set);
SlotSet* set_of(std::uint32_t number);

/// @return false where the table is full or the slot is known
bool add_slot(const Slot& slot);
/// Forgets the slots that lie in an object, or point into it, and the originals that were its functions.
void forget_slots_of(const LoadedObject& object);
std::uint32_t count_slots(SlotSet& set, std::uint32_t number);

Slot* slots_begin();
Slot* slots_end();

}  // namespace ringside::inject
