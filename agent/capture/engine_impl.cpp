#include "agent/capture/engine_impl.hpp"

#include <algorithm>
#include <chrono>

#include "agent/attach/without_signals.hpp"
#include "agent/capture/calibration.hpp"
#include "agent/capture/iterations.hpp"
#include "agent/capture/record_cost.hpp"
#include "agent/capture/verdict.hpp"
#include "agent/capture/words.hpp"
#include "agent/window/piece_file.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// How long stop() waits for shims to say that they have let go: one that is stopped or hung never will.
constexpr Nanoseconds kLetGo{1'000'000'000};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options) {
    auto directory = JobDirectory::open(options.root, options.job, options.node, options.standby);
    if (!directory) return directory.error();
    auto watch = Watch::open(directory->path().c_str());
    if (!watch) return watch.error();
    const Calibration calibration =
        measure_calibration(options.skew_offset_ns, options.skew_drift_ppb);
    const double cost = measure_record_cost_ns(calibration.source, calibration.ticks_per_second);
    ProcessTable table(std::move(*directory), std::move(*watch), options.memory);
    auto engine = std::make_unique<EngineImpl>(options, std::move(table), calibration, cost);
    if (options.recover.id != 0 && engine->recover_error()) return *engine->recover_error();
    engine->end_found_capture();
    return std::unique_ptr<Engine>(std::move(engine));
}

EngineImpl::Turn::Turn(const EngineImpl& engine) {
    engine.callers_.fetch_add(1, std::memory_order_relaxed);
    lock_ = std::unique_lock(engine.mutex_);
    engine.callers_.fetch_sub(1, std::memory_order_relaxed);
    engine.passed_.notify_all();
}

EngineImpl::EngineImpl(EngineOptions options, ProcessTable table, const Calibration& calibration,
                       double record_cost_ns)
    : options_(std::move(options)),
      calibration_(calibration),
      record_cost_ns_(record_cost_ns),
      table_(std::move(table)) {
    find_window();
    find_capture(now_ticks());
    if (options_.recover.id != 0 && recover_error_) return;
    find(now_ticks());
    const WithoutSignals without;
    thread_ = std::thread([this] { run(); });
}

EngineImpl::~EngineImpl() {
    {
        const Turn turn(*this);
        quit_ = true;
        if (capture_) table_.directory().control().turn_off();
    }
    table_.watch().wake();
    if (thread_.joinable()) thread_.join();
    excerpt_.reset();
    // An agent that ends in order leaves nothing: what it held in memory is gone, and nobody would know whose the rest is.
    if (Window* const armed = window()) armed->remove();
}

bool EngineImpl::runs(std::uint64_t capture_id) const {
    return capture_ && !capture_->window() && capture_->request().id == capture_id;
}

Result<void> EngineImpl::order(const CaptureRequest& request, bool from_start) {
    if (window() != nullptr) {
        return Error{ErrorCode::kRefused,
                     "start " + capture_text(request.id) + " on node " + options_.node +
                         ": a window is armed there; `ringside disarm` ends it"};
    }
    if (capture_) {
        return Error{ErrorCode::kRefused, "start " + capture_text(request.id) + " on node " +
                                              options_.node + ": " +
                                              holder_text(capture_->request()) +
                                              " runs there; wait for its end or stop it"};
    }
    find(now_ticks());
    bury(now_ticks());
    if (auto noted = write_note(table_.directory().path(), note_of(request, from_start)); !noted)
        return noted;
    auto writer = DumpWriter::create(
        {options_.output_root, request.name, options_.node, request.max_bytes, request.compress});
    if (!writer) {
        remove_note(table_.directory().path());
        return writer.error();
    }
    auto capture =
        std::make_unique<Capture>(request, std::move(*writer), options_.job, calibration_);
    if (from_start) capture->begin(0);
    start(std::move(capture));
    return {};
}

void EngineImpl::start(std::unique_ptr<Capture> capture) {
    table_.forget_removed();
    // What they have loaded since: who has a framework is waited for, and chosen first.
    for (const auto& process : table_.all()) process->refresh();
    decide(capture->choice());
    for (const auto& process : table_.all()) {
        process->in_capture = false;
        if (capture->include(*process) && capture->selects_some())
            process->segment->set_selected(true);
    }
    capture_ = std::move(capture);
    ControlOrder order;
    order.selected_only = capture_->selects_some();
    order.source_mask = capture_->request().source_mask;
    order.options = capture_->request().options;
    order.start_ticks = capture_->range().start;
    const std::uint64_t now = now_ticks();
    capture_->ordered(table_.directory().control().turn_on(order), now);
    // What the hooks had counted before the capture stands in the file before the first record.
    if (capture_->phase() == Capture::Phase::kRunning)
        capture_->flush(table_.all(), *buffers_, now, false);
    last_flush_ = now;
    interval_ns_ = 0;
    // What the dead have left is all in their lanes: take it now, their end has been seen already.
    bury_left_behind(now);
    table_.watch().wake();
}

