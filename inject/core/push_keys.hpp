// The keys of ranges that a program pushes and pops, as a thread keeps them (push_depth.hpp makes them).
#pragma once

#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::inject {

/// The key of each counter's innermost range: its depth in the low bits, 0 where none is open. A counter for each source's ranges without a
/// domain, and one for each domain of the process, as they come. Domains beyond those share a few: their ranges are then told apart only
/// where they nest.
struct PushKeys {
    static constexpr std::uint32_t kOwn = 72;
    static constexpr std::uint32_t kShared = 8;
    static constexpr std::uint32_t kCounters = schema::kSourceCount + kOwn + kShared;
    /// No address of user space: those are the keys of other sources.
    static constexpr std::uint64_t kTag = 0x5055ull << 48;
    static constexpr std::uint64_t kDepthBits = 32;

    std::uint64_t innermost[kCounters] = {};

    /// Nothing is open.
    void start() {
        for (std::uint64_t counter = 0; counter < kCounters; ++counter)
            innermost[counter] = kTag | counter << kDepthBits;
    }
    bool is_open(std::uint32_t counter) const {
        return static_cast<std::uint32_t>(innermost[counter]) != 0;
    }
    /// The counter of a source's ranges without a domain.
    static constexpr std::uint32_t no_domain(schema::SourceId source) {
        return static_cast<std::uint32_t>(source);
    }
};

}  // namespace ringside::inject
