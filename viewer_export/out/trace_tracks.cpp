#include "viewer_export/out/trace_tracks.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "viewer_export/out/trace_items.hpp"

namespace ringside::viewer_export::trace {

using model::Index;
using model::kNone;

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

constexpr std::uint64_t kWaits = ~0ull;  // of a device: its row beneath all streams

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
    tracks_.push_back({group, groups_[group].pid, tid, std::move(name),
                       static_cast<std::int32_t>(tracks_.size()), thread});
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

void Tracks::add_threads(const model::Job& job, std::vector<Place>& places) {
    // Threads by process and number, those with a lane and those that only called CUDA.
    std::set<std::tuple<Index, std::int64_t, Index>> threads;
    for (Index i = 0; i < job.lanes.size(); ++i) {
        if (drawn_[job.lanes[i].process])
            threads.emplace(job.lanes[i].process, job.lanes[i].tid, i);
    }
    for (const model::GpuCall& call : job.gpu_calls) {
        if (drawn_[call.process] && call.thread_lane == kNone)
            threads.emplace(call.process, std::int64_t{call.thread}, kNone);
    }
    const auto is_overhead = [&](const model::GpuWork& work) {
        return work.kind == schema::RecordKind::kGpuOverhead && drawn_[work.process];
    };
    for (const model::GpuWork& work : job.gpu_work) {
        if (!is_overhead(work)) continue;
        // It has no lane of its own: it lies on the thread's first one.
        const auto first = threads.lower_bound({work.process, work.thread, 0});
        if (first == threads.end() || std::get<0>(*first) != work.process ||
            std::get<1>(*first) != work.thread)
            threads.emplace(work.process, std::int64_t{work.thread}, kNone);
    }
    std::set<std::pair<Index, std::int64_t>> used;
    for (const auto& [process, number, lane] : threads) {
        const auto rows = static_cast<Index>(rows_.size());
        std::string name = "thread " + std::to_string(number);
        if (lane != kNone && !job.lanes[lane].thread_name.empty())
            name += " (" + job.lanes[lane].thread_name + ")";
        // A thread's number may have been used twice, one after the other; its ranges must not meet on one row.
        const bool own_tid = number > 0 && used.emplace(process, number).second;
        places.push_back(
            {group(process), own_tid ? number : -1, std::move(name), own_tid, lane, kNone});
        rows_.push_back({process, lane, 0});
        if (lane != kNone) lane_rows_[lane] = rows;
        thread_rows_.emplace(std::pair(process, static_cast<std::uint32_t>(number)), rows);
    }
    const auto mix = [&](const auto& event) {
        const Index rows = rows_of(event);
        if (!std::exchange(rows_[rows].mixed, true)) places[rows].calls = event.lane;
    };
    for (const model::GpuCall& call : job.gpu_calls) {
        if (drawn_[call.process]) mix(call);
    }
    for (const model::GpuWork& work : job.gpu_work) {
        if (is_overhead(work)) mix(work);
    }
}

Index Tracks::rows_of(const model::GpuCall& call) const {
    if (call.thread_lane != kNone) return lane_rows_[call.thread_lane];
    return thread_rows_.at({call.process, call.thread});
}

Index Tracks::rows_of(const model::GpuWork& work) const {
    if (work.kind == schema::RecordKind::kGpuOverhead)
        return thread_rows_.at({work.process, work.thread});
    return stream_rows_.at(
        {work.process, device_of(work), work.on_device() ? work.stream : kWaits});
}

const model::Steps* Tracks::iterations_of(Index process) const {
    auto each = std::partition_point(steps_.begin(), steps_.end(), [&](const model::Steps& other) {
        return other.process < process;
    });
    while (each != steps_.end() && each->process == process && !each->chosen) ++each;
    return each == steps_.end() || each->process != process ? nullptr : &*each;
}

bool Tracks::draws_on_device(const model::GpuWork& work) const {
    return drawn_[work.process] && (work.on_device() || (cuda_sync_ && model::is_wait(work)));
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
        if (draws_on_device(work)) used.emplace(work.process, device_of(work));
    }
    // As Kineto: a device's number where there is one process and that is not in its way, else one after all processes'.
    const bool alone = groups_.size() == 1;
    const std::uint32_t own_pid = alone ? groups_.front().pid : 0;
    std::uint32_t next = alone ? std::max(own_pid, model::kMostDevices)
                               : static_cast<std::uint32_t>(job.processes.size());
    for (const auto& [process, device] : used) {
        const bool own = alone && device < model::kMostDevices && device != own_pid;
        const auto to = static_cast<std::uint32_t>(groups_.size());
        groups_.push_back(
            {own ? device : ++next, groups_[group(process)].name, "GPU " + std::to_string(device),
             kSortIndex +
                 static_cast<std::int32_t>(own ? device : model::kMostDevices + devices_.size())});
        devices_.push_back({process, device, to});
    }
    next_virtual_.resize(groups_.size(), 0);
}

