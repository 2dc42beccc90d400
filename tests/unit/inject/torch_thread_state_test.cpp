// A thread's own callbacks: the layout is relied on only where each of the trials shows it, and a call is left out only where it changes nothing.
#include <doctest/doctest.h>

#include "inject/sources/torch/thread_state.hpp"

namespace {

using namespace ringside::inject::torch;

/// What torch's functions act on here, and how they may differ from what we know.
struct Torch {
    ThreadCallbacks state{nullptr, nullptr, nullptr, 1};
    char entries[64]{};
    bool switch_elsewhere = false;
    bool vector_elsewhere = false;
    bool remove_forgets = false;
    std::uint64_t removed = 0;
};
Torch g_torch;

constexpr std::uint64_t kHandle = 41;

ThreadStateApi api() {
    return {
        []() -> const ThreadCallbacks* { return &g_torch.state; },
        [](bool on) {
            if (!g_torch.switch_elsewhere) g_torch.state.enabled = on ? 1 : 0;
        },
        [](RecordFunctionCallback) -> std::uint64_t {
            if (!g_torch.vector_elsewhere)
                g_torch.state = {g_torch.entries, g_torch.entries + 48, g_torch.entries + 64, 1};
            return kHandle;
        },
        [](std::uint64_t handle) {
            g_torch.removed = handle;
            if (!g_torch.remove_forgets) g_torch.state.end = g_torch.state.begin;
        },
    };
}

bool known(const Torch& torch) {
    g_torch = torch;
    return thread_state_is_known(api(), RecordFunctionCallback{});
}

TEST_CASE("thread state: the layout that we know is recognised, and left as it was") {
    CHECK(known({}));
    CHECK(g_torch.state.empty());
    CHECK(g_torch.state.enabled == 1);
    CHECK(g_torch.removed == kHandle);
}

TEST_CASE("thread state: a layout that differs in anything that is relied on is not used") {
    Torch torch;
    torch.switch_elsewhere = true;
    CHECK_FALSE(known(torch));
    torch = {};
    torch.vector_elsewhere = true;
    CHECK_FALSE(known(torch));
    torch = {};
    torch.remove_forgets = true;
    CHECK_FALSE(known(torch));
    torch = {};
    torch.state.enabled = 0;
    CHECK_FALSE(known(torch));
    torch = {};
    torch.state.end = torch.entries + 8;
    CHECK_FALSE(known(torch));
}

TEST_CASE("thread state: without one of torch's functions it is not known") {
    g_torch = {};
    ThreadStateApi missing = api();
    missing.current = nullptr;
    CHECK_FALSE(thread_state_is_known(missing, {}));
    missing = api();
    missing.enable = nullptr;
    CHECK_FALSE(thread_state_is_known(missing, {}));
    missing = api();
    missing.add_callback = nullptr;
    CHECK_FALSE(thread_state_is_known(missing, {}));
    missing = api();
    missing.remove_callback = nullptr;
    CHECK_FALSE(thread_state_is_known(missing, {}));
    CHECK(g_torch.removed == 0);
}

TEST_CASE("thread state: callbacks on either side, or another switch, are a change") {
    const char entries[8]{};
    const ThreadCallbacks none{nullptr, nullptr, nullptr, 1};
    const ThreadCallbacks had_some{entries, entries, entries + 8, 1};
    const ThreadCallbacks some{entries, entries + 8, entries + 8, 1};
    const ThreadCallbacks off{nullptr, nullptr, nullptr, 0};
    CHECK(is_no_change(none, none));
    CHECK(is_no_change(none, had_some));
    CHECK(is_no_change(off, off));
    CHECK_FALSE(is_no_change(none, some));
    CHECK_FALSE(is_no_change(some, none));
    CHECK_FALSE(is_no_change(some, some));
    CHECK_FALSE(is_no_change(none, off));
    CHECK_FALSE(is_no_change(off, none));
}

}  // namespace
