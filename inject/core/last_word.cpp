#include "inject/core/last_word.hpp"

#include <unistd.h>

#include "inject/core/segment_file.hpp"
#include "inject/core/slots/slots.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

namespace {

using Exit = void (*)(int);
RINGSIDE_START_DATA constinit void* real_exit = nullptr;

/// Called from signal handlers and vfork's children, too: nothing in close_segment() minds.
[[noreturn]] void close_and_exit(int status) {
    close_segment();
    reinterpret_cast<Exit>(real_exit)(status);
    __builtin_unreachable();
}

SlotHook hooks[] = {
    {"_exit", reinterpret_cast<void*>(&close_and_exit), &real_exit, 0},
    {"_Exit", reinterpret_cast<void*>(&close_and_exit), &real_exit, 0},
};
// Two objects and no more: a program's other libraries are many, and hardly one of them ends it.
constinit SlotSet quick_exit{{"libc.so"}, {kExecutable, "libpython"}, hooks, 2};

}  // namespace

void hear_quick_exit() {
    if (scan_slots(quick_exit) != 0) write_slots(quick_exit, true);
}

}  // namespace ringside::inject
