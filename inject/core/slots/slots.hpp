// Hooks without exports: a slot is a pointer in a loaded object's relocation table (JUMP_SLOT, GLOB_DAT, R_X86_64_64 of a vtable) that
// the loader bound to a function of another object; we store our wrapper there and can put the original back. No framework's symbol is
// exported, so weak checks, other tools and two copies of a library see what they always saw.
//
// Rules: aligned 8-byte atomic stores; a RELRO page is opened for the store and closed again, never unreadable; scan and toggle only
// under the loader's lock; a slot with another target than the one expected is left alone and counted; weak zero slots stay zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject {

/// One function to hook. Several entries may name variants (manglings) of one function: each has its own wrapper and original.
struct SlotHook {
    const char* symbol;
    void* wrapper;
    void**
        original;  ///< set to the slots' own target when the first is found; the wrapper calls it
    std::uint32_t slots;     ///< how many were found; filled by the scan
    bool stays = false;      ///< once written: write_slots() does not put the original back
    std::uint32_t hash = 0;  ///< of the symbol; filled by the first scan
};

inline constexpr std::uint32_t kMaxPatterns = 8;
/// The pattern that only the program's own executable matches.
inline constexpr const char* kExecutable = "";

/// A framework's hooks.
struct SlotSet {
    const char*
        providers[kMaxPatterns];  ///< basename prefixes of the objects that may define the targets
    const char* objects
        [kMaxPatterns];  ///< basename prefixes of the objects whose slots are written; none: all
    SlotHook* hooks;
    std::uint32_t hook_count;
    /// All symbols begin so: of others not even the hash is taken.
    const char* symbol_prefix = "";
    /// Basename prefixes of objects whose slots are left alone, whatever `objects` says.
    const char* except[kMaxPatterns] = {};
    /// A target may lie in any object: a tool between the program and the framework (PMPI) defines the framework's symbols, too.
    bool any_target = false;
};

/// Finds the set's slots in objects loaded since the last scan and forgets those of objects that are gone.
/// Cheap (one dl_iterate_phdr callback) when nothing was loaded or unloaded since.
/// @thread serialised inside; waits for the loader's lock, so never from a place that holds a lock which a constructor may want
/// @return slots known now
std::uint32_t scan_slots(SlotSet& set);

/// Writes the wrappers into all slots of the set, or the originals back.
/// @thread as scan_slots
void write_slots(SlotSet& set, bool wrappers);

/// Writes the wrappers of those hooks that stay.
/// @thread as scan_slots
void write_staying_slots(SlotSet& set);

/// Looks a symbol up in the set's providers alone, through their DT_GNU_HASH; calls nothing of the loader.
/// @param nth  of the providers that define it, from 0
/// @return null where fewer do
void* find_symbol(const SlotSet& set, const char* symbol, std::uint32_t nth = 0);

/// The DT_SONAME of the first provider that is mapped: its file may be named otherwise.
/// @return its basename where it has none, "" where no provider is mapped
const char* provider_soname(const SlotSet& set);

/// Whether an object whose basename starts with `prefix` is mapped.
bool object_loaded(const char* prefix);

}  // namespace ringside::inject
