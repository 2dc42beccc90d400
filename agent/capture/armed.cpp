// The engine's part of an armed window: arming, and the traces that are cut out of it. The window is a capture that goes on; a trace has a
// range of it copied, while the drain goes on.
#include <fcntl.h>
#include <algorithm>
#include <cmath>

#include "agent/capture/engine_impl.hpp"
#include "agent/capture/iterations.hpp"
#include "agent/capture/totals.hpp"
#include "agent/capture/verdict.hpp"
#include "agent/capture/words.hpp"
#include "agent/window/piece_file.hpp"
#include "schema/control_page.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

bool has(std::uint32_t options, schema::CaptureOption option) {
    return (options & static_cast<std::uint32_t>(option)) != 0;
}

/// The flags of `ringside arm` for these options.
std::string flags_of(std::uint32_t options) {
    std::string flags;
    if (has(options, schema::CaptureOption::kRecordShapes)) flags += " --record-shapes";
    if (has(options, schema::CaptureOption::kProfileMemory)) flags += " --profile-memory";
    return flags;
}

/// A turn, and as long for what it hands over.
constexpr Nanoseconds kHandOver{2 * schema::kTurnNs};

bool hands_over_late(const std::unique_ptr<TrackedProcess>& process) {
    const auto records_late = [](const SourceFacts& source) {
        return schema::has_turns(source.id) && (source.level == schema::SourceLevel::kFull ||
                                                source.level == schema::SourceLevel::kDegraded);
    };
    const auto& sources = process->facts.sources;
    return process->in_capture && process->alive() &&
           std::any_of(sources.begin(), sources.end(), records_late);
}

}  // namespace

Result<ArmReport> EngineImpl::arm(const ArmRequest& request) {
    Turn turn(*this);
    if (window() != nullptr) return change_window(request);
    if (capture_) {
        return Error{ErrorCode::kRefused, "arm a window on node " + options_.node + ": " +
                                              holder_text(capture_->request()) +
                                              " runs there; wait for its end or stop it"};
    }
    find(now_ticks());
    bury(now_ticks());
    CaptureRequest wanted;
    wanted.selection.pids = request.pids;
    if (auto known = check_selection("arm a window", wanted.selection); !known)
        return known.error();
    const int directory = table_.directory().descriptor();
    armed_ = request;
    if (armed_.max_bytes == 0) armed_.max_bytes = default_window_bytes(directory);
    wanted.source_mask = request.source_mask;
    wanted.options = request.options;
    const std::uint64_t now = now_ticks();
    auto made =
        Window::create(FileHandle(::fcntl(directory, F_DUPFD_CLOEXEC, 0)),
                       {options_.job, wanted.id, calibration_, now, wanted.options}, options_.node,
                       {armed_.keep.value, armed_.max_bytes}, [this] { return now_ticks(); });
    if (!made) return made.error();
    auto capture = std::make_unique<Capture>(wanted, std::move(*made), options_.job, calibration_);
    capture->begin(now);
    start(std::move(capture));
    wait_for(turn.lock(), request.attach_timeout,
             [this] { return window() == nullptr || all_attached(); });
    if (window() == nullptr) {
        return Error{ErrorCode::kRefused,
                     "arm a window on node " + options_.node + ": it was disarmed meanwhile"};
    }
    return ArmReport{false, attach_report(request.attach_timeout), window_report()};
}

/// Its word is off, and shims are waited for: nothing is cut out of it any more, nothing about it changes.
bool EngineImpl::is_disarming() const {
    return window() != nullptr && capture_->phase() == Capture::Phase::kDraining;
}

Error EngineImpl::disarming(const std::string& action) const {
    return {ErrorCode::kRefused, action + " on node " + options_.node +
                                     ": the window there is being disarmed; ask again in a second"};
}

Result<ArmReport> EngineImpl::change_window(const ArmRequest& request) {
    if (is_disarming()) return disarming("arm a window");
    const bool same = request.pids == armed_.pids && request.source_mask == armed_.source_mask &&
                      request.options == armed_.options;
    if (!same) {
        return Error{ErrorCode::kRefused,
                     "arm a window on node " + options_.node +
                         ": it is armed for other processes, sources or options, and what it "
                         "holds is of those; `ringside disarm` first"};
    }
    armed_.keep = request.keep;
    armed_.max_bytes = request.max_bytes != 0
                           ? request.max_bytes
                           : default_window_bytes(table_.directory().descriptor());
    window()->set_bounds({armed_.keep.value, armed_.max_bytes});
    return ArmReport{true, attach_report({0}), window_report()};
}

