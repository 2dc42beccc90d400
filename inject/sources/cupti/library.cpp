#include "inject/sources/cupti/library.hpp"

namespace ringside::inject::cupti {
namespace {

struct Candidate {
    const char* file;
    std::int32_t driver;  ///< the oldest that it works with, as cuDriverGetVersion() says it
};
constexpr Candidate kCandidates[] = {{"libcupti.so.13", 13000},
                                     {"libcupti.so.12", 12000},
                                     {"libcupti.so.11.8", 11000},
                                     {"libcupti.so.11.7", 11000}};
/// Where a toolkit has it that the loader's own search does not know of.
constexpr char kToolkit[] = "/usr/local/cuda/extras/CUPTI/lib64/";

Cupti g_cupti;

template <class Signature>
bool look_up(const Shim& shim, void* library, Function<Signature>& function) {
    function.call = reinterpret_cast<decltype(function.call)>(shim.look_up(library, function.name));
    return function.call != nullptr;
}

/// @return the name of a function that is missing and must not be; null: there is none
const char* look_up_all(const Shim& shim, void* library, Cupti& cupti) {
    const char* missing = nullptr;
    const auto require = [&](auto&... functions) {
        (void)((look_up(shim, library, functions) || (missing = functions.name, false)) && ...);
    };
    const auto want = [&](auto&... functions) {
        (static_cast<void>(look_up(shim, library, functions)), ...);
    };
    require(cupti.get_version, cupti.subscribe, cupti.unsubscribe, cupti.register_timestamps,
            cupti.register_callbacks, cupti.set_thread_id_type, cupti.enable, cupti.disable,
            cupti.flush_all, cupti.next_record, cupti.dropped, cupti.callback_name);
    want(cupti.event_timestamps, cupti.subscribe2, cupti.set_attribute2, cupti.register_callbacks2,
         cupti.enable2, cupti.disable2, cupti.next_record2, cupti.dropped2);
    return missing;
}

std::int32_t driver_version(const Shim& shim, void* driver) {
    Function<Result(std::int32_t*)> get_version{"cuDriverGetVersion"};
    std::int32_t version = 0;
    if (!look_up(shim, driver, get_version) || get_version(&version) != kSuccess) return 0;
    return version;
}

/// The one that the process has; else the newest that goes with its driver.
void* open_library(const Shim& shim, void* driver, const char*& file) {
    for (const Candidate& candidate : kCandidates) {
        void* library = shim.open(candidate.file, true);
        if (library == nullptr) continue;
        file = candidate.file;
        return library;
    }
    const std::int32_t version = driver_version(shim, driver);
    for (const Candidate& candidate : kCandidates) {
        if (version < candidate.driver) continue;
        void* library = shim.open(candidate.file, false);
        if (library == nullptr) {
            FixedText<128> path;
            path.append(kToolkit).append(candidate.file);
            library = shim.open(path.c_str(), false);
        }
        if (library == nullptr) continue;
        file = candidate.file;
        return library;
    }
    return nullptr;
}

}  // namespace

void* find_driver(const Shim& shim) {
    return shim.open("libcuda.so.1", true);
}

const Cupti* find_cupti(const Shim& shim, Reason& why) {
    if (g_cupti.version != 0) return &g_cupti;
    void* driver = find_driver(shim);
    if (driver == nullptr) {
        why.append("no libcuda.so.1 in the process");
        return nullptr;
    }
    void* library = open_library(shim, driver, g_cupti.file);
    if (library == nullptr) {
        why.append("no libcupti.so in the process or where the loader looks");
        return nullptr;
    }
    if (const char* missing = look_up_all(shim, library, g_cupti)) {
        why.append(g_cupti.file).append(" has no ").append(missing);
        return nullptr;
    }
    std::uint32_t version = 0;
    const Result result = g_cupti.get_version(&version);
    if (result != kSuccess || version == 0) {
        why.append(g_cupti.file).append(": cuptiGetVersion failed: ");
        why.append_number(static_cast<std::uint32_t>(result));
        return nullptr;
    }
    g_cupti.version = version;
    return &g_cupti;
}

}  // namespace ringside::inject::cupti
