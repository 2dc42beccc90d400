#include "inject/sources/torch/thread_state.hpp"

#include <iterator>

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {
namespace {

void* g_original;
const ThreadCallbacks* (*g_current)();

void wrap_set_thread_callbacks(const ThreadCallbacks* next) {
    using Set = void(const ThreadCallbacks*);
    if (is_no_change(*g_current(), *next)) return;
    reinterpret_cast<Set*>(g_original)(next);
}

SlotHook g_hooks[] = {
    {kSetThreadCallbacks, reinterpret_cast<void*>(wrap_set_thread_callbacks), &g_original, 0},
};

SlotSet g_slots = {
    {"libtorch_cpu.so"}, {"libtorch_cpu.so"}, g_hooks, std::size(g_hooks), kSetThreadCallbacks};

}  // namespace

bool prepare_thread_state(const ThreadStateApi& api) {
    g_current = api.current;
    scan_slots(g_slots);
    return g_hooks[0].slots != 0;
}

void attach_thread_state() {
    write_slots(g_slots, true);
}

void detach_thread_state() {
    write_slots(g_slots, false);
}

}  // namespace ringside::inject::torch
