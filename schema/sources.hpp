// The sources that there are: those of ids.hpp, and those that came after it.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "schema/ids.hpp"

namespace ringside::schema {

inline constexpr SourceId kNccl{8};

/// Details of NCCL's ranges, which are what the host calls; as MPI's (record.hpp).
inline constexpr std::uint8_t kNcclCall = 0;
inline constexpr std::uint8_t kNcclCollective = 1;

inline constexpr auto kSources = [] {
    std::array<SourceId, std::size(kKnownSources) + 1> all{};
    std::copy(std::begin(kKnownSources), std::end(kKnownSources), all.begin());
    all.back() = kNccl;
    return all;
}();

/// Whether nobody waits for it to attach (acts_alone()).
constexpr bool needs_nobody(SourceId source) {
    return source == kNccl || acts_alone(source);
}

}  // namespace ringside::schema
