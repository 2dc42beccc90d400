#include "viewer_export/out/trace_tracks.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ringside::viewer_export::trace {

using model::Index;
using model::kNone;

template <class Event>
std::vector<std::uint16_t> nesting_rows(std::span<const Event> ranges) {
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
template std::vector<std::uint16_t> nesting_rows(std::span<const model::Range> ranges);
template std::vector<std::uint16_t> nesting_rows(std::span<const Item> ranges);

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

namespace {

std::string process_name(const model::Process& process) {
    std::string name = process.worker_name;
    if (name.empty() && !process.command_line.empty()) name = process.command_line.front();
    if (name.empty()) name = process.executable;
    if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
        name.erase(0, slash + 1);
    if (name.empty()) name = "process";
    if (process.rank >= 0) name += " (rank " + std::to_string(process.rank) + ")";
    return name;
}

}  // namespace

std::string lane_text(const model::Job& job, Index index) {
    const model::Lane& lane = job.lanes[index];
    const model::Process& process = job.processes[lane.process];
    return std::to_string(process.node) + "." + std::to_string(process.index) + "." +
           std::to_string(lane.index);
}

std::uint32_t Tracks::add(std::uint32_t group, std::uint32_t tid, std::string name, bool thread) {
    tracks_.push_back({group,
                       groups_[group].pid,
                       tid,
                       std::move(name),
                       static_cast<std::int32_t>(tracks_.size()),
                       thread,
                       {}});
    return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::uint32_t Tracks::add_row(Index process, std::string name) {
    const std::uint32_t to = group(process);
    return add(to, virtual_tid(to), std::move(name), false);
}

void Tracks::add_processes(const model::Job& job) {
    const auto count = std::count(drawn_.begin(), drawn_.end(), true);
    for (Index i = 0; i < job.processes.size(); ++i) {
        const model::Process& process = job.processes[i];
        groups_of_.push_back(static_cast<std::uint32_t>(groups_.size()));
        if (!drawn_[i]) continue;
        // Ranks on different nodes may have one pid: where there are several processes they are numbered, their pid is in the labels.
        const bool own_pid = count == 1 && process.pid > 0;
        groups_.push_back(
            {own_pid ? static_cast<std::uint32_t>(process.pid) : i + 1, process_name(process),
             "CPU, node " + job.nodes[process.node].name + ", pid " + std::to_string(process.pid),
             static_cast<std::int32_t>(i)});
    }
    next_virtual_.resize(groups_.size(), 0);
}

void Tracks::add_threads(const model::Job& job) {
    // Threads by process and number, those with a lane and those that only called CUDA.
    using Key = std::tuple<Index, std::int64_t, Index>;
    std::map<Key, std::vector<Item>> threads;
    for (Index i = 0; i < job.lanes.size(); ++i) {
        if (drawn_[job.lanes[i].process]) threads[{job.lanes[i].process, job.lanes[i].tid, i}];
    }
    const auto thread_of = [&](Index process, std::uint32_t tid, Index lane) -> std::vector<Item>& {
        return threads[{process, lane != kNone ? job.lanes[lane].tid : std::int64_t{tid}, lane}];
    };
    for (Index i = 0; i < job.gpu_calls.size(); ++i) {
        const model::GpuCall& call = job.gpu_calls[i];
        if (!drawn_[call.process]) continue;
        thread_of(call.process, call.thread, call.thread_lane)
            .push_back({call.begin_ns, std::max(call.begin_ns, call.end_ns), i, ItemKind::kCall});
    }
    for (Index i = 0; i < job.gpu_work.size(); ++i) {
        const model::GpuWork& work = job.gpu_work[i];
        if (work.kind != schema::RecordKind::kGpuOverhead || !drawn_[work.process]) continue;
        // An overhead has no lane of its own: it lies on the thread's first one.
        const auto first = threads.lower_bound({work.process, work.thread, 0});
        const bool known = first != threads.end() && std::get<0>(first->first) == work.process &&
                           std::get<1>(first->first) == work.thread;
        std::vector<Item>& items =
            known ? first->second : thread_of(work.process, work.thread, kNone);
        items.push_back({work.begin_ns, std::max(work.begin_ns, work.end_ns), i, ItemKind::kWork});
    }
    std::set<std::pair<Index, std::int64_t>> used;
    for (auto& [key, items] : threads) {
        const auto& [process, number, lane] = key;
        std::string name = "thread " + std::to_string(number);
        if (lane != kNone && !job.lanes[lane].thread_name.empty())
            name += " (" + job.lanes[lane].thread_name + ")";
        // A thread's number may have been used twice, one after the other; its ranges must not meet on one row.
        const bool own_tid = number > 0 && used.emplace(process, number).second;
        const std::uint32_t to = group(process);
        const std::uint32_t tid = own_tid ? static_cast<std::uint32_t>(number) : virtual_tid(to);
        place(job, {process, lane, add(to, tid, name, own_tid), 0, std::move(items)}, name);
    }
}

/// Gives each of what lies on `rows` its row, and makes those beyond the first.
void Tracks::place(const model::Job& job, Rows rows, const std::string& name) {
    std::vector<std::uint16_t> placed;
    if (rows.lane != kNone) lane_tracks_[rows.lane] = rows.track;
    if (rows.items.empty()) {
        placed = nesting_rows(job.lanes[rows.lane].ranges);
        lane_rows_[rows.lane] = placed;
    } else {
        if (rows.lane != kNone) {
            const auto& ranges = job.lanes[rows.lane].ranges;
            std::vector<Item> own;
            own.reserve(ranges.size() + rows.items.size());
            for (Index i = 0; i < ranges.size(); ++i)
                own.push_back({ranges[i].begin_ns, ranges[i].end_ns, i, ItemKind::kRange});
            own.insert(own.end(), rows.items.begin(), rows.items.end());
            rows.items = std::move(own);
        }
        std::stable_sort(rows.items.begin(), rows.items.end(), [](const Item& a, const Item& b) {
            return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
        });
        placed = nesting_rows(std::span<const Item>(rows.items));
        if (!placed.empty() && rows.lane != kNone)
            lane_rows_[rows.lane].resize(job.lanes[rows.lane].ranges.size());
        for (std::size_t i = 0; i < rows.items.size(); ++i) {
            const Item& item = rows.items[i];
            const std::uint16_t row = placed.empty() ? 0 : placed[i];
            if (item.kind == ItemKind::kCall) {
                call_tracks_[item.index] = rows.track + row;
            } else if (item.kind == ItemKind::kWork) {
                work_tracks_[item.index] = rows.track + row;
            } else if (row > 0) {
                lane_rows_[rows.lane][item.index] = row;
            }
        }
    }
    rows.more = placed.empty() ? 0 : *std::max_element(placed.begin(), placed.end());
    const std::uint32_t to = tracks_[rows.track].group;
    for (std::uint32_t row = 0; row < rows.more; ++row)
        add(to, virtual_tid(to), name + ", row " + std::to_string(row + 2), false);
    if (rows.lane != kNone) {
        const std::string text = lane_text(job, rows.lane);
        for (std::uint32_t row = 0; row <= rows.more; ++row) tracks_[rows.track + row].lane = text;
    }
    rows_.push_back(std::move(rows));
}

std::uint32_t Tracks::device_of(const model::GpuWork& work) const {
    if (work.kind != schema::RecordKind::kGpuSync) return work.device;
    const auto known = device_of_context_.find({work.process, work.context});
    return known == device_of_context_.end() ? 0 : known->second;
}

void Tracks::add_devices(const model::Job& job) {
    constexpr std::int32_t kSortIndex = 5'000'000;  // Kineto's
    std::set<std::pair<Index, std::uint32_t>> used;
    for (const model::GpuWork& work : job.gpu_work) {
        if (!drawn_[work.process] || work.kind == schema::RecordKind::kGpuOverhead) continue;
        if (work.kind != schema::RecordKind::kGpuSync)
            device_of_context_[{work.process, work.context}] = work.device;
        used.emplace(work.process, device_of(work));
    }
    const std::size_t processes = groups_.size();
    for (const auto& [process, device] : used) {
        // As Kineto: a device's number, where that is not in the way of a process's.
        const bool own = processes == 1 && groups_.front().pid != device;
        const auto to = static_cast<std::uint32_t>(groups_.size());
        const auto after = static_cast<std::uint32_t>(job.processes.size() + devices_.size() + 1);
        groups_.push_back({own ? device : after, groups_[group(process)].name,
                           "GPU " + std::to_string(device),
                           kSortIndex + static_cast<std::int32_t>(own ? device : after)});
        devices_.push_back({process, device, to});
    }
    next_virtual_.resize(groups_.size(), 0);
}

void Tracks::add_streams(const model::Job& job) {
    constexpr std::uint64_t kWaits = ~0ull;  // of a device: its row beneath all streams
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Item>> streams;
    std::map<std::pair<Index, std::uint32_t>, const Device*> known;
    for (const Device& device : devices_) known[{device.process, device.device}] = &device;
    for (Index i = 0; i < job.gpu_work.size(); ++i) {
        const model::GpuWork& work = job.gpu_work[i];
        if (!drawn_[work.process] || work.kind == schema::RecordKind::kGpuOverhead) continue;
        const Device& device = *known.at({work.process, device_of(work)});
        streams[{device.group, work.on_device() ? work.stream : kWaits}].push_back(
            {work.begin_ns, std::max(work.begin_ns, work.end_ns), i, ItemKind::kWork});
    }
    for (auto& [key, items] : streams) {
        const auto& [to, stream] = key;
        const bool waits = stream == kWaits;
        const std::string name = waits ? "waits" : "stream " + std::to_string(stream);
        const bool own = !waits && stream < kFirstVirtualTid;
        const std::uint32_t tid = own ? static_cast<std::uint32_t>(stream) : virtual_tid(to);
        const Index process = job.gpu_work[items.front().index].process;
        place(job, {process, kNone, add(to, tid, name, false), 0, std::move(items)}, name);
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

namespace {

template <class Event>
void sort_by_begin(const std::vector<Event>& events, std::vector<Index>& order) {
    std::stable_sort(order.begin(), order.end(), [&events](Index a, Index b) {
        return events[a].begin_ns < events[b].begin_ns;
    });
}

}  // namespace

void Tracks::add_halves(const model::Job& job) {
    std::vector<Index> process_of(job.halves.size());
    std::vector<Index> clients;
    std::vector<Index> servers;
    for (Index i = 0; i < job.halves.size(); ++i) {
        process_of[i] = job.halves[i].process;
        if (!job.halves[i].shown() || !drawn_[process_of[i]]) continue;
        (job.halves[i].server() ? servers : clients).push_back(i);
    }
    sort_by_begin(job.halves, clients);
    sort_by_begin(job.halves, servers);
    pack(job.halves, clients, process_of, "rpc out", half_tracks_);
    pack(job.halves, servers, process_of, "rpc in", half_tracks_);
}

void Tracks::add_asyncs(const model::Job& job) {
    std::vector<Index> process_of(job.asyncs.size());
    std::vector<Index> asyncs;
    for (Index i = 0; i < job.asyncs.size(); ++i) {
        process_of[i] = job.lanes[job.asyncs[i].lane].process;
        if (drawn_[process_of[i]]) asyncs.push_back(i);
    }
    sort_by_begin(job.asyncs, asyncs);
    pack(job.asyncs, asyncs, process_of, "async", async_tracks_);
}

Tracks::Tracks(const model::Job& job, const std::vector<bool>& drawn)
    : drawn_(drawn),
      lane_tracks_(job.lanes.size(), 0),
      lane_rows_(job.lanes.size()),
      half_tracks_(job.halves.size(), 0),
      async_tracks_(job.asyncs.size(), 0),
      call_tracks_(job.gpu_calls.size(), 0),
      work_tracks_(job.gpu_work.size(), 0) {
    add_processes(job);
    add_threads(job);
    add_devices(job);
    add_streams(job);
    add_halves(job);
    add_asyncs(job);
}

}  // namespace ringside::viewer_export::trace
