// Writing slots: aligned 8-byte stores, so that a call through the slot goes to one function or the other, never astray.
#include <sys/mman.h>

#include "inject/core/emit.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/slot_table.hpp"

namespace ringside::inject {

namespace {

struct WriteRequest {
    SlotSet* set;
    bool wrappers;
    bool staying_alone = false;

    bool means(const SlotHook& hook) const {
        return staying_alone ? hook.stays : wrappers || !hook.stays;
    }
};

void store(const Slot& slot, std::uintptr_t value) {
    void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot.at) &
                                         ~(schema::kPageBytes - 1));
    // Writable for the store, never unreadable: other threads call through this page all the while.
    if (slot.relro && mprotect(page, schema::kPageBytes, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot.at, value, __ATOMIC_RELEASE);
    if (slot.relro) mprotect(page, schema::kPageBytes, PROT_READ);
}

void write_one(const Slot& slot, bool wrappers) {
    const auto wrapper = reinterpret_cast<std::uintptr_t>(slot.hook->wrapper);
    const std::uintptr_t wanted = wrappers ? wrapper : slot.original;
    const std::uintptr_t expected = wrappers ? slot.original : wrapper;
    const std::uintptr_t current = __atomic_load_n(slot.at, __ATOMIC_ACQUIRE);
    if (current == wanted) return;
    const bool unresolved = current >= slot.stub_first && current < slot.stub_end;
    if (current == expected || (wrappers && unresolved)) {
        store(slot, wanted);
    } else if (!unresolved) {
        // Another tool has put its own there since: it stays.
        count_loss(schema::Loss::kHookOtherTarget);
    }
}

void write_locked(void* argument) {
    const auto* request = static_cast<const WriteRequest*>(argument);
    refresh_objects(forget_slots_of);
    const std::uint32_t number = set_number(*request->set);
    for (const Slot* slot = slots_begin(); slot != slots_end(); ++slot) {
        if (slot->set == number && request->means(*slot->hook)) write_one(*slot, request->wrappers);
    }
}

}  // namespace

void write_slots(SlotSet& set, bool wrappers) {
    WriteRequest request{&set, wrappers};
    with_loader_lock(write_locked, &request);
}

void write_staying_slots(SlotSet& set) {
    WriteRequest request{&set, true, true};
    with_loader_lock(write_locked, &request);
}

}  // namespace ringside::inject
