#include "inject/core/slots/objects.hpp"

#include <cstring>

#include "inject/core/fixed_text.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/loader_tables.hpp"
#include "inject/core/slots/loader_walk.hpp"
#include "inject/core/slots/slots.hpp"
#include "inject/core/start_data.hpp"
#include "schema/units.hpp"

namespace ringside::inject {

namespace {

RINGSIDE_START_DATA constinit std::uint32_t object_count = 0;
RINGSIDE_START_DATA constinit std::uint64_t seen_generation = 0;

constexpr std::uintptr_t page_floor(std::uintptr_t address) {
    return address & ~(schema::kPageBytes - 1);
}

/// Objects whose slots are never written: the C library and the loader must keep working whatever we do.
constexpr const char* kNeverTouched[] = {"libc.so", "ld-linux", "linux-vdso"};

}  // namespace

LoadedObject describe(const dl_phdr_info& info) {
    LoadedObject object{};
    object.base = info.dlpi_addr;
    object.first = ~std::uintptr_t{0};
    std::strncpy(object.name, base_name(info.dlpi_name), kObjectNameBytes - 1);
    for (ElfW(Half) i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        const std::uintptr_t start = info.dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) {
            object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
        } else if (header.p_type == PT_LOAD) {
            object.first = start < object.first ? start : object.first;
            object.end = start + header.p_memsz > object.end ? start + header.p_memsz : object.end;
        } else if (header.p_type == PT_GNU_RELRO) {
            object.relro_first = page_floor(start);
            object.relro_end = page_floor(start + header.p_memsz);
        }
    }
    object.ours = object.holds(reinterpret_cast<std::uintptr_t>(&g_loader_tables));
    for (const char* prefix : kNeverTouched) object.loader |= starts_with(object.name, prefix);
    object.seen = true;
    return object;
}

namespace {

LoadedObject* known(const dl_phdr_info& info) {
    const char* name = base_name(info.dlpi_name);
    LoadedObject* const objects = objects_begin();
    for (std::uint32_t i = 0; i < object_count; ++i) {
        if (objects[i].base == info.dlpi_addr &&
            std::strncmp(objects[i].name, name, kObjectNameBytes - 1) == 0) {
            return &objects[i];
        }
    }
    return nullptr;
}

int visit(dl_phdr_info* info, std::size_t, void* generation) {
    *static_cast<std::uint64_t*>(generation) = info->dlpi_adds + info->dlpi_subs;
    LoadedObject* object = known(*info);
    if (object != nullptr) {
        object->seen = true;
    } else if (object_count < kMaxObjects) {
        *objects_end() = describe(*info);
        ++object_count;
    }
    return 0;
}

/// The C library has made these pointers absolute where the section is writable; elsewhere they are offsets.
template <class T>
const T* table_at(const LoadedObject& object, ElfW(Addr) value) {
    std::uintptr_t address = value;
    if (address < object.first) address += object.base;
    return object.holds(address) ? reinterpret_cast<const T*>(address) : nullptr;
}

}  // namespace

DynamicTables::DynamicTables(const LoadedObject& object) {
    std::size_t relative = 0;
    for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL;
         ++entry) {
        const ElfW(Addr) at = entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB:
                symbols = table_at<ElfW(Sym)>(object, at);
                break;
            case DT_STRTAB:
                strings = table_at<char>(object, at);
                break;
            case DT_GNU_HASH:
                gnu_hash = table_at<std::uint32_t>(object, at);
                break;
            case DT_HASH:
                sysv_hash = table_at<std::uint32_t>(object, at);
                break;
            case DT_RELA:
                relocations = table_at<ElfW(Rela)>(object, at);
                break;
            case DT_RELASZ:
                relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            case DT_RELACOUNT:
                relative = entry->d_un.d_val;
                break;
            case DT_JMPREL:
                plt = table_at<ElfW(Rela)>(object, at);
                break;
            case DT_PLTRELSZ:
                plt_count = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            default:
                break;
        }
    }
    if (relocations == nullptr) relocation_count = 0;
    if (plt == nullptr) plt_count = 0;
    if (relative > relocation_count) relative = relocation_count;
    if (relocations != nullptr) relocations += relative;
    relocation_count -= relative;
}

