#include "inject/core/slots/loader_watch.hpp"

#include <errno.h>

#include <atomic>

#include "inject/core/capture.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/source.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

namespace {

RINGSIDE_START_DATA constinit std::atomic<bool> watching{false};
// Object generations last seen, at any call and at a call from outside the loader. Races only cost a look too many.
RINGSIDE_START_DATA constinit std::atomic<std::uint64_t> seen_anywhere{0};
RINGSIDE_START_DATA constinit std::atomic<std::uint64_t> seen_outside{0};
RINGSIDE_START_DATA constinit std::atomic<std::uint64_t> seen_by_watchers{0};
RINGSIDE_START_DATA constinit const ObjectsChanged* watchers = nullptr;
RINGSIDE_START_DATA constinit std::uint32_t watcher_count = 0;

void tell_watchers(std::uint64_t objects) {
    if (seen_by_watchers.exchange(objects, std::memory_order_relaxed) == objects) return;
    for (std::uint32_t i = 0; i < watcher_count; ++i) watchers[i]();
}

/// CPython looks a module's entry up right after dlopen() has returned, before it runs any of it: in no dlopen(), and in time for the
/// first operator.
void at_module_entry(std::uint64_t objects) {
    const bool new_word = capture_word() != acted_word();
    if (seen_outside.exchange(objects, std::memory_order_relaxed) == objects && !new_word) return;
    if (!any_source_present()) return;
    make_pending_segment();
    catch_up(Place::kOutsideLoader);
    ensure_helper_thread();
}

/// Anywhere else we may be inside a constructor of a library half loaded: only say that there is something to look at.
void at_any_call(std::uint64_t objects) {
    const bool new_objects = seen_anywhere.exchange(objects, std::memory_order_relaxed) != objects;
    if (new_objects && any_source_present()) {
        make_pending_segment();
        ensure_helper_thread();
        if ((capture_word() & 1) != 0 && has_helper_thread()) wake_helper_thread();
    }
    if (!has_helper_thread() && capture_word() != acted_word()) catch_up(Place::kUnknown);
}

}  // namespace

void set_object_watchers(const ObjectsChanged* tell, std::uint32_t count) {
    watchers = tell;
    watcher_count = count;
}

void start_loader_watch() {
    const std::uint64_t objects = object_generation();
    tell_watchers(objects);
    seen_anywhere.store(objects, std::memory_order_relaxed);
    seen_outside.store(objects, std::memory_order_relaxed);
    watching.store(true, std::memory_order_release);
}

extern "C" {

/// Before every dlopen() and dlsym() of the job.
/// @param symbol  dlsym's; null for dlopen
__attribute__((visibility("hidden"), used)) void ringside_before_loader_call(const char* symbol) {
    resolve_loader();
    if (!watching.load(std::memory_order_acquire)) return;
    const int saved_errno = errno;
    const std::uint64_t objects = object_generation();
    tell_watchers(objects);
    if (symbol != nullptr && starts_with(symbol, "PyInit_")) {
        at_module_entry(objects);
    } else {
        at_any_call(objects);
    }
    errno = saved_errno;
}
}

// The stubs: save the two arguments, look, restore, jump. A frame of ours must not be there when the real function looks at its return
// address to find out who called.
asm(R"(
    .text
    .p2align 4
    .globl dlopen
    .type dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    xor %edi, %edi
    call ringside_before_loader_call
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    mov ringside_real_dlopen(%rip), %rax
    test %rax, %rax
    jz 1f
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlopen, .-dlopen

    .p2align 4
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    mov %rsi, %rdi
    call ringside_before_loader_call
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    mov ringside_real_dlsym(%rip), %rax
    test %rax, %rax
    jz 1f
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym
)");

}  // namespace ringside::inject
