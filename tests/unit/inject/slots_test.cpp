#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "inject/core/process.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/slots.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::SlotHook;
using inject::SlotSet;
using test::Sandbox;

namespace {

using Function = int (*)(int);

void* g_originals[6];

template <int kHook>
int wrapper(int x) {
    return 100 + reinterpret_cast<Function>(g_originals[kHook])(x);
}

SlotHook g_hooks[] = {
    {"rs_called", reinterpret_cast<void*>(wrapper<0>), &g_originals[0], 0},
    {"rs_pointed_at", reinterpret_cast<void*>(wrapper<1>), &g_originals[1], 0},
    {"rs_in_table", reinterpret_cast<void*>(wrapper<2>), &g_originals[2], 0},
    {"rs_lazy", reinterpret_cast<void*>(wrapper<3>), &g_originals[3], 0},
    {"rs_nobody_defines", reinterpret_cast<void*>(wrapper<4>), &g_originals[4], 0},
};
SlotSet g_set = {{"librs_test_provider"}, {"librs_test_"}, g_hooks, 5};

class Library {
public:
    explicit Library(const char* variable, int flags = RTLD_LAZY | RTLD_LOCAL)
        : handle_(dlopen(getenv(variable), flags)) {
        EXPECT(handle_ != nullptr);
    }
    int call(const char* function, int x) const {
        return reinterpret_cast<Function>(dlsym(handle_, function))(x);
    }
    void close() {
        EXPECT(dlclose(handle_) == 0);
        handle_ = nullptr;
    }

private:
    void* handle_;
};

void expect_all(const Library& library, int extra) {
    EXPECT(library.call("call_called", 0) == 1 + extra);
    EXPECT(library.call("call_pointed_at", 0) == 2 + extra);
    EXPECT(library.call("call_in_table", 0) == 3 + extra);
    EXPECT(library.call("call_lazy", 0) == 4 + extra);
    EXPECT(library.call("call_other", 0) == 5);
    EXPECT(library.call("weak_is_there", 0) == 0);
}

}  // namespace

TEST_CASE("slots: all kinds are found, hooked and put back, others are left alone") {
    for (const char* variable : {"RINGSIDE_TEST_CALLER", "RINGSIDE_TEST_EAGER"}) {
        CAPTURE(variable);
        Sandbox().run([&] {
            const Library library(variable);
            EXPECT(inject::scan_slots(g_set) == 4);
            for (int i = 0; i < 4; ++i) EXPECT(g_hooks[i].slots == 1);
            EXPECT(g_hooks[4].slots == 0);
            inject::write_slots(g_set, true);
            expect_all(library, 100);
            inject::write_slots(g_set, true);
            expect_all(library, 100);
            inject::write_slots(g_set, false);
            expect_all(library, 0);
        });
    }
}

TEST_CASE("slots: finding them changes nothing") {
    Sandbox().run([] {
        const Library library("RINGSIDE_TEST_CALLER");
        EXPECT(inject::scan_slots(g_set) == 4);
        expect_all(library, 0);
        EXPECT(inject::scan_slots(g_set) == 4);
    });
}

TEST_CASE("slots: a lazy slot that was never called gets the function that the loader would bind") {
    Sandbox().run([] {
        const Library library("RINGSIDE_TEST_CALLER");
        inject::scan_slots(g_set);
        void* expected = dlsym(RTLD_DEFAULT, "rs_lazy");
        EXPECT(expected == nullptr);  // loaded RTLD_LOCAL: only the scope of the library has it
        EXPECT(g_originals[3] == inject::find_symbol(g_set, "rs_lazy"));
        inject::write_slots(g_set, true);
        EXPECT(library.call("call_lazy", 0) == 104);
        inject::write_slots(g_set, false);
        EXPECT(library.call("call_lazy", 0) == 4);
    });
}

TEST_CASE("slots: objects loaded later are found by the next scan, those that are gone forgotten") {
    Sandbox().run([] {
        Library first("RINGSIDE_TEST_CALLER");
        EXPECT(inject::scan_slots(g_set) == 4);
        inject::write_slots(g_set, true);
        const Library second("RINGSIDE_TEST_EAGER");
        EXPECT(second.call("call_called", 0) == 1);
        EXPECT(inject::scan_slots(g_set) == 8);
        inject::write_slots(g_set, true);
        expect_all(second, 100);
        first.close();
        EXPECT(inject::scan_slots(g_set) == 4);
        expect_all(second, 100);
        inject::write_slots(g_set, false);
        expect_all(second, 0);
    });
}

