// The arrows of a time line: a request and its reply, forward to backward, a call of CUDA to what it launched. Each has a number of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

/// A point on a row, in a slice.
struct Tip {
    std::uint32_t track;
    std::int64_t ns;
    std::int64_t begin_ns;  ///< of the slice
    std::int64_t end_ns;
};

struct Arrow {
    const char* category;
    std::uint64_t id;
    Tip from;
    Tip to;
};

/// Readers drop an arrow that points back in time, which clocks of two nodes can make of any arrow. Within the bound it is drawn a little
/// later or earlier inside its slices; beyond that (uncorrected clocks) from the later to the earlier.
Arrow drawn_forward(Arrow arrow);

/// A number of an arrow at a range.
struct Tied {
    model::Index lane;
    model::Index range;
    std::uint64_t arrow;
    auto operator<=>(const Tied&) const = default;
};

class Arrows {
public:
    Arrows(const model::Job& job, const Tracks& tracks, const std::vector<bool>& drawn);

    /// All but those of launches.
    const std::vector<Arrow>& all() const { return arrows_; }
    std::uint64_t requests() const { return requests_; }
    std::uint64_t replies() const { return replies_; }
    std::uint64_t backwards() const { return ties_.size() / 2; }

    /// Numbers at a half's begin and end; 0: none.
    std::uint64_t request_of(model::Index half) const { return half_requests_[half]; }
    std::uint64_t reply_of(model::Index half) const { return half_replies_[half]; }
    std::span<const Tied> of_range(model::Index lane, model::Index range) const;
    /// The work that a call asked for.
    std::span<const model::Index> work_of(model::Index call) const;
    /// The number of the arrow to a piece of work: those of launches are made as they are written.
    static std::uint64_t launch(model::Index work) { return kLaunches + work; }

private:
    void add_calls(const model::Job& job, const Tracks& tracks, const std::vector<bool>& drawn);
    void add_backwards(const model::Job& job, const Tracks& tracks, const std::vector<bool>& drawn);
    void add_launches(const model::Job& job);
    std::uint64_t add(const char* category, const Tip& from, const Tip& to);

    static constexpr std::uint64_t kLaunches = std::uint64_t{1} << 33;

    std::vector<Arrow> arrows_;
    std::vector<std::uint64_t> half_requests_;
    std::vector<std::uint64_t> half_replies_;
    std::vector<Tied> ties_;
    std::vector<std::size_t> work_first_;
    std::vector<model::Index> work_;
    std::uint64_t requests_ = 0;
    std::uint64_t replies_ = 0;
};

}  // namespace ringside::viewer_export::trace
