// Finding slots: for each object that a set wants, the indices of the hooked symbols first (one look at the undefined symbols' names),
// then its relocations by index alone. Comparing each relocation's name instead takes five times as long in libtorch.
#include <dlfcn.h>

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/slot_table.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

namespace {

/// Which of an object's symbols are hooked. One at a time, under the loader's lock.
class SymbolMatcher {
public:
    SymbolMatcher(const DynamicTables& tables, const SlotSet& set) : tables_(tables), set_(set) {
        const std::uint32_t end = tables.unhashed_end();
        by_name_ = end == 0;
        if (by_name_) return;
        std::memset(first_, 0, sizeof first_);
        for (std::uint32_t symbol = 1; symbol < end; ++symbol) note(symbol, hook_named(symbol));
        for (std::uint32_t hook = 0; hook < set.hook_count && tables.gnu_hash != nullptr; ++hook) {
            const SlotHook& wanted = set.hooks[hook];
            const std::uint32_t symbol = find_in(tables, wanted.symbol, wanted.hash, Find::kAny);
            if (symbol != 0) note(symbol, &set.hooks[hook]);
        }
    }

    /// Whether a walk over the relocations can find anything.
    bool any() const { return by_name_ || count_ > 0; }

    SlotHook* hook_of(std::uint32_t symbol) const {
        if (by_name_) return hook_named(symbol);
        for (std::uint32_t i = first_[symbol % kChains]; i != 0; i = found(i - 1).next) {
            if (found(i - 1).symbol == symbol) return found(i - 1).hook;
        }
        return nullptr;
    }

private:
    static constexpr std::uint32_t kMaxFound = 2048;
    static_assert(kMaxFound <= UINT16_MAX);
    static constexpr std::uint32_t kFirstFound = 16;  ///< what a small program's objects have
    static constexpr std::uint32_t kChains = 256;
    struct Found {
        SlotHook* hook;
        std::uint32_t symbol;
        std::uint32_t next;  ///< index + 1 of another one in this chain; 0: none
    };

    SlotHook* hook_named(std::uint32_t symbol) const {
        const char* name = tables_.name(symbol);
        if (!starts_with(name, set_.symbol_prefix)) return nullptr;
        const std::uint32_t hash = gnu_hash(name);
        for (std::uint32_t i = 0; i < set_.hook_count; ++i) {
            if (set_.hooks[i].hash == hash && std::strcmp(set_.hooks[i].symbol, name) == 0)
                return &set_.hooks[i];
        }
        return nullptr;
    }

    void note(std::uint32_t symbol, SlotHook* hook) {
        if (hook == nullptr || count_ == kMaxFound) return;
        found(count_) = {hook, symbol, first_[symbol % kChains]};
        first_[symbol % kChains] = static_cast<std::uint16_t>(++count_);
    }

    static Found& found(std::uint32_t index) {
        return index < kFirstFound ? first_found_[index] : found_[index - kFirstFound];
    }

