// The engine: one lock, one drain thread. The drain thread makes passes (find, drain, follow, flush); the callers change the capture's
// phase between two passes and wait, on the condition that each pass announces, for what a pass brings.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/capture/capture.hpp"
#include "agent/capture/capture_note.hpp"
#include "agent/capture/process_table.hpp"
#include "agent/window/excerpt.hpp"

namespace ringside::agent {

class EngineImpl final : public Engine {
public:
    EngineImpl(EngineOptions options, ProcessTable table, const Calibration& calibration,
               double record_cost_ns);
    ~EngineImpl() override;
    EngineImpl(const EngineImpl&) = delete;
    EngineImpl& operator=(const EngineImpl&) = delete;

    Result<PrepareReport> prepare(const CaptureRequest& request) override;
    Result<void> begin(std::uint64_t capture_id, Nanoseconds start_node_ns) override;
    Result<void> capture_from_start(const CaptureRequest& request) override;
    Result<IterationProgress> iterations(std::uint64_t capture_id) const override;
    Result<CaptureReport> stop(std::uint64_t capture_id, Nanoseconds stop_node_ns) override;
    Result<ArmReport> arm(const ArmRequest& request) override;
    Result<DisarmReport> disarm() override;
    Halves halves(std::uint64_t capture_id) const override;
    bool all_ended() const override;
    std::optional<CaptureReport> recovered() const override;
    /// Why the capture that was found could not be ended; before the drain thread has begun.
    const std::optional<schema::Error>& recover_error() const { return recover_error_; }
    Result<std::optional<CaptureReport>> take_left_behind(const CaptureRequest& request) override;
    std::uint64_t removed_segments() const override;

    /// Ends the capture that was found, once the drain thread runs. Called once, by open().
    void end_found_capture();

    void set_memory(const MemoryOptions& memory) override;
    EngineStatus status() const override;
    std::vector<ProcessReport> processes() override;
    const Calibration& calibration() const override { return calibration_; }
    Nanoseconds node_now() const override { return calibration_.node_ns({now_ticks()}); }
    const EngineOptions& options() const override { return options_; }

private:
    /// A caller's turn at the lock. The drain thread, which would otherwise take it again at once, lets callers go first.
    class Turn {
    public:
        explicit Turn(const EngineImpl& engine);
        std::unique_lock<std::mutex>& lock() { return lock_; }

    private:
        std::unique_lock<std::mutex> lock_;
    };

    std::uint64_t now_ticks() const { return schema::read_ticks(calibration_.source).value; }

    // the drain thread (passes.cpp)
    void run();
    Nanoseconds pass(const Watch::Events& events);
    void find(std::uint64_t now);
    double drain(std::uint64_t now);
    void bury(std::uint64_t now);
    void bury(const std::vector<TrackedProcess*>& ended, std::uint64_t now);
    void bury_some(std::span<TrackedProcess* const> ended, std::uint64_t now);
    void bury_left_behind(std::uint64_t now);
    Nanoseconds interval(double fullest);

    // captures (engine_impl.cpp), under the lock
    Result<void> order(const CaptureRequest& request, bool from_start);
    void start(std::unique_ptr<Capture> capture);
    void wait_until_let_go(std::unique_lock<std::mutex>& lock);
    void end_capture();
    CaptureNote note_of(const CaptureRequest& request, bool from_start) const;
    bool all_attached() const;
    void wait_until_node(std::unique_lock<std::mutex>& lock, Nanoseconds node_ns);
    void wait_for(std::unique_lock<std::mutex>& lock, Nanoseconds most,
                  const std::function<bool()>& done);
    CaptureReport finish_capture();
    Halves collect_halves() const;
    bool runs(std::uint64_t capture_id) const;
    /// Processes of the running capture; of the trace that is cut out of a window where one is.
    std::vector<TrackedProcess*> captured() const;
    Totals totals() const;
    std::int64_t iteration_ns(const TrackedProcess& process) const;