std::uint32_t DynamicTables::unhashed_end() const {
    if (gnu_hash == nullptr) return sysv_hash != nullptr ? sysv_hash[1] : 0;
    const std::uint32_t buckets = gnu_hash[0];
    const std::uint32_t* bucket = gnu_hash + 4 + 2 * gnu_hash[2];
    for (std::uint32_t i = 0; i < buckets; ++i) {
        if (bucket[i] != 0) return gnu_hash[1];
    }
    return 0;
}

bool refresh_objects(void (*gone)(const LoadedObject&)) {
    if (object_generation() == seen_generation) return false;
    LoadedObject* const objects = objects_begin();
    for (std::uint32_t i = 0; i < object_count; ++i) objects[i].seen = false;
    walk_objects(visit, &seen_generation);
    for (std::uint32_t i = 0; i < object_count;) {
        if (objects[i].seen) {
            ++i;
            continue;
        }
        gone(objects[i]);
        objects[i] = objects[--object_count];
    }
    return true;
}

LoadedObject* objects_begin() {
    return g_loader_tables.objects;
}
LoadedObject* objects_end() {
    return objects_begin() + object_count;
}

const LoadedObject* object_at(std::uintptr_t address) {
    for (const LoadedObject* object = objects_begin(); object != objects_end(); ++object) {
        if (object->holds(address)) return object;
    }
    return nullptr;
}

bool name_matches(const LoadedObject& object, const char* const* prefixes, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count && prefixes[i] != nullptr; ++i) {
        if (prefixes[i][0] == 0 ? object.name[0] == 0 : starts_with(object.name, prefixes[i]))
            return true;
    }
    return false;
}

std::uint32_t gnu_hash(const char* symbol) {
    std::uint32_t hash = 5381;
    for (; *symbol != 0; ++symbol) hash = hash * 33 + static_cast<std::uint8_t>(*symbol);
    return hash;
}

namespace {

bool matches(const DynamicTables& tables, std::uint32_t index, const char* symbol, Find find) {
    const ElfW(Sym)& entry = tables.symbols[index];
    if (find == Find::kDefined) {
        const unsigned type = ELF64_ST_TYPE(entry.st_info);
        if (entry.st_shndx == SHN_UNDEF || type == STT_GNU_IFUNC || type == STT_TLS) return false;
    }
    return std::strcmp(tables.strings + entry.st_name, symbol) == 0;
}

}  // namespace

std::uint32_t find_in(const DynamicTables& tables, const char* symbol, Find find) {
    return find_in(tables, symbol, gnu_hash(symbol), find);
}

std::uint32_t find_in(const DynamicTables& tables, const char* symbol, std::uint32_t hash,
                      Find find) {
    if (!tables.usable()) return 0;
    if (tables.gnu_hash == nullptr) {
        for (std::uint32_t i = 1; i < tables.unhashed_end(); ++i) {
            if (matches(tables, i, symbol, find)) return i;
        }
        return 0;
    }
    const std::uint32_t buckets = tables.gnu_hash[0];
    const std::uint32_t first = tables.gnu_hash[1];
    const std::uint32_t words = tables.gnu_hash[2];
    const std::uint32_t* bucket = tables.gnu_hash + 4 + 2 * words;
    const std::uint32_t* chain = bucket + buckets;
    if (buckets == 0) return 0;
    // The table's own filter: two bits of a 64-bit word say at once that most symbols are not there.
    std::uint64_t filter = 0;
    std::memcpy(&filter, tables.gnu_hash + 4 + 2 * (hash / 64 & (words - 1)), sizeof filter);
    if ((filter >> (hash & 63) & filter >> (hash >> tables.gnu_hash[3] & 63) & 1) == 0) return 0;
    for (std::uint32_t i = bucket[hash % buckets]; i >= first && i != 0; ++i) {
        const std::uint32_t entry = chain[i - first];
        if ((entry | 1) == (hash | 1) && matches(tables, i, symbol, find)) return i;
        if ((entry & 1) != 0) return 0;
    }
    return 0;
}

namespace {

struct Wanted {
    const char* prefix;
    bool found;
};

int compare(dl_phdr_info* info, std::size_t, void* out) {
    auto* wanted = static_cast<Wanted*>(out);
    wanted->found = starts_with(base_name(info->dlpi_name), wanted->prefix);
    return wanted->found ? 1 : 0;
}

}  // namespace

bool object_loaded(const char* prefix) {
    Wanted wanted{prefix, false};
    walk_objects(compare, &wanted);
    return wanted.found;
}

}  // namespace ringside::inject
