// Between the shim and libringside_cupti.so, which lies beside it and is loaded when a capture first wants the GPU's records: what each gives the
// other. Both are built from one tree; a version tells where an installation has mixed two.
#pragma once

#include <cstdint>

#include "schema/segment.hpp"

namespace ringside::inject::cupti {

inline constexpr std::uint32_t kPluginVersion = 1;
inline constexpr char kPluginFile[] = "libringside_cupti.so";
inline constexpr char kPluginEntry[] = "ringside_cupti_plugin";

/// A thread's lane, while with_lane() runs.
struct LaneHandle;

/// What the shim gives. All of it thread-safe.
struct Shim {
    /// The loader's, which the oldest C library has elsewhere. @return a handle; null: not there
    void* (*open)(const char* file, bool only_if_loaded);
    void* (*look_up)(void* library, const char* name);
    /// Ticks of the segment's clock.
    std::uint64_t (*now)();
    /// Calls `body` with the calling thread's lane, for records of the capture that this word began, whether it has ended or not.
    /// @return false: there is no lane, nothing was called
    bool (*with_lane)(std::uint32_t word, void (*body)(LaneHandle* lane, void* argument),
                      void* argument);
    /// @return a NameId, for the next record of this lane; schema::kInlineName must not be kept
    std::uint32_t (*intern)(LaneHandle* lane, const char* text);
    /// Writes a record of `cells` cells; what finds no room is counted.
    void (*put)(LaneHandle* lane, const void* record, std::uint32_t cells, std::uint64_t ticks);
    /// Records that no lane will see.
    void (*count_lost)(std::uint64_t records);
};

/// What was reached. The reason is empty where there is nothing to say.
struct State {
    schema::SourceLevel level = schema::SourceLevel::kOff;
    char reason[schema::kReasonBytes] = {};
};

/// What the plugin gives. One caller at a time.
struct Plugin {
    /// Starts recording, or goes on under another word where it does already.
    State (*attach)(std::uint32_t word);
    /// Has CUPTI hand over what is done. @return whether `state` has changed
    bool (*turn)(State* state);
    /// Stops recording; all that is done by then has been written when it returns.
    void (*detach)();
};
/// @return null: of another version
using PluginEntry = const Plugin* (*)(std::uint32_t version, const Shim* shim);

}  // namespace ringside::inject::cupti