void Tracks::add_streams(const model::Job& job, std::vector<Place>& places) {
    for (Index i = 0; i < job.gpu_work.size(); ++i) {
        const model::GpuWork& work = job.gpu_work[i];
        if (!draws_on_device(work)) continue;
        // The first one's number, until rows have theirs.
        stream_rows_.try_emplace(
            {work.process, device_of(work), work.on_device() ? work.stream : kWaits}, i);
    }
    auto device = devices_.begin();
    for (auto& [key, rows] : stream_rows_) {
        const auto& [process, number, stream] = key;
        // Both are by process and device.
        while (std::pair(device->process, device->device) != std::pair(process, number)) ++device;
        places.push_back({device->group,
                          stream < kFirstVirtualTid ? static_cast<std::int64_t>(stream) : -1,
                          stream == kWaits ? "waits" : "stream " + std::to_string(stream), false,
                          job.gpu_work[rows].lane, kNone});
        rows = static_cast<Index>(rows_.size());
        rows_.push_back({process, kNone, 0});
        rows_.back().mixed = true;
    }
}

/// Users' ranges alone: operators have their kernels by the arrows.
void Tracks::add_projections(const model::Job& job) {
    const auto has_users = [&](const model::Lane& lane) {
        return drawn_[lane.process] &&
               std::any_of(lane.ranges.begin(), lane.ranges.end(), model::is_users);
    };
    if (job.gpu_work.empty() || std::none_of(job.lanes.begin(), job.lanes.end(), has_users)) return;
    projections_ = model::project_ranges(job, {}, model::is_users);
    Index next = 0;
    while (next < projections_.size()) {
        const auto place = [&](Index i) {
            const model::Projection& each = projections_[i];
            return std::tuple(job.lanes[each.lane].process, each.device,
                              std::uint64_t{each.stream});
        };
        const auto key = place(next);
        const Index first = next;
        while (next < projections_.size() && place(next) == key) ++next;
        if (drawn_[std::get<0>(key)]) rows_[stream_rows_.at(key)].projections = {first, next};
    }
}

void Tracks::count_rows(const model::Job& job) {
    std::vector<Nesting> nestings(rows_.size());
    for (Index i = 0; i < rows_.size(); ++i) {
        if (rows_[i].mixed) continue;
        for (const model::Range& range : job.lanes[rows_[i].lane].ranges)
            nestings[i].place(range.begin_ns, range.end_ns);
    }
    Items items(job, *this);
    for (Index process = 0; process < job.processes.size(); ++process) {
        if (!drawn_[process]) continue;
        items.walk(process, [&](Index rows, const Item& item) {
            nestings[rows].place(item.begin_ns, item.end_ns);
        });
    }
    for (Index i = 0; i < rows_.size(); ++i) rows_[i].more = nestings[i].more();
}

void Tracks::add_tracks(const std::vector<Place>& places) {
    for (Index i = 0; i < rows_.size(); ++i) {
        const Place& place = places[i];
        Rows& rows = rows_[i];
        for (std::uint32_t row = 0; row <= rows.more; ++row) {
            const bool own = row == 0 && place.tid >= 0;
            const std::uint32_t tid =
                own ? static_cast<std::uint32_t>(place.tid) : virtual_tid(place.group);
            const std::uint32_t track =
                add(place.group, tid,
                    row == 0 ? place.name : place.name + ", row " + std::to_string(row + 1),
                    row == 0 && place.thread);
            tracks_[track].lane = place.lane;
            tracks_[track].calls = place.calls;
            if (row == 0) rows.track = track;
        }
        if (rows.lane != kNone) lane_tracks_[rows.lane] = rows.track;
    }
}

template <class Event>
void Tracks::pack(const std::vector<Event>& events, const std::vector<Index>& order,
                  const std::vector<Index>& process_of, const char* name,
                  std::vector<std::uint32_t>& tracks) {
    struct Instant {
        std::int64_t ns = std::numeric_limits<std::int64_t>::min();
        std::uint32_t row = 0;
    };
    std::map<Index, RowPacker> packers;
    std::map<Index, Instant> instants;                 // the last one of each process
    std::map<Index, std::vector<std::uint32_t>> rows;  // tracks of a process's rows
    for (const Index index : order) {
        const Index process = process_of[index];
        const Event& event = events[index];
        // A thousand messages that one call found received lie side by side.
        Instant& last = instants[process];
        const bool again = last.ns == event.begin_ns && last.ns == event.end_ns;
        const std::uint32_t row =
            again ? last.row : packers[process].place(event.begin_ns, event.end_ns);
        if (event.begin_ns == event.end_ns) last = {event.begin_ns, row};
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
    constexpr std::array kNames = {"rpc out", "rpc in", "messages out", "messages in"};
    std::array<std::vector<Index>, kNames.size()> kinds;
    for (Index i = 0; i < job.halves.size(); ++i) {
        const model::Half& half = job.halves[i];
        process_of[i] = half.process;
        if (!half.shown() || !drawn_[process_of[i]]) continue;
        kinds[2u * half.of_message() + half.server()].push_back(i);
    }
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        sort_by_begin(job.halves, kinds[kind]);
        pack(job.halves, kinds[kind], process_of, kNames[kind], half_tracks_);
    }
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

Tracks::Tracks(const model::Job& job, const std::vector<bool>& drawn,
               const std::vector<model::Steps>& steps, bool cuda_sync)
    : drawn_(drawn),
      steps_(steps),
      cuda_sync_(cuda_sync),
      lane_tracks_(job.lanes.size(), 0),
      lane_rows_(job.lanes.size(), kNone),
      half_tracks_(job.halves.size(), 0),
      async_tracks_(job.asyncs.size(), 0) {
    std::vector<Place> places;
    add_processes(job);
    add_threads(job, places);
    add_devices(job);
    add_streams(job, places);
    add_projections(job);
    count_rows(job);
    add_tracks(places);
    add_halves(job);
    add_asyncs(job);
}

}  // namespace ringside::viewer_export::trace
