// The loaded objects, as far as slots need them: where each lies, its dynamic section, and lookups in its symbol tables that call
// nothing of the loader. Read under the loader's lock; an object's pages can't go away in there.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace ringside::inject {

inline constexpr std::uint32_t kMaxObjects = 4096;
inline constexpr std::size_t kObjectNameBytes = 64;

struct LoadedObject {
    std::uintptr_t base;                    ///< what its addresses are relative to
    std::uintptr_t first, end;              ///< what its segments span
    std::uintptr_t relro_first, relro_end;  ///< whole pages; equal: none
    const ElfW(Dyn) * dynamic;
    char name[kObjectNameBytes];  ///< basename, cut; empty: the executable
    std::uint32_t scanned;        ///< bit per slot set: its slots are known
    bool seen;
    bool ours;    ///< this shim
    bool loader;  ///< ld.so, libc, the vdso: never touched

    bool holds(std::uintptr_t address) const { return address >= first && address < end; }
};

/// An object as the loader tells it.
LoadedObject describe(const dl_phdr_info& info);

/// An object's dynamic section, taken apart.
struct DynamicTables {
    const ElfW(Sym) * symbols = nullptr;
    const char* strings = nullptr;
    const std::uint32_t* gnu_hash = nullptr;
    const std::uint32_t* sysv_hash = nullptr;
    const ElfW(Rela) * relocations = nullptr;
    std::size_t relocation_count = 0;  ///< without the relative ones, which come first
    const ElfW(Rela) * plt = nullptr;
    std::size_t plt_count = 0;

    explicit DynamicTables(const LoadedObject& object);
    bool usable() const { return symbols != nullptr && strings != nullptr; }
    const char* name(std::uint32_t symbol) const { return strings + symbols[symbol].st_name; }
    /// Symbols [1, unhashed_end) are those that no GNU hash finds, the undefined ones; without one: all of them. 0: can't be told (an
    /// executable that exports nothing has an empty hash).
    std::uint32_t unhashed_end() const;
};

/// Looks through the loader's list for what is new and what is gone.
/// @param gone  called for each object that is no longer there, before it is forgotten
/// @return whether anything changed
/// @thread under the loader's lock
bool refresh_objects(void (*gone)(const LoadedObject&));

LoadedObject* objects_begin();
LoadedObject* objects_end();

/// @return the object that `address` lies in, or null
const LoadedObject* object_at(std::uintptr_t address);

/// Whether the object's name starts with one of `count` prefixes (a null ends them); an empty one is the executable alone.
bool name_matches(const LoadedObject& object, const char* const* prefixes, std::uint32_t count);

enum class Find { kAny, kDefined };

/// The symbol's index, else 0. kDefined: as a function or datum of this object; kAny: whatever its hash table holds.
std::uint32_t find_in(const DynamicTables& tables, const char* symbol, Find find);
/// @param hash  the symbol's
std::uint32_t find_in(const DynamicTables& tables, const char* symbol, std::uint32_t hash,
                      Find find);

/// The hash of DT_GNU_HASH.
std::uint32_t gnu_hash(const char* symbol);

}  // namespace ringside::inject
