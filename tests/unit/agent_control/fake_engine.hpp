// An engine without a directory, a drain or a dump: its node's clock is real time with a skew, its halves and processes are what the test
// puts in. It keeps the seam's promises: one capture at a time, instants waited for, a file at the end.
#pragma once

#include <sys/stat.h>
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/clock/node_clock.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent::test {

class FakeEngine : public Engine {
public:
    explicit FakeEngine(EngineOptions options) : options_(std::move(options)) {
        const auto snapshot = schema::take_snapshot(schema::TicksSource::kMonotonic);
        calibration_.source = schema::TicksSource::kMonotonic;
        calibration_.reference_ticks = snapshot.ticks;
        calibration_.reference_ns = snapshot.realtime_ns + options_.skew_offset_ns;
        calibration_.ticks_per_second = 1e9 / (1 + options_.skew_drift_ppb * 1e-9);
    }

    // What a test sets before the capture.
    std::vector<Half> halves_to_give;
    std::vector<ProcessReport> processes_to_give;
    bool no_pids_here = false;
    std::int64_t window_holds_ns = 0;  ///< of the time before a capture's instant, once it is armed
    std::vector<IterationProgress>
        iterations_to_tell;           ///< one answer after the other; the last one for ever
    bool no_iterations_told = false;  ///< an error instead
    IterationWish iterations_asked;   ///< of the last capture
    std::int64_t ends_early_ns = 0;   ///< without a word of it
    std::function<void()> on_arm;     ///< called first
    /// Called before a capture ends, with its first tick (0: from the start) and its last: the moment to write halves.
    std::function<void(FakeEngine&, std::uint64_t, std::uint64_t)> on_stop;

    std::optional<CaptureReport> recovered() const override { return std::nullopt; }
    Result<std::optional<CaptureReport>> take_left_behind(const CaptureRequest&) override {
        return std::optional<CaptureReport>();
    }
    std::uint64_t removed_segments() const override { return 0; }

    Result<PrepareReport> prepare(const CaptureRequest& request) override {
        const std::lock_guard lock(mutex_);
        if (capturing_ != 0 && capturing_ != request.id) return refused();
        if (no_pids_here) {
            return schema::Error{schema::ErrorCode::kNothingMatched,
                                 "none of the pids is on node " + options_.node};
        }
        if (request.history.value > 0 && !window_) {
            return schema::Error{schema::ErrorCode::kRefused,
                                 "no window is armed on node " + options_.node};
        }
        history_ns_ = std::min(request.history.value, window_holds_ns);
        note_ = history_ns_ < request.history.value ? "of more: armed then" : "";
        capturing_ = request.id;
        name_ = request.name;
        iterations_asked = request.iterations;
        start_ticks_ = ~0ull;
        return PrepareReport{static_cast<std::uint32_t>(processes_to_give.size()), 0, 0};
    }
    Result<void> begin(std::uint64_t capture_id, Nanoseconds start_node_ns) override {
        const std::lock_guard lock(mutex_);
        if (capturing_ != capture_id) return no_such();
        start_ticks_ = ticks_at_node({start_node_ns.value - history_ns_});
        return {};
    }
    Result<void> capture_from_start(const CaptureRequest& request) override {
        const std::lock_guard lock(mutex_);
        if (capturing_ != 0) return refused();
        capturing_ = request.id;
        name_ = request.name;
        start_ticks_ = 0;
        return {};
    }
    Result<IterationProgress> iterations(std::uint64_t capture_id) const override {
        const std::lock_guard lock(mutex_);
        if (capturing_ != capture_id || no_iterations_told) return no_such();
        const std::size_t last = iterations_to_tell.size() - 1;
        return iterations_to_tell.at(std::min(iterations_told_++, last));
    }
    Result<CaptureReport> stop(std::uint64_t capture_id, Nanoseconds stop_node_ns) override {
        std::unique_lock lock(mutex_);
        if (capturing_ != capture_id) return no_such();
        while (node_now() < stop_node_ns) {
            const std::chrono::nanoseconds left(stop_node_ns.value - node_now().value);
            waiting_.wait_for(lock, left);
        }
        if (on_stop) on_stop(*this, start_ticks_, ticks_at_node(stop_node_ns));
        capturing_ = 0;
        last_ = capture_id;
        CaptureReport report;
        report.id = capture_id;
        const std::string folder = options_.output_root + "/" + name_;
        ::mkdir(folder.c_str(), 0700);
        report.path = folder + "/" + options_.node + ".rsd";
        std::ofstream(report.path) << "dump";
        report.bytes = 4;
        report.complete = true;
        report.calibration = calibration_;
        report.start_ticks = start_ticks_;
        report.stop_ticks = ticks_at_node({stop_node_ns.value - ends_early_ns});
        report.processes = processes_to_give;
        report.history_ns = std::exchange(history_ns_, 0);
        report.window_note = note_;
        return report;
    }
    Result<ArmReport> arm(const ArmRequest& request) override {
        if (on_arm) on_arm();
        const std::lock_guard lock(mutex_);
        if (capturing_ != 0) return refused();
        ArmReport report;
        report.changed = window_.has_value();
        window_.emplace();
        window_->asked = request;
        report.window = *window_;
        return report;
    }
    Result<DisarmReport> disarm() override {
        const std::lock_guard lock(mutex_);
        DisarmReport report;
        report.window = std::exchange(window_, std::nullopt);
        return report;
    }
    Halves halves(std::uint64_t capture_id) const override {
        const std::lock_guard lock(mutex_);
        if (capture_id != last_) return nullptr;
        return std::make_shared<const std::vector<Half>>(halves_to_give);
    }
    bool all_ended() const override { return false; }
    EngineStatus status() const override {
        const std::lock_guard lock(mutex_);
        EngineStatus status;
        status.capturing = capturing_ != 0;
        status.capture_id = capturing_ != 0 ? capturing_ : last_;
        status.processes = static_cast<std::uint32_t>(processes_to_give.size());
        status.window = window_;
        status.directory = options_.root + "/" + options_.job;
        return status;
    }
    void set_memory(const MemoryOptions& memory) override { options_.memory = memory; }
    std::vector<ProcessReport> processes() override { return processes_to_give; }
    const Calibration& calibration() const override { return calibration_; }
    Nanoseconds node_now() const override {
        return node_time(calibration_, schema::read_ticks(schema::TicksSource::kMonotonic));
    }
    const EngineOptions& options() const override { return options_; }

    /// Ticks of this node's clock; all fake nodes share the host's, so a half's ticks are the true time.
    std::uint64_t ticks_at_node(Nanoseconds node_ns) const {
        const double run = static_cast<double>(node_ns.value - calibration_.reference_ns) *
                           calibration_.ticks_per_second / 1e9;
        return calibration_.reference_ticks +
               static_cast<std::uint64_t>(static_cast<std::int64_t>(run));
    }

private:
    schema::Error refused() const {
        return {schema::ErrorCode::kRefused, "a capture runs on node " + options_.node};
    }
    schema::Error no_such() const {
        return {schema::ErrorCode::kNothingMatched, "no such capture on node " + options_.node};
    }

    EngineOptions options_;
    Calibration calibration_;
    mutable std::mutex mutex_;
    std::condition_variable waiting_;
    std::uint64_t capturing_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t start_ticks_ = 0;
    std::string name_;
    mutable std::size_t iterations_told_ = 0;
    std::int64_t history_ns_ = 0;
    std::string note_;
    std::optional<WindowReport> window_;
};

}  // namespace ringside::agent::test