WindowReport EngineImpl::window_report() const {
    const PieceTotals totals = window()->store().totals();
    const std::int64_t now = node_now().value;
    WindowReport report;
    report.asked = armed_;
    report.armed_ns = now - calibration_.node_ns({window()->begun_ticks()}).value;
    report.holds_ns = now - calibration_.node_ns({totals.since_ticks}).value;
    report.bytes = totals.bytes;
    report.records = totals.records;
    report.pieces = totals.pieces;
    report.aged_records = totals.aged_records;
    if (totals.aged_until_ticks != 0)
        report.aged_until = calibration_.node_ns({totals.aged_until_ticks});
    report.lost = window()->losses().lost_total();
    if (totals.error != 0) {
        report.error = "write a window's piece: " + error_text(totals.error) +
                       "; free space in shared memory or arm with a smaller --max-bytes";
    }
    return report;
}

Result<DisarmReport> EngineImpl::disarm() {
    Turn turn(*this);
    DisarmReport report;
    if (excerpt_) {
        return Error{ErrorCode::kRefused, "disarm node " + options_.node + ": " +
                                              capture_text(excerpt_->request.id) +
                                              " is being cut out of the window; wait for its end "
                                              "or stop it"};
    }
    if (window() == nullptr) {
        if (!capture_) report.left_pieces = remove_pieces(table_.directory().descriptor());
        return report;
    }
    report.window = window_report();
    if (is_disarming()) {
        const std::uint64_t begun = window()->begun_ticks();
        passed_.wait(turn.lock(),
                     [&] { return window() == nullptr || window()->begun_ticks() != begun; });
        return report;
    }
    wait_until_let_go(turn.lock());
    window()->remove();
    end_capture();
    table_.forget_removed();
    return report;
}

Result<void> EngineImpl::check_armed_for(const CaptureRequest& request) const {
    const std::string action =
        "start " + capture_text(request.id) + " on node " + options_.node + ": ";
    const std::uint32_t missing = request.options & ~armed_.options;
    if (missing != 0) {
        return Error{ErrorCode::kRefused, action + "the window there is armed without" +
                                              flags_of(missing) +
                                              "; `ringside disarm`, then arm with it"};
    }
    if (request.source_mask != ~0u && request.source_mask != armed_.source_mask) {
        return Error{ErrorCode::kRefused,
                     action +
                         "the window there is armed for other sources; `ringside disarm`, "
                         "then arm for these"};
    }
    const auto armed = [&](int pid) {
        return std::find(armed_.pids.begin(), armed_.pids.end(), pid) != armed_.pids.end();
    };
    const std::vector<int>& pids = request.selection.pids;
    const bool all_armed = !pids.empty() && std::all_of(pids.begin(), pids.end(), armed);
    if (!armed_.pids.empty() && !all_armed) {
        return Error{ErrorCode::kRefused, action + "the window there is armed for the processes " +
                                              joined(armed_.pids) +
                                              " alone; name some of them with --pid, or "
                                              "`ringside disarm`"};
    }
    return {};
}

Result<PrepareReport> EngineImpl::prepare_excerpt(Turn& turn, const CaptureRequest& request) {
    if (excerpt_ && excerpt_->request.id != request.id) {
        return Error{ErrorCode::kRefused, "start " + capture_text(request.id) + " on node " +
                                              options_.node + ": " +
                                              holder_text(excerpt_->request) +
                                              " runs there; wait for its end or stop it"};
    }
    if (!excerpt_) {
        if (is_disarming()) return disarming("start " + capture_text(request.id));
        if (auto fits = check_armed_for(request); !fits) return fits.error();
        find(now_ticks());
        if (auto known = check_selection("start " + capture_text(request.id), request.selection);
            !known)
            return known.error();
        auto writer = DumpWriter::create({options_.output_root, request.name, options_.node,
                                          request.max_bytes, request.compress});
        if (!writer) return writer.error();
        excerpt_ = std::make_unique<ExcerptRun>(request, *window(), std::move(*writer));
    }
    // Armed a moment ago, some may still be at it.
    wait_for(turn.lock(), request.attach_timeout, [this] { return !excerpt_ || all_attached(); });
    if (!excerpt_) return no_such_capture(request.id, options_.node);
    return attach_report(request.attach_timeout);
}

