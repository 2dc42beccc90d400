#include "inject/core/slots/loader_lock.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

#include "inject/core/c_library.hpp"
#include "inject/core/slots/loader_walk.hpp"
#include "inject/core/slots/objects.hpp"
#include "inject/core/start_data.hpp"

// Jumped to by the exported stubs (loader_watch.cpp): C names, hidden.
extern "C" {
__attribute__((visibility("hidden"))) RINGSIDE_START_DATA constinit std::atomic<void*>
    ringside_real_dlopen{nullptr};
__attribute__((visibility("hidden"))) RINGSIDE_START_DATA constinit std::atomic<void*>
    ringside_real_dlsym{nullptr};
}

namespace ringside::inject {

namespace {

struct Work {
    void (*run)(void*);
    void* argument;
    bool done;
};
// What the resolver is to do for the thread that it runs on; null when somebody else looks the symbol up.
__thread Work* t_work __attribute__((tls_model("initial-exec")));
__thread std::uint32_t t_locked __attribute__((tls_model("initial-exec")));

void nothing() {}
using Nothing = void (*)();

struct Wanted {
    const char* symbol;
    void* found;
};

int find_definition(dl_phdr_info* info, std::size_t, void* out) {
    auto* wanted = static_cast<Wanted*>(out);
    const LoadedObject object = describe(*info);
    if (object.ours) return 0;
    const DynamicTables tables(object);
    const std::uint32_t index = find_in(tables, wanted->symbol, Find::kDefined);
    if (index == 0) return 0;
    wanted->found = reinterpret_cast<void*>(object.base + tables.symbols[index].st_value);
    return 1;
}

/// x86-64's glibc has had both under this version for ever; as a default or as a compatibility version. Elsewhere (musl) nobody can be asked
/// who comes next, since dlsym() is ours: the first definition that is not.
void* next(const char* symbol) {
    const VersionedLookUp look_up = versioned_look_up();
    if (look_up == nullptr) {
        Wanted wanted{symbol, nullptr};
        walk_objects(find_definition, &wanted);
        return wanted.found;
    }
    void* function = look_up(RTLD_NEXT, symbol, "GLIBC_2.2.5");
    return function != nullptr ? function : look_up(RTLD_NEXT, symbol, "GLIBC_2.34");
}

int read_generation(dl_phdr_info* info, std::size_t, void* out) {
    // Both only grow, so the sum changes with either.
    *static_cast<std::uint64_t*>(out) = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

}  // namespace

extern "C" {
/// The IFUNC's resolver: runs inside dlsym(), under the loader's lock.
__attribute__((visibility("hidden"), used)) Nothing ringside_resolve_under_lock() {
    Work* work = t_work;
    if (work != nullptr) {
        t_work = nullptr;
        t_locked = 1;
        work->run(work->argument);
        t_locked = 0;
        work->done = true;
    }
    return nothing;
}
__attribute__((visibility("default"), ifunc("ringside_resolve_under_lock"))) void
ringside_loader_lock();
}

bool resolve_loader() {
    if (ringside_real_dlsym.load(std::memory_order_acquire) != nullptr) return true;
    ringside_real_dlopen.store(next("dlopen"), std::memory_order_release);
    void* function = next("dlsym");
    ringside_real_dlsym.store(function, std::memory_order_release);
    return function != nullptr;
}

LookUp real_dlsym() {
    return reinterpret_cast<LookUp>(ringside_real_dlsym.load(std::memory_order_acquire));
}

bool with_loader_lock(void (*work)(void*), void* argument) {
    if (t_locked != 0) {
        work(argument);
        return true;
    }
    if (!resolve_loader()) return false;
    Work mine{work, argument, false};
    t_work = &mine;
    real_dlsym()(RTLD_DEFAULT, "ringside_loader_lock");
    t_work = nullptr;
    return mine.done;
}

std::uint64_t object_generation() {
    std::uint64_t generation = 0;
    walk_objects(read_generation, &generation);
    return generation;
}

}  // namespace ringside::inject