    const DynamicTables& tables_;
    const SlotSet& set_;
    bool by_name_ = false;
    std::uint32_t count_ = 0;
    /// Index + 1 of what was found; 0: none. Emptied for each object that is looked at, also in a small process, which finds nothing.
    static constinit std::uint16_t first_[kChains];
    static constinit Found first_found_[kFirstFound];
    static constinit Found found_[kMaxFound - kFirstFound];
};
RINGSIDE_START_DATA constinit std::uint16_t SymbolMatcher::first_[kChains]{};
RINGSIDE_START_DATA constinit SymbolMatcher::Found SymbolMatcher::first_found_[kFirstFound]{};
constinit SymbolMatcher::Found SymbolMatcher::found_[kMaxFound - kFirstFound]{};

std::uintptr_t definition(const LoadedObject& object, const char* symbol) {
    const DynamicTables tables(object);
    const std::uint32_t index = find_in(tables, symbol, Find::kDefined);
    return index == 0 ? 0 : object.base + tables.symbols[index].st_value;
}

/// The first definition in the object or in what it needs, breadth first: where the loader would bind a library loaded RTLD_LOCAL.
std::uintptr_t definition_in_scope(const LoadedObject& root, const char* symbol) {
    static constinit const LoadedObject* queue[kMaxObjects];  // under the loader's lock
    static constinit bool queued[kMaxObjects];
    std::memset(queued, 0, sizeof queued);
    std::uint32_t head = 0, tail = 0;
    queue[tail++] = &root;
    queued[&root - objects_begin()] = true;
    while (head < tail) {
        const LoadedObject& object = *queue[head++];
        const std::uintptr_t found = definition(object, symbol);
        if (found != 0) return found;
        const DynamicTables tables(object);
        for (const ElfW(Dyn)* entry = object.dynamic;
             entry != nullptr && tables.strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag != DT_NEEDED) continue;
            const char* path = tables.strings + entry->d_un.d_val;
            const char* slash = std::strrchr(path, '/');
            const char* name = slash != nullptr ? slash + 1 : path;
            for (LoadedObject* next = objects_begin(); next != objects_end(); ++next) {
                if (queued[next - objects_begin()] ||
                    std::strncmp(next->name, name, kObjectNameBytes - 1) != 0)
                    continue;
                queued[next - objects_begin()] = true;
                queue[tail++] = next;
            }
        }
    }
    return 0;
}

bool provides(const LoadedObject& object, const SlotSet& set) {
    return name_matches(object, set.providers, kMaxPatterns);
}

/// What the loader would bind an unresolved lazy slot to: the global scope, the object's own, else the one provider that has it.
std::uintptr_t lazy_target(const LoadedObject& object, const SlotSet& set, const char* symbol) {
    void* global = real_dlsym()(RTLD_DEFAULT, symbol);
    if (global != nullptr) return reinterpret_cast<std::uintptr_t>(global);
    std::uintptr_t target = definition_in_scope(object, symbol);
    if (target != 0) return target;
    for (LoadedObject* other = objects_begin(); other != objects_end(); ++other) {
        const std::uintptr_t found = provides(*other, set) ? definition(*other, symbol) : 0;
        if (found == 0) continue;
        if (target != 0) return 0;  // two could be meant: leave it alone
        target = found;
    }
    return target;
}

void consider(const LoadedObject& object, SlotSet& set, std::uint32_t number,
              const ElfW(Rela) & relocation, SlotHook& hook) {
    auto* at = reinterpret_cast<std::uintptr_t*>(object.base + relocation.r_offset);
    const std::uintptr_t current = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    // Zero is a weak symbol that nobody defines: its caller looks for it, and must go on not finding it.
    if (current == 0 || current == reinterpret_cast<std::uintptr_t>(hook.wrapper)) return;
    std::uintptr_t target = current;
    const bool lazy = ELF64_R_TYPE(relocation.r_info) == R_X86_64_JUMP_SLOT &&
                      object.holds(current) && definition(object, hook.symbol) != current;
    if (lazy) target = lazy_target(object, set, hook.symbol);
    const LoadedObject* provider = target != 0 ? object_at(target) : nullptr;
    void* known = *hook.original;
    if (provider == nullptr || !(set.any_target || provides(*provider, set)) ||
        (known != nullptr && known != reinterpret_cast<void*>(target))) {
        count_loss(schema::Loss::kHookOtherTarget);
        return;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const bool added =
        add_slot({at, target, &hook, object.base, lazy ? object.first : 0, lazy ? object.end : 0,
                  number, address >= object.relro_first && address < object.relro_end});
    if (added) *hook.original = reinterpret_cast<void*>(target);
}

void scan_table(const LoadedObject& object, SlotSet& set, std::uint32_t number,
                const SymbolMatcher& matcher, const ElfW(Rela) * relocations, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        SlotHook* hook = matcher.hook_of(ELF64_R_SYM(relocations[i].r_info));
        if (hook == nullptr) continue;
        const auto type = ELF64_R_TYPE(relocations[i].r_info);
        if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
            (type == R_X86_64_64 && relocations[i].r_addend == 0)) {
            consider(object, set, number, relocations[i], *hook);
        }
    }
}