TEST_CASE("slots: when the provider itself is gone its originals are, and a new one is found") {
    Sandbox().run([] {
        {
            Library library("RINGSIDE_TEST_CALLER");
            inject::scan_slots(g_set);
            EXPECT(g_originals[0] != nullptr);
            library.close();
        }
        EXPECT(!inject::object_loaded("librs_test_provider"));
        EXPECT(inject::scan_slots(g_set) == 0);
        EXPECT(g_originals[0] == nullptr);
        EXPECT(inject::find_symbol(g_set, "rs_called") == nullptr);
        const Library again("RINGSIDE_TEST_CALLER");
        EXPECT(inject::scan_slots(g_set) == 4);
        inject::write_slots(g_set, true);
        expect_all(again, 100);
    });
}

TEST_CASE("slots: two sets don't disturb each other") {
    Sandbox().run([] {
        static void* original = nullptr;
        static SlotHook hook[] = {
            {"rs_other", reinterpret_cast<void*>(wrapper<5>), &g_originals[5], 0}};
        static SlotSet other = {{"librs_test_provider"}, {nullptr}, hook, 1};
        (void)original;
        const Library library("RINGSIDE_TEST_CALLER");
        EXPECT(inject::scan_slots(other) == 1);
        EXPECT(inject::scan_slots(g_set) == 4);
        inject::write_slots(other, true);
        EXPECT(library.call("call_other", 0) == 105);
        EXPECT(library.call("call_called", 0) == 1);
        inject::write_slots(g_set, true);
        inject::write_slots(other, false);
        expect_all(library, 100);
    });
}

TEST_CASE("slots: one that another tool has taken since stays the tool's, and is counted") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(box.load());
        static void* tool_original = nullptr;
        static SlotHook tool_hook[] = {{"rs_called",
                                        reinterpret_cast<void*>(+[](int x) { return 1000 + x; }),
                                        &tool_original, 0}};
        static SlotSet tool = {{"librs_test_provider"}, {nullptr}, tool_hook, 1};
        const Library library("RINGSIDE_TEST_EAGER");
        inject::scan_slots(g_set);
        // The table knows each slot once: the tool's copy of the core is played by a store of its own.
        EXPECT(inject::scan_slots(tool) == 0);
        inject::write_slots(g_set, true);
        inject::write_slots(g_set, false);
        EXPECT(library.call("call_called", 0) == 1);
    });
}

TEST_CASE("slots: writing them under callers and under dlopen never loses a call") {
    Sandbox().run([] {
        const Library library("RINGSIDE_TEST_EAGER");
        inject::scan_slots(g_set);
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> calls{0};
        std::thread caller([&] {
            while (!stop.load()) {
                const int result = library.call("call_in_table", 0);
                EXPECT(result == 3 || result == 103);
                calls.fetch_add(1);
            }
        });
        std::thread loader([&] {
            while (!stop.load()) Library("RINGSIDE_TEST_CALLER").close();
        });
        for (int i = 0; i < 300; ++i) {
            inject::scan_slots(g_set);
            inject::write_slots(g_set, i % 2 == 0);
        }
        const std::uint64_t before = calls.load();
        EXPECT(test::eventually([&] { return calls.load() > before; }));
        stop.store(true);
        caller.join();
        loader.join();
    });
}

TEST_CASE("slots: a symbol is looked up in the providers alone") {
    Sandbox().run([] {
        EXPECT(inject::find_symbol(g_set, "rs_called") == nullptr);
        const Library library("RINGSIDE_TEST_CALLER");
        const auto called = reinterpret_cast<Function>(inject::find_symbol(g_set, "rs_called"));
        EXPECT(called != nullptr);
        EXPECT(called(1) == 2);
        EXPECT(inject::find_symbol(g_set, "call_called") == nullptr);
        EXPECT(inject::find_symbol(g_set, "printf") == nullptr);
        EXPECT(inject::object_loaded("librs_test_caller"));
        EXPECT(!inject::object_loaded("librs_test_eager"));
    });
}

TEST_CASE("loader's lock: it is held while the work runs, and nests") {
    Sandbox().run([] {
        int runs = 0;
        EXPECT(inject::with_loader_lock(
            [](void* outer) {
                // dlopen() in another thread has to wait until we are done.
                std::atomic<bool> loaded{false};
                std::thread other([&] {
                    Library("RINGSIDE_TEST_CALLER").close();
                    loaded.store(true);
                });
                EXPECT(inject::with_loader_lock([](void* inner) { ++*static_cast<int*>(inner); },
                                                outer));
                for (int i = 0; i < 1000; ++i) {
                    sched_yield();
                    EXPECT(!loaded.load());
                }
                other.detach();
                ++*static_cast<int*>(outer);
            },
            &runs));
        EXPECT(runs == 2);
    });
}
