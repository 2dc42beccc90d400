// What a time line tells of collectives, at the ranges that are parts of one: which one, how late it came, who came last; and arrows from the last arrival
// to the ends of those that waited for it, where it is known who that is.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viewer_export/model/collectives.hpp"
#include "viewer_export/out/trace_arrows.hpp"

namespace ringside::viewer_export::trace {

class TraceCollectives {
public:
    /// @param first_arrow  the number of the first of its arrows
    TraceCollectives(const model::Job& job, const std::vector<bool>& drawn,
                     std::uint64_t first_arrow);

    /// @return in the joined ones' arrivals; kNone: it is part of none
    model::Index of_range(model::Index lane, model::Index range) const;
    model::Index of_async(model::Index async) const {
        return async < asyncs_.size() ? asyncs_[async] : model::kNone;
    }
    const model::Arrival& arrival(model::Index index) const { return all_.arrivals[index]; }
    const model::Collective& collective(model::Index arrival) const {
        return all_.all[collective_[arrival]];
    }
    /// "world:12".
    std::string id(model::Index arrival) const;
    std::int64_t late_ns(model::Index arrival) const;
    /// "rank 2", "undetermined"; "" where somebody is missing.
    std::string last(model::Index arrival) const;
    /// Calls `to` with each arrow that is told at an arrival's slice.
    template <class To>
    void flows(model::Index index, To&& to) const {
        const model::Collective& of = collective(index);
        const model::Index last = of.first + of.count - 1;
        if (index != last) {
            if (const auto flow = arriving(index, last)) to(*flow);
            return;
        }
        for (model::Index each = of.first; each != last; ++each) {
            if (auto flow = arriving(each, last)) {
                flow->ns = all_.arrivals[last].begin_ns;
                flow->leaves = true;
                flow->at_end = false;
                to(*flow);
            }
        }
    }

private:
    std::optional<Flow> arriving(model::Index at, model::Index last) const;

    const model::Job& job_;
    const std::vector<bool>& drawn_;
    std::uint64_t first_arrow_;
    model::Collectives all_;
    std::vector<model::Index> collective_;  ///< by arrival
    std::vector<model::Index> asyncs_;      ///< by Job::asyncs: the arrival; empty: none is a part
    std::vector<std::vector<std::pair<model::Index, model::Index>>> ranges_;  ///< by lane, sorted
};

}  // namespace ringside::viewer_export::trace