bool EngineImpl::reaches(const TrackedProcess& process) const {
    return !process.ending || process.end_ticks >= excerpt_->excerpt.range().start;
}

void EngineImpl::include_in_excerpt(TrackedProcess& process) {
    if (!excerpt_ || excerpt_->stopping || !excerpt_->excerpt.begun() || !process.in_capture)
        return;
    if (!excerpt_->choice.means(process.id, process.candidate()) || !reaches(process)) return;
    excerpt_->excerpt.include(Capture::facts_of(process));
    // What has been drained before can't be looked at any more.
    process.drainer.iterations().start(excerpt_->request.iterations,
                                       std::max(excerpt_->excerpt.range().start, drained_until_));
}

void EngineImpl::begin_excerpt(std::uint64_t instant_ticks) {
    const PieceTotals totals = window()->store().totals();
    const std::int64_t asked_ns = excerpt_->request.history.value;
    const Nanoseconds instant = calibration_.node_ns({instant_ticks});
    const std::uint64_t wanted =
        asked_ns == 0 ? instant_ticks : calibration_.ticks_at({instant.value - asked_ns}).value;
    const std::uint64_t start = std::max(wanted, totals.since_ticks);
    excerpt_->instant_ticks = std::max(instant_ticks, start);
    if (start > wanted && asked_ns > 0) {
        std::string why = "it was armed then";
        if (totals.aged_until_ticks != 0) {
            why = "older has aged out (" +
                  (totals.aged_by_bytes ? "bound " + std::to_string(armed_.max_bytes >> 20) + " MiB"
                                        : "it keeps " + seconds_text(armed_.keep.value)) +
                  ")";
        }
        excerpt_->note = "of " + seconds_text(asked_ns) + ": " + why;
    }
    Excerpt& excerpt = excerpt_->excerpt;
    window()->hold(start);
    excerpt.begin({options_.job, excerpt_->request.id, calibration_, start, armed_.options});
    decide(excerpt_->choice);
    for (const auto& process : table_.all()) include_in_excerpt(*process);
    excerpt.start();
}

Result<CaptureReport> EngineImpl::stop_excerpt(Turn& turn, Nanoseconds stop_node_ns) {
    const std::uint64_t id = excerpt_->request.id;
    if (excerpt_->stopping) {
        passed_.wait(turn.lock(), [&] { return !excerpt_ || excerpt_->request.id != id; });
        if (last_ && last_->id == id) return *last_;
        return no_such_capture(id, options_.node);
    }
    // A trace that is given up before its instant: its dump holds nothing.
    if (!excerpt_->excerpt.begun()) begin_excerpt(now_ticks());
    excerpt_->stopping = true;
    Excerpt& excerpt = excerpt_->excerpt;
    const std::uint64_t stop = excerpt.set_stop(calibration_.ticks_at(stop_node_ns).value);
    // The armed sources go on, so none hands over its last as at a capture's end: what was done by now comes with its next turn.
    const std::int64_t late = std::any_of(table_.all().begin(), table_.all().end(), hands_over_late)
                                  ? kHandOver.value
                                  : 0;
    wait_until_node(turn.lock(), {calibration_.node_ns({stop}).value + late});
    CaptureReport report;
    std::vector<Half> halves;
    DumpFooter footer = cut_excerpt(report, halves);
    excerpt.mark_end();
    const auto losses = window()->losses().within(excerpt.range().start, excerpt.range().stop);
    // The copy takes its time; the drain goes on.
    turn.lock().unlock();
    excerpt.join();
    excerpt.count_losses(losses);
    for (ProcessReport& process : report.processes) {
        const auto index = excerpt.index_of(process.index);
        if (!index) continue;
        const ExcerptCount count = excerpt.count(process.index);
        process.index = *index;
        process.events = count.kept;
        process.bytes = count.bytes;
        process.lost += count.lost;
        report.records += process.events;
        report.lost += process.lost;
    }
    std::erase_if(halves, [&](const Half& half) {
        return !excerpt.holds(half.process, half.lane, half.position);
    });
    for (Half& half : halves) half.process = *excerpt.index_of(half.process);
    const DumpReceipt receipt = excerpt.finish(std::move(footer));
    report.path = receipt.path;
    report.bytes = receipt.bytes;
    report.complete = receipt.complete;
    report.error = receipt.error;
    turn.lock().lock();
    add_unseen(excerpt_->request.selection, report.processes);
    report.left_out = excerpt_->choice.left_out();
    halves_ = std::make_shared<const std::vector<Half>>(std::move(halves));
    last_ = std::move(report);
    window()->hold(~0ull);
    excerpt_.reset();
    passed_.notify_all();
    return *last_;
}

