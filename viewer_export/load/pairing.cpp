// Begins and ends with one key become one event: async ranges and RPC halves of one process, on any of its lanes.
#include <algorithm>

#include "viewer_export/load/builder.hpp"

namespace ringside::viewer_export::load {

namespace {

/// Ends by (key, ticks). A key is unique in its segment; where it comes twice all the same, each begin takes the next end after it.
class Ends {
public:
    explicit Ends(std::vector<PendingEnd>& ends) : ends_(ends), taken_(ends.size(), false) {
        std::stable_sort(ends_.begin(), ends_.end(), [](const PendingEnd& a, const PendingEnd& b) {
            return a.key != b.key ? a.key < b.key : a.ticks < b.ticks;
        });
    }

    /// @return the end of the event `key` that began at `begin`; null: it has none
    const PendingEnd* take(std::uint64_t key, std::uint64_t begin) {
        auto end = std::partition_point(ends_.begin(), ends_.end(), [&](const PendingEnd& other) {
            return other.key < key || (other.key == key && other.ticks < begin);
        });
        for (; end != ends_.end() && end->key == key; ++end) {
            const auto at = static_cast<std::size_t>(end - ends_.begin());
            if (taken_[at]) continue;
            taken_[at] = true;
            ++used_;
            return &*end;
        }
        return nullptr;
    }
    std::uint64_t left() const { return ends_.size() - used_; }

private:
    std::vector<PendingEnd>& ends_;
    std::vector<bool> taken_;
    std::uint64_t used_ = 0;
};

template <class Event>
void sort_by_begin(std::vector<Event>& events) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
        return static_cast<std::uint64_t>(a.begin_ns) < static_cast<std::uint64_t>(b.begin_ns);
    });
}

}  // namespace

void JobBuilder::pair_process(Index process) {
    ProcessState& state = processes_[process];
    Ends async_ends(state.async_ends);
    sort_by_begin(state.asyncs);
    for (model::AsyncRange& range : state.asyncs) {
        const PendingEnd* end =
            async_ends.take(range.key, static_cast<std::uint64_t>(range.begin_ns));
        if (end == nullptr) continue;
        range.end_ns = static_cast<std::int64_t>(end->ticks);
        range.end_lane = end->lane;
        range.end = model::End::kEnded;
    }
    Ends rpc_ends(state.rpc_ends);
    sort_by_begin(state.halves);
    for (model::Half& half : state.halves) {
        const PendingEnd* end = rpc_ends.take(half.key, half.begin_ticks);
        if (end == nullptr) continue;
        half.end_ticks = end->ticks;
        half.end_ns = static_cast<std::int64_t>(end->ticks);
        half.end_lane = end->lane;
        half.status = static_cast<schema::RpcStatus>(end->argument >> 56);
        half.reply_bytes = end->argument & 0x00ffffffffffffffull;
        half.end = model::End::kEnded;
    }
    job_.totals.ends_without_begin += async_ends.left() + rpc_ends.left();

    const auto first = static_cast<Index>(job_.halves.size());
    for (Index i = 0; i < state.halves.size(); ++i) {
        if (state.halves[i].server()) state.server_halves.emplace(state.halves[i].key, first + i);
    }
    job_.halves.insert(job_.halves.end(), state.halves.begin(), state.halves.end());
    job_.asyncs.insert(job_.asyncs.end(), state.asyncs.begin(), state.asyncs.end());
    state.asyncs = {};
    state.async_ends = {};
    state.halves = {};
    state.rpc_ends = {};
}

}  // namespace ringside::viewer_export::load
