#include "agent/capture/process_table.hpp"

#include <spdlog/spdlog.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>

namespace ringside::agent {
namespace {

/// 1/8 of the file system, never beyond half of what is free on it (the job needs it too).
std::uint64_t default_node_budget(const std::string& path) {
    struct statvfs system {};
    if (::statvfs(path.c_str(), &system) != 0) return schema::kSegmentBytes;
    const std::uint64_t eighth = system.f_blocks * system.f_frsize / 8;
    const std::uint64_t half_of_free = system.f_bavail * system.f_frsize / 2;
    return std::min(eighth, half_of_free);
}

}  // namespace

ProcessTable::ProcessTable(JobDirectory directory, Watch watch, const MemoryOptions& memory)
    : directory_(std::move(directory)), watch_(std::move(watch)) {
    set_memory(memory);
}

void ProcessTable::set_memory(const MemoryOptions& memory) {
    budget_.first_lane_kib = memory.first_lane_kib;
    budget_.most_lane_kib = std::max(memory.most_lane_kib, memory.first_lane_kib);
    budget_.node_bytes = memory.node_budget_bytes != 0 ? memory.node_budget_bytes
                                                       : default_node_budget(directory_.path());
    budget_.process_bytes =
        memory.process_budget_bytes != 0 ? memory.process_budget_bytes : budget_.node_bytes;
    publish_budget();
}

void ProcessTable::publish_budget() {
    BudgetFile& shared = directory_.budget();
    std::uint64_t used = 0, taken_back = 0;
    for (const auto& process : processes_) {
        if (!process->segment) continue;
        used += process->segment->real_bytes();
        taken_back += process->segment->collect_taken_back();
    }
    if (taken_back != 0) shared.take_off(taken_back);
    const std::uint64_t taken = shared.taken();
    // Whoever was killed between two additions has left a difference, agents that died too. One that nobody moves is put right.
    if (taken != used && taken == last_taken_ && used == last_used_) shared.correct(taken, used);
    last_taken_ = taken;
    last_used_ = used;
    budget_.node_left_bytes = budget_.node_bytes > used ? budget_.node_bytes - used : 0;
    directory_.control().set_budget(budget_);
}

void ProcessTable::keep_directory() {
    if (directory_.whole()) {
        gone_since_.reset();
        return;
    }
    // Not under the hands of whoever removes it: that would find it not empty.
    constexpr std::chrono::milliseconds kEnough{300};
    const auto now = std::chrono::steady_clock::now();
    if (!gone_since_) gone_since_ = now;
    if (now - *gone_since_ < kEnough) return;
    const std::string what = "job directory " + directory_.path() + ": somebody has removed it";
    auto restored = directory_.restore();
    if (!restored) {
        std::string notice = what + ", and it can't be made again: " + restored.error().message;
        if (notice != notice_) spdlog::warn(notice);
        notice_ = std::move(notice);
        return;
    }
    watch_.follow(directory_.path().c_str());
    const auto followed = std::count_if(processes_.begin(), processes_.end(),
                                        [](const auto& process) { return process->alive(); });
    notice_ =
        what + "; made again. " + std::to_string(followed) +
        " processes of before are followed as long as this agent lives: another one would not "
        "find their segments";
    spdlog::warn(notice_);
}

std::vector<TrackedProcess*> ProcessTable::discover() {
    std::set<schema::SegmentId> known;
    for (const auto& process : processes_) {
        if (process->segment) known.insert(process->id);
    }
    std::vector<TrackedProcess*> found;
    for (auto& segment : directory_.scan(known)) {
        auto process = std::make_unique<TrackedProcess>(std::move(segment));
        watch_.add(process->life->watch_descriptor());
        found.push_back(process.get());
        processes_.push_back(std::move(process));
    }
    return found;
}

/// @return those of all segments, in order: one pid's stand together, by their age
std::vector<schema::SegmentId> ProcessTable::sorted_ids() const {
    std::vector<schema::SegmentId> ids;
    ids.reserve(processes_.size());
    for (const auto& process : processes_) {
        if (process->segment) ids.push_back(process->id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

std::vector<TrackedProcess*> ProcessTable::find_ended(std::uint64_t now_ticks) {
    std::vector<TrackedProcess*> ended;
    const auto ids = sorted_ids();
    // An exec keeps the pid and makes a new segment.
    const auto has_successor = [&](const schema::SegmentId& id) {
        const auto next = std::upper_bound(ids.begin(), ids.end(), id);
        return next != ids.end() && next->pid_namespace == id.pid_namespace && next->pid == id.pid;
    };
    for (const auto& process : processes_) {
        if (!process->alive()) continue;
        if (const auto pulse = process->segment->pulse()) process->facts.state = pulse->state;
        auto ending = process->life->check(process->facts.state, has_successor(process->id));
        if (!ending) continue;
        // Its last words may have come after our last look: its levels, its worker, its state.
        process->refresh();
        process->last_open = process->segment->open_calls(process->facts.ticks_source);
        if (!ending->known && process->facts.state == schema::SegmentState::kClosing)
            ending->fate = Fate::kExited;
        process->ending = std::move(ending);
        process->end_ticks = now_ticks;
        watch_.remove(process->life->watch_descriptor());
        ended.push_back(process.get());
    }
    return ended;
}

void ProcessTable::remove(TrackedProcess& process) {
    process.damage = process.segment->damage();
    directory_.budget().take_off(process.segment->real_bytes() +
                                 process.segment->collect_taken_back());
    directory_.remove(*process.segment);
    ++removed_;
    process.drainer.release_segment();
    process.life.reset();
    process.segment.reset();
}

void ProcessTable::forget_removed() {
    std::erase_if(processes_, [](const auto& process) { return process->segment == nullptr; });
}

void ProcessTable::forget_removed_before(std::uint64_t ticks,
                                         const std::function<void(const TrackedProcess&)>& take) {
    std::erase_if(processes_, [&](const auto& process) {
        const bool goes = process->segment == nullptr && process->end_ticks < ticks;
        if (goes) take(*process);
        return goes;
    });
}

}  // namespace ringside::agent