Result<PrepareReport> EngineImpl::prepare(const CaptureRequest& request) {
    Turn turn(*this);
    if (window() != nullptr) return prepare_excerpt(turn, request);
    if (request.history.value > 0) {
        return Error{ErrorCode::kRefused, "start " + capture_text(request.id) + " on node " +
                                              options_.node +
                                              " with history: no window is armed there; `ringside "
                                              "arm` keeps one from then on"};
    }
    if (!runs(request.id)) {
        find(now_ticks());
        if (auto known = check_selection("start " + capture_text(request.id), request.selection);
            !known)
            return known.error();
        if (auto ordered = order(request, false); !ordered) return ordered.error();
    }
    wait_for(turn.lock(), request.attach_timeout, [this] { return !capture_ || all_attached(); });
    if (!capture_) return no_such_capture(request.id, options_.node);
    return attach_report(request.attach_timeout);
}

bool EngineImpl::all_attached() const {
    return std::all_of(table_.all().begin(), table_.all().end(), [](const auto& process) {
        return !process->in_capture || !process->can_attach() || process->attached ||
               !process->must_attach();
    });
}

Result<void> EngineImpl::begin(std::uint64_t capture_id, Nanoseconds start_node_ns) {
    Turn turn(*this);
    if (excerpt_ && excerpt_->request.id == capture_id) {
        if (!excerpt_->excerpt.begun()) begin_excerpt(calibration_.ticks_at(start_node_ns).value);
        return {};
    }
    if (!runs(capture_id)) return no_such_capture(capture_id, options_.node);
    // Asked twice (an answer was lost): the first instant stands.
    if (capture_->phase() != Capture::Phase::kAttaching) return {};
    // An order that comes after its instant: what was drained since is gone, so that the capture begins later, and says so.
    const std::uint64_t start =
        std::max(calibration_.ticks_at(start_node_ns).value, drained_until_);
    capture_->begin(start);
    table_.directory().control().set_start_ticks(start);
    capture_->flush(table_.all(), *buffers_, now_ticks(), false);
    // What lies in the lanes from before is taken off at once: the room is the capture's.
    interval_ns_ = 0;
    table_.watch().wake();
    return {};
}

Result<void> EngineImpl::capture_from_start(const CaptureRequest& request) {
    Turn turn(*this);
    if (runs(request.id)) return {};
    return order(request, true);
}

void EngineImpl::wait_for(std::unique_lock<std::mutex>& lock, Nanoseconds most,
                          const std::function<bool()>& done) {
    table_.watch().wake();
    passed_.wait_for(lock, std::chrono::nanoseconds(most.value), done);
}

void EngineImpl::wait_until_node(std::unique_lock<std::mutex>& lock, Nanoseconds node_ns) {
    for (;;) {
        const Nanoseconds now = node_now();
        if (now >= node_ns) return;
        passed_.wait_for(lock, std::chrono::nanoseconds(node_ns.value - now.value));
    }
}

Result<CaptureReport> EngineImpl::stop(std::uint64_t capture_id, Nanoseconds stop_node_ns) {
    Turn turn(*this);
    if (excerpt_ && excerpt_->request.id == capture_id) return stop_excerpt(turn, stop_node_ns);
    const auto gone = [&] { return !runs(capture_id); };
    // Somebody else's stop: by the time that we wake the next capture may have begun.
    if (!gone() && capture_->phase() >= Capture::Phase::kStopping) passed_.wait(turn.lock(), gone);
    if (gone()) {
        if (last_ && last_->id == capture_id) return *last_;
        return no_such_capture(capture_id, options_.node);
    }
    // As with the start: what came after the instant and before the order has been kept.
    const std::uint64_t stop = std::max(calibration_.ticks_at(stop_node_ns).value, drained_until_);
    capture_->set_stop(stop);
    table_.directory().control().set_stop_ticks(stop);
    wait_until_node(turn.lock(), stop_node_ns);
    wait_until_let_go(turn.lock());
    last_ = finish_capture();
    passed_.notify_all();
    return *last_;
}

/// Turns the word off.
void EngineImpl::wait_until_let_go(std::unique_lock<std::mutex>& lock) {
    capture_->draining(table_.directory().control().turn_off());
    interval_ns_ = 0;
    wait_for(lock, kLetGo, [this] {
        return std::all_of(table_.all().begin(), table_.all().end(),
                           [this](const auto& process) { return capture_->has_let_go(*process); });
    });
}

