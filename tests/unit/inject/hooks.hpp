// What a source's hook does, in as few words as a test of it needs. Used inside children (sandbox.hpp).
#pragma once

#include <cstdint>

#include "inject/core/lanes.hpp"
#include "inject/core/process.hpp"
#include "sandbox.hpp"

namespace ringside::test {

/// Runs `body` as a hook would.
template <class Body>
void in_hook(Body body) {
    inject::HookScope hook;
    EXPECT(static_cast<bool>(hook));
    body(hook.lane());
}

inline void mark(std::uint64_t value) {
    in_hook([&](inject::ThreadLane& lane) {
        lane.mark(schema::SourceId::kApi, 3, lane.intern_cached("mark"), value, 0);
    });
}

inline inject::Context serving(std::uint64_t key) {
    return {key, {11, 22}, {33}};
}

inline schema::LaneState state_of(const SegmentView& view, std::uint32_t lane) {
    return schema::lane_state(view.lane(lane).state.load());
}

}  // namespace ringside::test