    // whom a request means (engine_choice.cpp), under the lock
    Result<void> check_selection(const std::string& action, const Selection& selection) const;
    void decide(Choice& choice) const;
    void decide_again(Choice& choice);
    void choose_again();
    void choose_again_in_excerpt();
    PrepareReport attach_report(Nanoseconds waited);
    std::vector<ProcessReport> unseen(const Selection& selection) const;
    void add_unseen(const Selection& selection, std::vector<ProcessReport>& reports) const;

    // the window (armed.cpp), under the lock; what copies for long lets it go meanwhile
    Window* window() const { return capture_ ? capture_->window() : nullptr; }
    bool is_disarming() const;
    schema::Error disarming(const std::string& action) const;
    Result<ArmReport> change_window(const ArmRequest& request);
    WindowReport window_report() const;
    Result<PrepareReport> prepare_excerpt(Turn& turn, const CaptureRequest& request);
    Result<void> check_armed_for(const CaptureRequest& request) const;
    void begin_excerpt(std::uint64_t instant_ticks);
    bool reaches(const TrackedProcess& process) const;
    void include_in_excerpt(TrackedProcess& process);
    Result<CaptureReport> stop_excerpt(Turn& turn, Nanoseconds stop_node_ns);
    DumpFooter cut_excerpt(CaptureReport& report, std::vector<Half>& halves);
    void forget_aged();

    // after an agent that died (engine_recover.cpp)
    void find_window();
    void say_window(const schema::Error& error);
    void find_capture(std::uint64_t now);
    void say_recovered(const CaptureNote& note, const schema::Error& error);
    void finish_found_capture(Turn& turn);

    const EngineOptions options_;
    const Calibration calibration_;
    const double record_cost_ns_;

    mutable std::mutex mutex_;
    mutable std::condition_variable passed_;  ///< a pass is done, or a caller has had its turn
    mutable std::atomic<int> callers_{0};
    ProcessTable table_;
    std::unique_ptr<Capture> capture_;
    /// A trace that is cut out of the armed window.
    struct ExcerptRun {
        ExcerptRun(CaptureRequest asked, Window& window, std::unique_ptr<DumpWriter> writer)
            : request(std::move(asked)),
              choice(request.selection),
              excerpt(window, std::move(writer)) {}

        CaptureRequest request;
        Choice choice;
        Excerpt excerpt;
        std::uint64_t instant_ticks = 0;
        std::string note;
        bool stopping = false;
    };
    std::unique_ptr<ExcerptRun> excerpt_;
    ArmRequest armed_;  ///< what the window was asked for
    std::optional<CaptureReport> last_;
    Halves halves_;  ///< of `last_`
    Totals ended_;   ///< of captures that are over, and of processes that are forgotten
    std::optional<CaptureReport> recovered_;
    std::string recovered_text_;
    std::string found_dump_;
    bool window_found_ = false;  ///< the capture that was found is what a window has become
    std::string cut_text_;
    std::optional<schema::Error> recover_error_;
    std::unique_ptr<DrainBuffers> buffers_ = std::make_unique<DrainBuffers>();
    bool opened_ = false;  ///< what is found from here on was left to nobody before us
    bool quit_ = false;

    // the drain thread's own pace
    std::uint64_t last_find_ = 0;
    std::uint64_t last_bury_ = 0;
    std::uint64_t last_flush_ = 0;
    std::uint64_t last_tidy_ = 0;  ///< the budget told, what has aged out of the window forgotten
    std::uint64_t drained_until_ = 0;  ///< what began later has not been drained yet
    std::size_t pending_ = 0;  ///< bytes that were taken and not written, after the last pass
    bool waits_ = false;       ///< some released lane waits for its last block
    std::int64_t interval_ns_ = 0;
    std::thread thread_;
};

}  // namespace ringside::agent
