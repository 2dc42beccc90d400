// The part of the source that every traced process has: the entry that the driver calls, and the way to the plugin.
#include "inject/sources/cupti/cupti_source.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "inject/core/capture.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/injection.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/start_data.hpp"
#include "inject/sources/cupti/plugin.hpp"

namespace ringside::inject {
namespace cupti {
namespace {

using schema::SourceLevel;

/// The process whose driver has called us; 0: none has. CUDA does not live through a fork: a child of it is another process.
RINGSIDE_START_DATA constinit std::atomic<pid_t> g_entered{0};
bool g_chain_failed = false;

// --- what the plugin gets ---

ThreadLane& lane_of(LaneHandle* handle) {
    return *reinterpret_cast<ThreadLane*>(handle);
}

std::uint64_t ticks_now() {
    return now().value;
}

bool with_lane(std::uint32_t word, void (*body)(LaneHandle*, void*), void* argument) {
    const HookScope hook(HookScope::Under{word});
    if (!hook) return false;
    body(reinterpret_cast<LaneHandle*>(&hook.lane()), argument);
    return true;
}

std::uint32_t intern(LaneHandle* lane, const char* text) {
    return lane_of(lane).intern_cached(text).value;
}

void put(LaneHandle* lane, const void* record, std::uint32_t cells, std::uint64_t ticks) {
    lane_of(lane).put_whole(record, cells, {ticks});
}

void count_lost(std::uint64_t records) {
    count_loss(schema::Loss::kGpuDropped, records);
}

void* open(const char* file, bool only_if_loaded) {
    return dlopen(file, RTLD_NOW | (only_if_loaded ? RTLD_NOLOAD : RTLD_LOCAL));
}

void* look_up(void* library, const char* name) {
    return real_dlsym()(library, name);
}

constexpr Shim kShim{open, look_up, ticks_now, with_lane, intern, put, count_lost};

/// @param failure  why there is none
const Plugin* load_plugin(FixedText<schema::kReasonBytes>& failure) {
    static const Plugin* plugin = nullptr;
    if (plugin != nullptr) return plugin;
    FixedText<PATH_MAX> path;
    char directory[PATH_MAX];
    if (own_directory(directory, sizeof directory)) path.append(directory).append(kPluginFile);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
        failure.append(kPluginFile).append(" beside the preload can't be loaded");
        return nullptr;
    }
    const auto entry = reinterpret_cast<PluginEntry>(look_up(library, kPluginEntry));
    if (entry != nullptr) plugin = entry(kPluginVersion, &kShim);
    if (plugin == nullptr) failure.append(kPluginFile).append(" is of another version");
    return plugin;
}

/// Set with the first attach that found the plugin.
const Plugin* g_plugin = nullptr;

void publish(const State& state) {
    const bool silent = state.reason[0] == 0;
    set_level(schema::SourceId::kCupti, state.level,
              silent && g_chain_failed
                  ? "the tool that CUDA_INJECTION64_PATH named before us can't be loaded"
                  : state.reason);
}

bool present() {
    const pid_t entered = g_entered.load(std::memory_order_relaxed);
    return entered != 0 && entered == getpid();
}

/// Nothing: an idle process has neither the plugin nor CUPTI in it.
void prepare() {}

void attach(const AttachRequest& request) {
    if (!present()) return;
    FixedText<schema::kReasonBytes> failure;
    g_plugin = load_plugin(failure);
    if (g_plugin == nullptr) {
        set_level(schema::SourceId::kCupti, SourceLevel::kNotInstrumented, failure.c_str());
        return;
    }
    publish(g_plugin->attach(request.word));
}

void detach() {
    if (g_plugin != nullptr && present()) g_plugin->detach();
}

void turn() {
    State state;
    if (g_plugin != nullptr && present() && g_plugin->turn(&state)) publish(state);
}

/// The tool that was named before us, as the driver would have called it.
void start_next_tool() {
    void* tool = load_next_tool(kCudaInjection, &g_chain_failed);
    if (tool == nullptr) return;
    const auto entry = reinterpret_cast<int (*)()>(look_up(tool, "InitializeInjection"));
    if (entry != nullptr) entry();
    g_chain_failed = entry == nullptr;
}

}  // namespace

/// The driver's, inside the program's first cuInit().
void enter() {
    if (g_entered.exchange(getpid(), std::memory_order_relaxed) == getpid()) return;
    start_next_tool();
    if (!announce_source(schema::SourceId::kCupti, SourceLevel::kOff, "")) return;
    ensure_helper_thread();
    // A capture that is on has all from the first kernel; else this only tells that the driver is there.
    catch_up(Place::kFrameworkCall);
}

}  // namespace cupti

const Source kCuptiSource = {
    schema::SourceId::kCupti,
    "cupti",
    cupti::present,
    cupti::prepare,
    cupti::attach,
    cupti::detach,
    cupti::turn,
    true,
};

}  // namespace ringside::inject

// NOLINTNEXTLINE(readability-identifier-naming): CUDA's driver looks for this name in the library that CUDA_INJECTION64_PATH names
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    const int saved_errno = errno;
    ringside::inject::cupti::enter();
    errno = saved_errno;
    return 1;
}
