// The way in: ITT's static part, linked into each library that uses it, loads the library that INTEL_LIBITTNOTIFY64 names and calls this
// entry with the list of its functions; once for each copy in the process.
#include <dlfcn.h>
#include <errno.h>

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/injection.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/itt/calls.hpp"
#include "inject/sources/itt/objects.hpp"

namespace ringside::inject::itt {
namespace {

/// Of the static part: later ones may keep other lists.
constexpr unsigned long kVersion = 3;

using Initialise = void (*)(Global*, int groups);

/// The collector that was named before us. Old ones have no entry point: their functions are looked up by name.
struct NextCollector {
    void* library = nullptr;
    Initialise initialise = nullptr;
    bool failed = false;

    NextCollector() {
        library = load_next_tool(kIttInjection, &failed);
        if (library != nullptr)
            initialise = reinterpret_cast<Initialise>(dlsym(library, "__itt_api_init"));
    }
    /// It looks its functions up in the library that the copy has loaded, and is closed through it: from here on that is the collector.
    void start(Global& global, int groups) const {
        global.library = library;
        if (initialise != nullptr) return initialise(&global, groups);
        for (Api* api = global.apis; api->name != nullptr; ++api) {
            auto* function = reinterpret_cast<AnyFunction>(dlsym(library, api->name));
            *api->place = function != nullptr ? function : api->nothing;
        }
    }
};

const Call* call_named(const char* name) {
    for (const Call* call = calls_begin(); call != calls_end(); ++call) {
        const std::size_t length = std::strlen(call->name);
        // On some systems the narrow ones are called createA and set_nameA.
        if (std::strncmp(call->name, name, length) == 0 &&
            (name[length] == 0 || std::strcmp(name + length, "A") == 0))
            return call;
    }
    return nullptr;
}

/// Takes one function's place.
/// @param chained  another collector has been started: what stands there now and is neither "nothing" nor ITT's own start-up is its
void take(Api& api, bool chained) {
    const Call* call = call_named(api.name);
    const AnyFunction present = *api.place;
    const bool theirs = chained && present != nullptr && present != api.nothing &&
                        present != api.start_up && (call == nullptr || present != call->function);
    if (theirs) {
        if (call == nullptr || call->beside != Beside::kForward) return;
        if (!remember_next(static_cast<std::uint32_t>(call - calls_begin()), present)) return;
    }
    // What nobody wants must not stay at the start-up function: it would come here again and again.
    const bool ours = call != nullptr && !(chained && call->beside == Beside::kTheirs);
    *api.place = ours ? call->function : api.nothing;
}

void initialise(Global* global, int groups) {
    if (global == nullptr || global->apis == nullptr) return;
    const NextCollector next;
    const bool chained = next.library != nullptr;
    if (chained) next.start(*global, groups);
    const bool traced = announce_source(
        SourceId::kItt, schema::SourceLevel::kFull,
        next.failed ? "the tool that INTEL_LIBITTNOTIFY64 named before us can't be loaded" : "");
    if (traced && global->version[0] == kVersion) adopt(*global);
    for (Api* api = global->apis; api->name != nullptr; ++api) {
        if (api->place == nullptr) continue;
        if (traced) {
            take(*api, chained);
        } else if (!chained) {
            *api->place = api->nothing;
        }
    }
}

}  // namespace
}  // namespace ringside::inject::itt

// NOLINTNEXTLINE(readability-identifier-naming): ittnotify looks for this name
extern "C" __attribute__((visibility("default"))) void __itt_api_init(
    ringside::inject::itt::Global* global, int groups) {
    const int saved_errno = errno;
    ringside::inject::itt::initialise(global, groups);
    errno = saved_errno;
}
