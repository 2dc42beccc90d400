// A std::function of libstdc++ around another one, without libstdc++: the outer one holds a pointer to a counted entry of a fixed pool, the
// entry holds the original and what we want to know when it is called. Entries outlive captures: an armed read may wait for hours.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include "inject/core/pools.hpp"

namespace ringside::inject {

/// libstdc++'s std::function: what it stores is in place when it is small and trivially copyable, else a pointer; so a bitwise copy
/// moves it, if the source is emptied.
struct StdFunction {
    alignas(8) unsigned char storage[16];
    bool (*manager)(void* destination, const void* source, int operation);
    void* invoker;
};
static_assert(sizeof(StdFunction) == 32 && offsetof(StdFunction, manager) == 16);

/// The operations of StdFunction::manager.
enum ManagerOperation {
    kManagerTypeInfo = 0,
    kManagerPointer = 1,
    kManagerClone = 2,
    kManagerDestroy = 3
};

/// @tparam Extra  trivially copyable   @tparam kCount  how many can wait at once
template <class Extra, std::uint32_t kCount>
class FunctionPool {
public:
    struct Entry {
        StdFunction original{};
        std::atomic<std::uint32_t> references{0};
        Extra extra{};
    };

    /// Moves `function` into an entry and makes `wrapper` a function that calls `invoker` with its storage.
    /// @return the entry; null, and `function` untouched, where the pool is full
    Entry* wrap(StdFunction* function, void* invoker, const Extra& extra, StdFunction* wrapper) {
        Entry* const entry = entries_.acquire();
        if (entry == nullptr) return nullptr;
        entry->original = *function;
        entry->references.store(1, std::memory_order_relaxed);
        entry->extra = extra;
        // An empty function: its owner destroys nothing.
        function->manager = nullptr;
        function->invoker = nullptr;
        std::memset(wrapper, 0, sizeof *wrapper);
        std::memcpy(wrapper->storage, &entry, sizeof entry);
        wrapper->manager = manage;
        wrapper->invoker = invoker;
        return entry;
    }

    /// The entry that a wrapper's storage points to.
    static Entry* entry_of(const void* storage) {
        Entry* entry = nullptr;
        std::memcpy(&entry, storage, sizeof entry);
        return entry;
    }

    /// Destroys what the callee has left of a wrapper (nothing, if it has moved it away).
    static void destroy(StdFunction* wrapper) {
        if (wrapper->manager != nullptr) wrapper->manager(wrapper, wrapper, kManagerDestroy);
    }

private:
    static bool manage(void* destination, const void* source, int operation) {
        Entry* const entry = entry_of(source);
        switch (operation) {
            case kManagerTypeInfo:  // we have no type to show; nobody asks for it
                std::memset(destination, 0, sizeof(void*));
                break;
            case kManagerPointer:
                std::memcpy(destination, &source, sizeof source);
                break;
            case kManagerClone:  // copies share the original, which nobody copies for its state
                entry->references.fetch_add(1, std::memory_order_relaxed);
                std::memcpy(destination, &entry, sizeof entry);
                break;
            case kManagerDestroy:
                release(entry_of(destination));
                break;
            default:
                break;
        }
        return false;
    }

    static void release(Entry* entry) {
        // SYNC(references): the last owner sees what the others did to the original.
        if (entry->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        if (entry->original.manager != nullptr)
            entry->original.manager(&entry->original, &entry->original, kManagerDestroy);
        entries_.release(entry);
    }

    static constinit inline EntryPool<Entry, kCount> entries_;
};

}  // namespace ringside::inject
