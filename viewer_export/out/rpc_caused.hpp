// What ran while the calls of one tree were served, on every node: each event with its call, by the context of its thread at its begin. What ran where that
// is unknown is counted, and given to nobody.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "viewer_export/model/cuda_time.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/out/rpc_trees.hpp"

namespace ringside::viewer_export::rpc {

/// One thing that ran while a call was served.
struct Event {
    std::string what;
    std::string name;
    std::int64_t begin_ns;
    std::int64_t total_ns;
    std::int64_t self_ns;
    model::Index lane;  ///< kNone: a device's
    std::uint64_t position = model::kNoPosition;
    bool ended = true;
    bool counted = true;  ///< else a wrapper's second entry: its self time is in the outer one's
};

struct Ran {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
};

struct Unknown {
    std::uint64_t events = 0;
    std::set<model::Index> lanes;
};

/// All of one name.
struct RanRow {
    std::string what;
    std::string name;
    Ran sums;
};

class Caused {
public:
    /// @param roots  the calls, with all below them
    Caused(const model::Job& job, const Forest& forest, const std::vector<model::Index>& roots);

    /// By begin.
    const std::vector<Event>& events(model::Index call) const;
    /// By what and name, those that took longest first.
    std::vector<RanRow> ran(model::Index call) const;
    const Unknown& unknown() const { return unknown_; }

private:
    using Window = std::pair<std::int64_t, std::int64_t>;

    void find_windows();
    model::Index call_of(model::Index request, model::Index lane, std::int64_t begin_ns);
    void add_lanes();
    void add_ranges(model::Index lane, const std::vector<model::Range>& ranges);
    void add_others();

    const model::Job& job_;
    std::vector<bool> left_out_;
    model::CudaTimes cuda_;
    std::unordered_map<model::Index, model::Index> halves_;  ///< served half -> call
    std::map<model::Index, std::vector<Window>> windows_;    ///< by process
    std::map<model::Index, std::vector<Event>> events_;      ///< by call
    Unknown unknown_;
};

}  // namespace ringside::viewer_export::rpc
