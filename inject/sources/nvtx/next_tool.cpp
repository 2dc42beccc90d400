#include "inject/sources/nvtx/next_tool.hpp"

#include <dlfcn.h>

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/injection.hpp"

namespace ringside::inject::nvtx {

namespace {

using Initialise = int (*)(GetExportTable);

constexpr std::uint32_t kModules = 2;

constinit std::atomic<bool> g_looked{false};
constinit std::atomic<bool> g_failed{false};
constinit std::atomic<Initialise> g_initialise{nullptr};
constinit std::atomic<AnyFunction> g_functions[kModules][kPlaces]{};

std::atomic<AnyFunction>& place(std::uint32_t module, std::uint32_t index) {
    return g_functions[module == kCoreModule ? 0 : 1][index % kPlaces];
}

void look_for_tool() {
    bool failed = false;
    void* tool = load_next_tool(kNvtxInjection, &failed);
    if (tool != nullptr) {
        auto* entry = reinterpret_cast<Initialise>(dlsym(tool, "InitializeInjectionNvtx2"));
        failed = entry == nullptr;
        g_initialise.store(entry, std::memory_order_relaxed);
    }
    g_failed.store(failed, std::memory_order_relaxed);
    g_looked.store(true, std::memory_order_release);
}

}  // namespace

bool start_next_tool(GetExportTable get_table, bool* failed) {
    // Two copies of NVTX may start at once: the loader gives both the same tool.
    if (!g_looked.load(std::memory_order_acquire)) look_for_tool();
    *failed = g_failed.load(std::memory_order_relaxed);
    const Initialise initialise = g_initialise.load(std::memory_order_relaxed);
    return initialise != nullptr && initialise(get_table) != 0;
}

bool remember_next(std::uint32_t module, std::uint32_t index, AnyFunction function) {
    AnyFunction known = nullptr;
    if (place(module, index).compare_exchange_strong(known, function, std::memory_order_relaxed) ||
        known == function)
        return true;
    count_loss(schema::Loss::kHookOtherTarget);
    return false;
}

AnyFunction next_function(std::uint32_t module, std::uint32_t index) {
    return place(module, index).load(std::memory_order_relaxed);
}

NextAttributes::NextAttributes(const EventAttributes* from) : use_(from) {
    if (from == nullptr || from->message_type != kMessageRegistered || from->message == nullptr)
        return;
    // What a later version has behind these fields stays behind: it may hold handles that nobody here can translate.
    const std::size_t bytes = from->size < sizeof copy_ ? from->size : sizeof copy_;
    copy_ = {};
    std::memcpy(&copy_, from, bytes);
    copy_.size = static_cast<std::uint16_t>(bytes);
    copy_.message = static_cast<const RegisteredString*>(from->message)
                        ->next_tools.load(std::memory_order_relaxed);
    use_ = &copy_;
}

}  // namespace ringside::inject::nvtx