/// What comes from now on is thrown away.
void EngineImpl::end_capture() {
    ended_ = totals();
    for (const auto& process : table_.all()) {
        process->drainer.stop(*buffers_);
        if (process->segment) process->segment->set_selected(false);
    }
    buffers_->spares.release();
    capture_.reset();
}

CaptureReport EngineImpl::finish_capture() {
    const std::uint64_t now = now_ticks();
    find(now);
    bury(now);
    for (const auto& process : table_.all()) {
        if (process->in_capture && process->segment)
            process->drainer.drain_all(*buffers_, capture_->range(), now, true);
    }
    capture_->flush(table_.all(), *buffers_, now, true);
    settle_iterations(captured(), capture_->request().iterations);
    decide_again(capture_->choice());
    CaptureReport report = capture_->finish(table_.all(), now, record_cost_ns_);
    add_unseen(capture_->request().selection, report.processes);
    halves_ = collect_halves();
    end_capture();
    // The dump has its name; before the note goes, so that whoever comes after a kill in between does not copy them again.
    if (std::exchange(window_found_, false) && report.complete)
        remove_pieces(table_.directory().descriptor());
    remove_note(table_.directory().path());
    return report;
}

CaptureNote EngineImpl::note_of(const CaptureRequest& request, bool from_start) const {
    return {request.id,        options_.node,     options_.output_root,
            request.name,      request.max_bytes, request.options,
            request.selection, from_start,        request.compress};
}

Halves EngineImpl::collect_halves() const {
    std::vector<Half> halves;
    for (const auto& process : table_.all()) {
        if (!process->in_capture) continue;
        for (const RawHalf& raw : process->drainer.halves().halves())
            halves.push_back(told_half(raw, process->index, process->drainer.names()));
    }
    return std::make_shared<const std::vector<Half>>(std::move(halves));
}

Halves EngineImpl::halves(std::uint64_t capture_id) const {
    const Turn turn(*this);
    return last_ && last_->id == capture_id ? halves_ : nullptr;
}

bool EngineImpl::all_ended() const {
    const Turn turn(*this);
    if (!capture_ || window() != nullptr || capture_->included() == 0) return false;
    return std::none_of(table_.all().begin(), table_.all().end(), [](const auto& process) {
        return process->in_capture && process->alive();
    });
}

EngineStatus EngineImpl::status() const {
    const Turn turn(*this);
    EngineStatus status;
    status.directory = table_.directory().path();
    status.notice = table_.notice();
    status.record_cost_ns = record_cost_ns_;
    status.recovered = recovered_text_;
    status.found_dump = found_dump_;
    status.totals = totals();
    status.capturing = excerpt_ || (capture_ && window() == nullptr);
    if (window() != nullptr) {
        status.window = window_report();
    } else {
        for (const FoundPiece& piece : find_pieces(table_.directory().descriptor())) {
            ++status.left_pieces;
            status.left_bytes += piece.bytes;
        }
    }
    for (const auto& process : table_.all()) {
        if (process->alive()) {
            ++status.processes;
            status.iteration_ns = std::max(status.iteration_ns, iteration_ns(*process));
        }
        if (!status.capturing || excerpt_ || !process->in_capture) continue;
        status.events += process->drainer.kept();
        status.lost += process->drainer.lost() + process->passed_over();
    }
    if (excerpt_) {
        status.capture_id = excerpt_->request.id;
        status.asker = excerpt_->request.asker;
        status.events = excerpt_->excerpt.kept();
        status.lost = excerpt_->excerpt.lost();
        status.bytes = excerpt_->excerpt.bytes();
    } else if (status.capturing) {
        status.capture_id = capture_->request().id;
        status.asker = capture_->request().asker;
        status.bytes = capture_->bytes();
    } else if (last_) {
        status.capture_id = last_->id;
        status.events = last_->records;
        status.lost = last_->lost;
        status.bytes = last_->bytes;
    }
    return status;
}

std::vector<ProcessReport> EngineImpl::processes() {
    const Turn turn(*this);
    find(now_ticks());
    std::vector<ProcessReport> reports;
    for (const auto& process : table_.all()) {
        if (!process->alive() && !(capture_ && process->in_capture)) continue;
        if (process->segment) {
            process->refresh();
            process->drainer.names().use(*process->segment, process->facts.worker_name.value);
        }
        const bool in = capture_ && process->in_capture;
        reports.push_back(report_process(*process, in));
        reports.back().iterations_seen = in ? process->drainer.pace().count() : 0;
        reports.back().iteration_ns = iteration_ns(*process);
    }
    add_unseen({}, reports);
    return reports;
}

}  // namespace ringside::agent