void scan_object(LoadedObject& object, SlotSet& set, std::uint32_t number) {
    object.scanned |= 1u << number;
    if (object.ours || object.loader) return;
    if (set.objects[0] != nullptr && !name_matches(object, set.objects, kMaxPatterns)) return;
    if (name_matches(object, set.except, kMaxPatterns)) return;
    const DynamicTables tables(object);
    if (!tables.usable()) return;
    const SymbolMatcher matcher(tables, set);
    if (!matcher.any()) return;
    scan_table(object, set, number, matcher, tables.relocations, tables.relocation_count);
    scan_table(object, set, number, matcher, tables.plt, tables.plt_count);
}

/// @return whether any provider is loaded; one that is new has every object looked at again, for what could not be bound before
bool find_providers(SlotSet& set, std::uint32_t number) {
    bool any = false, fresh = false;
    for (LoadedObject* object = objects_begin(); object != objects_end(); ++object) {
        if (!provides(*object, set)) continue;
        any = true;
        fresh |= (object->scanned >> number & 1) == 0;
    }
    for (LoadedObject* object = objects_begin(); fresh && object != objects_end(); ++object)
        object->scanned &= ~(1u << number);
    return any;
}

struct ScanRequest {
    SlotSet* set;
    std::uint32_t slots;
};

void scan_locked(void* argument) {
    auto* request = static_cast<ScanRequest*>(argument);
    const std::uint32_t number = set_number(*request->set);
    if (number == kMaxSlotSets) return;
    refresh_objects(forget_slots_of);
    for (std::uint32_t i = 0; i < request->set->hook_count; ++i) {
        SlotHook& hook = request->set->hooks[i];
        if (hook.hash == 0) hook.hash = gnu_hash(hook.symbol);
    }
    if (find_providers(*request->set, number)) {
        for (LoadedObject* object = objects_begin(); object != objects_end(); ++object) {
            if ((object->scanned >> number & 1) == 0) scan_object(*object, *request->set, number);
        }
    }
    request->slots = count_slots(*request->set, number);
}

struct FindRequest {
    const SlotSet* set;
    const char* symbol;
    std::uint32_t before;  ///< how many more come first
    std::uintptr_t found;
};

void find_locked(void* argument) {
    auto* request = static_cast<FindRequest*>(argument);
    refresh_objects(forget_slots_of);
    for (LoadedObject* object = objects_begin(); object != objects_end(); ++object) {
        const std::uintptr_t found =
            provides(*object, *request->set) ? definition(*object, request->symbol) : 0;
        if (found == 0 || request->before-- != 0) continue;
        request->found = found;
        return;
    }
}

struct NameRequest {
    const SlotSet* set;
    const char* name;
};

void name_locked(void* argument) {
    auto* request = static_cast<NameRequest*>(argument);
    refresh_objects(forget_slots_of);
    for (LoadedObject* object = objects_begin(); object != objects_end(); ++object) {
        if (!provides(*object, *request->set)) continue;
        request->name = object->name;
        const DynamicTables tables(*object);
        for (const ElfW(Dyn)* entry = object->dynamic;
             entry != nullptr && tables.strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_SONAME) request->name = tables.strings + entry->d_un.d_val;
        }
        return;
    }
}

}  // namespace

std::uint32_t scan_slots(SlotSet& set) {
    ScanRequest request{&set, 0};
    with_loader_lock(scan_locked, &request);
    return request.slots;
}

void* find_symbol(const SlotSet& set, const char* symbol, std::uint32_t nth) {
    FindRequest request{&set, symbol, nth, 0};
    with_loader_lock(find_locked, &request);
    return reinterpret_cast<void*>(request.found);
}

const char* provider_soname(const SlotSet& set) {
    NameRequest request{&set, ""};
    with_loader_lock(name_locked, &request);
    return request.name;
}

}  // namespace ringside::inject