/// The last look at everything that the range may hold: drained, told and counted as it is now.
/// @return the footer without its lanes; processes and halves bear the window's indices
DumpFooter EngineImpl::cut_excerpt(CaptureReport& report, std::vector<Half>& halves) {
    const std::uint64_t now = now_ticks();
    find(now);
    bury(now);
    for (const auto& process : table_.all()) {
        if (process->in_capture && process->segment)
            process->drainer.drain_all(*buffers_, capture_->range(), now, true);
    }
    capture_->flush(table_.all(), *buffers_, now, true);
    settle_iterations(captured(), excerpt_->request.iterations);
    Excerpt& excerpt = excerpt_->excerpt;
    const TickRange range = excerpt.range();
    DumpFooter footer;
    footer.start_ticks = range.start;
    footer.stop_ticks = range.stop;
    footer.record_cost_ns = record_cost_ns_;
    for (const auto& process : table_.all()) {
        const auto index = excerpt.index_of(process->index);
        if (!process->in_capture || !index) continue;
        excerpt.tell_last(Capture::facts_of(*process));
        const ProcessCounters before = window()->losses().at(process->index, range.start);
        auto losses = process->losses_in_capture();
        for (std::uint32_t i = 0; i < schema::kLossCounters; ++i)
            losses[i] -= std::min(losses[i], before.losses[i]);
        footer.unknown_records += process->drainer.unknown_records() - before.unknown_records;
        const bool ended = process->ending && process->end_ticks <= range.stop;
        const std::uint64_t end = ended ? process->end_ticks : range.stop;
        OpenFacts open = process->open_at(end);
        footer.processes.push_back({*index,
                                    ended ? process->ending->fate : Fate::kRunning,
                                    end,
                                    {losses.begin(), losses.end()},
                                    process->drainer.violations(),
                                    process->start_delay_ns,
                                    process->iterations,
                                    std::move(open)});
        process->drainer.iterations().stop();
        report.processes.push_back(report_process(*process, true));
        process->iterations.reset();  // this trace's, the window goes on
        report.processes.back().lost = passed_over(losses);
        if (!process->ending) report.processes.back().end_ticks = range.stop;
        for (const RawHalf& raw : process->drainer.halves().halves()) {
            if (!range.contains(raw.begin_ticks)) continue;
            halves.push_back(told_half(raw, process->index, process->drainer.names()));
            if (raw.ended && raw.end_ticks > range.stop) halves.back().ended = false;
        }
    }
    report.id = excerpt_->request.id;
    report.calibration = calibration_;
    report.start_ticks = range.start;
    report.stop_ticks = range.stop;
    report.record_cost_ns = record_cost_ns_;
    report.history_ns = calibration_.node_ns({excerpt_->instant_ticks}).value -
                        calibration_.node_ns({range.start}).value;
    report.window_note = excerpt_->note;
    return footer;
}

/// Processes whose end lies before all that the window holds.
void EngineImpl::forget_aged() {
    if (window() == nullptr) return;
    table_.forget_removed_before(window()->needed_from(), [this](const TrackedProcess& process) {
        if (!process.in_capture) return;  // its index is another's, its sums are a capture's before
        window()->losses().forget(process.index);
        add(ended_, process);
    });
}

}  // namespace ringside::agent
