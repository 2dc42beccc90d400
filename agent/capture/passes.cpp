// The drain thread: what it does on each pass, and how long it waits for the next.
#include <algorithm>

#include "agent/capture/engine_impl.hpp"

namespace ringside::agent {
namespace {

constexpr std::int64_t kMillisecond = schema::kNsPerMillisecond;
// While a capture is on: as seldom as the lanes' fill allows, for each wake-up costs the job a slice of a core.
constexpr std::int64_t kShortestNs = 1 * kMillisecond;
constexpr std::int64_t kLongestNs = 8 * kMillisecond;
// While nothing is kept (not begun, or let go): as long as what is waited for has taken already, at most.
constexpr std::int64_t kLongestUnkeptNs = 64 * kMillisecond;
constexpr double kNearlyEmpty = 1.0 / 16;
constexpr double kFilling = 1.0 / 4;
/// Of a lane: what is taken and not yet in the file, and so not the producer's again.
constexpr double kMostHeld = 1.0 / 4;
/// How long a released lane may wait for its last block.
constexpr std::int64_t kGiveBackNs = 20 * kMillisecond;
// While none is: ends and new files wake us; these are for what no event tells (other pid namespaces, lost inotify events).
constexpr std::int64_t kIdleNs = 250 * kMillisecond;
constexpr std::int64_t kMakingNs = 5 * kMillisecond;
constexpr std::int64_t kBuryNs = 20 * kMillisecond;
constexpr std::int64_t kFindNs = 1000 * kMillisecond;
constexpr std::int64_t kFlushNs = 200 * kMillisecond;
constexpr std::size_t kFlushBytes = 256 << 10;
/// The end of a burst: where nothing more comes for now, so much is worth a chunk of its own.
constexpr std::size_t kQuietBytes = kFlushBytes / 8;
constexpr std::size_t kAnyBytes = ~std::size_t{0};

}  // namespace

void EngineImpl::run() {
    Watch::Events events;
    for (;;) {
        Nanoseconds timeout{0};
        {
            std::unique_lock lock(mutex_);
            passed_.wait(lock, [this] { return callers_.load(std::memory_order_relaxed) == 0; });
            if (quit_) {
                // Who has ended since the last pass: nobody else would remove what it left.
                if (!capture_) bury(now_ticks());
                return;
            }
            timeout = pass(events);
            passed_.notify_all();
        }
        events = table_.watch().wait(timeout);
    }
}

Nanoseconds EngineImpl::pass(const Watch::Events& events) {
    const std::uint64_t now = now_ticks();
    const auto since = [&](std::uint64_t then) {
        return calibration_.node_ns({now}).value - calibration_.node_ns({then}).value;
    };
    const bool making = table_.directory().making();
    if (events.directory || making || since(last_find_) >= kFindNs) find(now);
    const std::size_t pending_before = pending_;
    const double fullest = drain(now);
    const std::int64_t bury_ns = capture_ ? kBuryNs : kIdleNs;
    if (events.ended || since(last_bury_) >= bury_ns) bury(now);
    const bool quiet = pending_ >= kQuietBytes && pending_ == pending_before;
    if (capture_ && (quiet || since(last_flush_) >= (waits_ ? kGiveBackNs : kFlushNs))) {
        capture_->flush(table_.all(), *buffers_, now, false);
        last_flush_ = now;
        pending_ = 0;
    }
    // By a clock of its own: in a flood what is drained is flushed by its size, before its time comes.
    if (capture_ && since(last_tidy_) >= kFlushNs) {
        table_.publish_budget();
        forget_aged();
        choose_again();
        choose_again_in_excerpt();
        last_tidy_ = now;
    }
    drained_until_ = now_ticks();
    return interval(fullest);
}

/// New segments come into the running capture at once.
void EngineImpl::find(std::uint64_t now) {
    last_find_ = now;
    table_.keep_directory();
    bool any = false;
    for (TrackedProcess* process : table_.discover()) {
        // Found dead: what it left is for a capture from the start, if one comes.
        if (const auto ending = process->life->check(process->facts.state, false)) {
            process->left_behind = process->drainer.has_unread(capture_ != nullptr);
        }
        if (capture_ && capture_->include(*process) && capture_->selects_some())
            process->came_late = !capture_->resumed();
        // Of one that has come and gone since, and is in no capture, nobody waits for anything.
        process->left_behind &= !opened_ || process->in_capture;
        include_in_excerpt(*process);
        any = true;
    }
    if (any) choose_again();
}

double EngineImpl::drain(std::uint64_t now) {
    double fullest = 0;
    std::size_t pending = 0;
    waits_ = false;
    for (const auto& process : table_.all()) {
        if (!process->segment || (process->left_behind && !process->in_capture)) continue;
        const bool in = capture_ && process->in_capture;
        const TickRange range = in ? capture_->range() : TickRange{};
        // What is encoded is written before more is taken: it is in the core's cache then, and a lane that never ends delays nobody.
        const bool writes = in && capture_->phase() == Capture::Phase::kRunning;
        const auto taken =
            process->drainer.drain(*buffers_, range, now, in, writes ? kFlushBytes : kAnyBytes);
        fullest = std::max(fullest, taken.fullest);
        waits_ |= taken.waits;
        if (!in) continue;
        if (taken.most_held >= kMostHeld) {
            // A window's piece ends with a flush of all.
            if (window() != nullptr && window()->due()) pending = kFlushBytes;
            if (pending < kFlushBytes) capture_->flush_one(*process, *buffers_, now);
        }
        if (capture_->phase() == Capture::Phase::kAttaching) process->refresh();
        if (process->alive()) capture_->follow_attach(*process, now);
        pending += process->drainer.pending_bytes();
        if (pending >= kFlushBytes) {
            capture_->flush(table_.all(), *buffers_, now, false);
            pending = 0;
            last_flush_ = now;
        }
    }
    pending_ = pending;
    return fullest;
}

void EngineImpl::bury(std::uint64_t now) {
    last_bury_ = now;
    bury(table_.find_ended(now), now);
}

/// Those that were found dead and are of the capture that runs.
void EngineImpl::bury_left_behind(std::uint64_t now) {
    std::vector<TrackedProcess*> dead;
    for (const auto& process : table_.all()) {
        if (process->in_capture && process->ending && process->segment)
            dead.push_back(process.get());
    }
    bury(dead, now);
}

/// Some at a time: one flush for them all, and a bounded part of what they left in memory.
void EngineImpl::bury(const std::vector<TrackedProcess*>& ended, std::uint64_t now) {
    constexpr std::size_t kAtOnce = 64;
    for (std::size_t first = 0; first < ended.size(); first += kAtOnce) {
        const std::size_t count = std::min(kAtOnce, ended.size() - first);
        bury_some(std::span(ended).subspan(first, count), now);
    }
    if (!capture_) table_.forget_removed();
}

void EngineImpl::bury_some(std::span<TrackedProcess* const> ended, std::uint64_t now) {
    const auto in = [&](const TrackedProcess& process) { return capture_ && process.in_capture; };
    const auto stays = [&](const TrackedProcess& process) {
        return process.left_behind && !in(process);
    };
    bool flush = false;
    for (TrackedProcess* process : ended) {
        if (stays(*process)) continue;
        const bool kept = in(*process);
        flush |= kept;
        if (kept) capture_->follow_attach(*process, now);
        process->drainer.drain_all(*buffers_, kept ? capture_->range() : TickRange{}, now, kept);
    }
    // Into the file before the segments go: from here on it is the only copy.
    if (flush) capture_->flush(table_.all(), *buffers_, now, false);
    for (TrackedProcess* process : ended) {
        if (!stays(*process)) table_.remove(*process);
    }
}

Nanoseconds EngineImpl::interval(double fullest) {
    if (!capture_) {
        if (table_.directory().making()) return {kMakingNs};
        const bool followed = std::any_of(table_.all().begin(), table_.all().end(),
                                          [](const auto& process) { return process->alive(); });
        return {followed ? kIdleNs : kFindNs};
    }
    if (fullest >= kFilling) {
        interval_ns_ = 0;
    } else if (fullest > kNearlyEmpty) {
        interval_ns_ = kShortestNs;
    } else {
        const bool keeps = capture_->phase() == Capture::Phase::kRunning;
        interval_ns_ =
            std::clamp(interval_ns_ * 2, kShortestNs, keeps ? kLongestNs : kLongestUnkeptNs);
    }
    return {interval_ns_};
}

}  // namespace ringside::agent
