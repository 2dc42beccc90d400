#include "agent/attach/sigbus_guard.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace ringside::agent {
namespace {

struct Guard {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    Guard* outer = nullptr;
    sigjmp_buf jump;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no other way to its thread's guard
thread_local Guard* current_guard = nullptr;
struct sigaction previous_action;

void on_sigbus(int signal, siginfo_t* info, void* context) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (Guard* guard = current_guard; guard != nullptr; guard = guard->outer) {
        if (address >= guard->first && address < guard->last) {
            current_guard = guard->outer;
            siglongjmp(guard->jump, 1);
        }
    }
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
        previous_action.sa_sigaction(signal, info, context);
        return;
    }
    // Not ours: with the old disposition back, the faulting instruction runs again and does what it would have done without us.
    sigaction(SIGBUS, &previous_action, nullptr);
}

void install() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_sigbus;
        // NODEFER: we leave the handler by a jump that restores no mask (saving it would cost a system call at each guard).
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
        sigaction(SIGBUS, &action, &previous_action);
    });
}

}  // namespace

bool run_guarded(const void* base, std::size_t bytes, void (*work)(void*), void* context) {
    install();
    Guard guard;
    guard.first = reinterpret_cast<std::uintptr_t>(base);
    guard.last = guard.first + bytes;
    guard.outer = current_guard;
    if (sigsetjmp(guard.jump, 0) != 0) return false;
    current_guard = &guard;
    work(context);
    current_guard = guard.outer;
    return true;
}

}  // namespace ringside::agent
