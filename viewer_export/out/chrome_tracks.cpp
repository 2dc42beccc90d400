#include "viewer_export/out/chrome_tracks.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace ringside::viewer_export::chrome {

using model::Index;

std::vector<std::uint16_t> nesting_rows(std::span<const model::Range> ranges) {
    std::vector<std::uint16_t> rows;
    std::vector<std::vector<std::int64_t>> stacks(1);  // ends of the open ranges of each row
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        std::size_t row = 0;
        for (;; ++row) {
            if (row == stacks.size()) stacks.emplace_back();
            std::vector<std::int64_t>& stack = stacks[row];
            while (!stack.empty() && stack.back() <= ranges[i].begin_ns) stack.pop_back();
            // Rows beyond a u16 would be a hostile dump's: there the last one takes what it gets.
            if (stack.empty() || ranges[i].end_ns <= stack.back() || row == 0xffff) break;
        }
        stacks[row].push_back(ranges[i].end_ns);
        if (row > 0 && rows.empty()) rows.assign(ranges.size(), 0);
        if (row > 0) rows[i] = static_cast<std::uint16_t>(row);
    }
    return rows;
}

std::uint32_t RowPacker::place(std::int64_t begin_ns, std::int64_t end_ns) {
    while (!busy_.empty() && busy_.front().end_ns < begin_ns) {
        std::pop_heap(busy_.begin(), busy_.end(), std::greater<>());
        free_.push_back(busy_.back().row);
        std::push_heap(free_.begin(), free_.end(), std::greater<>());
        busy_.pop_back();
    }
    std::uint32_t row = rows_;
    if (free_.empty()) {
        ++rows_;
    } else {
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        row = free_.back();
        free_.pop_back();
    }
    busy_.push_back({end_ns, row});
    std::push_heap(busy_.begin(), busy_.end(), std::greater<>());
    return row;
}

std::uint32_t Tracks::add(Index process, std::uint32_t tid, std::string name) {
    tracks_.push_back(
        {pids_[process], tid, std::move(name), static_cast<std::int32_t>(tracks_.size())});
    return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::uint32_t Tracks::add_row(Index process, std::string name) {
    return add(process, virtual_tid(process), std::move(name));
}

void Tracks::add_threads(const model::Job& job) {
    std::vector<Index> order(job.lanes.size());
    for (Index i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        const model::Lane& left = job.lanes[a];
        const model::Lane& right = job.lanes[b];
        return std::pair(left.process, left.tid) < std::pair(right.process, right.tid);
    });
    std::set<std::pair<Index, std::int32_t>> used;
    for (const Index index : order) {
        const model::Lane& lane = job.lanes[index];
        std::string name = "thread " + std::to_string(lane.tid);
        if (!lane.thread_name.empty()) name += " (" + lane.thread_name + ")";
        // A thread's number may have been used twice, one after the other; its ranges must not meet on one row.
        const bool own_tid = lane.tid > 0 && used.emplace(lane.process, lane.tid).second;
        const std::uint32_t tid =
            own_tid ? static_cast<std::uint32_t>(lane.tid) : virtual_tid(lane.process);
        lane_tracks_[index] = add(lane.process, tid, name);
        lane_rows_[index] = nesting_rows(lane.ranges);
        const auto& rows = lane_rows_[index];
        const std::uint32_t more = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
        for (std::uint32_t row = 0; row < more; ++row) {
            add_row(lane.process, name + ", row " + std::to_string(row + 2));
        }
    }
}

template <class Event>
void Tracks::pack(const std::vector<Event>& events, const std::vector<Index>& order,
                  const std::vector<Index>& process_of, const char* name,
                  std::vector<std::uint32_t>& tracks) {
    std::map<Index, RowPacker> packers;
    std::map<Index, std::vector<std::uint32_t>> rows;  // tracks of a process's rows
    for (const Index index : order) {
        const Index process = process_of[index];
        const std::uint32_t row =
            packers[process].place(events[index].begin_ns, events[index].end_ns);
        std::vector<std::uint32_t>& known = rows[process];
        if (row == known.size()) {
            known.push_back(add_row(process, std::string(name) + " " + std::to_string(row + 1)));
        }
        tracks[index] = known[row];
    }
}

Tracks::Tracks(const model::Job& job)
    : next_virtual_(job.processes.size(), 0),
      lane_tracks_(job.lanes.size(), 0),
      lane_rows_(job.lanes.size()),
      half_tracks_(job.halves.size(), 0),
      async_tracks_(job.asyncs.size(), 0) {
    for (Index i = 0; i < job.processes.size(); ++i) {
        const std::int32_t pid = job.processes[i].pid;
        // Ranks on different nodes may have one pid: in a merged file processes are numbered, their pid is in the labels.
        const bool own_pid = job.processes.size() == 1 && pid > 0;
        pids_.push_back(own_pid ? static_cast<std::uint32_t>(pid) : i + 1);
    }
    add_threads(job);

    std::vector<Index> half_process(job.halves.size());
    std::vector<Index> clients;
    std::vector<Index> servers;
    for (Index i = 0; i < job.halves.size(); ++i) {
        half_process[i] = job.halves[i].process;
        if (!job.halves[i].shown()) continue;
        (job.halves[i].server() ? servers : clients).push_back(i);
    }
    std::vector<Index> async_process(job.asyncs.size());
    std::vector<Index> asyncs;
    for (Index i = 0; i < job.asyncs.size(); ++i) {
        async_process[i] = job.lanes[job.asyncs[i].lane].process;
        asyncs.push_back(i);
    }
    const auto by_begin = [](const auto& events) {
        return [&events](Index a, Index b) { return events[a].begin_ns < events[b].begin_ns; };
    };
    std::stable_sort(clients.begin(), clients.end(), by_begin(job.halves));
    std::stable_sort(servers.begin(), servers.end(), by_begin(job.halves));
    std::stable_sort(asyncs.begin(), asyncs.end(), by_begin(job.asyncs));
    pack(job.halves, clients, half_process, "rpc out", half_tracks_);
    pack(job.halves, servers, half_process, "rpc in", half_tracks_);
    pack(job.asyncs, asyncs, async_process, "async", async_tracks_);
}

}  // namespace ringside::viewer_export::chrome
