#include "agent/capture/capture.hpp"

#include <algorithm>

#include "agent/capture/perturbation.hpp"
#include "agent/capture/verdict.hpp"

namespace ringside::agent {
namespace {

bool same_clock(const schema::ClockSnapshot& a, const schema::ClockSnapshot& b) {
    return a.ticks == b.ticks && a.monotonic_ns == b.monotonic_ns;
}

ProcessEndFacts end_of(const TrackedProcess& process, std::uint64_t ticks) {
    ProcessEndFacts end;
    end.process = process.index;
    end.fate = process.ending ? process.ending->fate : Fate::kRunning;
    end.ticks = ticks;
    const auto losses = process.losses_in_capture();
    end.losses.assign(losses.begin(), losses.end());
    end.violations = process.drainer.violations();
    end.start_delay_ns = process.start_delay_ns;
    end.iterations = process.iterations;
    return end;
}

/// Whether a reader would learn nothing new from another Process chunk.
bool same_to_a_reader(const ProcessFacts& a, const ProcessFacts& b) {
    return a.worker_name == b.worker_name && a.segment.worker_id == b.segment.worker_id &&
           a.segment.rank == b.segment.rank && a.segment.sources == b.segment.sources &&
           same_clock(a.segment.capture_clock, b.segment.capture_clock) &&
           a.start_delay_ns == b.start_delay_ns && a.end.has_value() == b.end.has_value();
}

}  // namespace

Capture::Capture(CaptureRequest request, std::unique_ptr<DumpWriter> writer, std::string job,
                 const Calibration& calibration)
    : request_(std::move(request)),
      writer_(std::move(writer)),
      sink_(*writer_),
      job_(std::move(job)),
      calibration_(calibration) {}

Capture::Capture(CaptureRequest request, std::unique_ptr<Window> window, std::string job,
                 const Calibration& calibration)
    : request_(std::move(request)),
      window_(std::move(window)),
      sink_(*window_),
      job_(std::move(job)),
      calibration_(calibration) {}

void Capture::resume(PartialDump partial, bool from_start) {
    resumed_ = true;
    if (partial.has_header) {
        header_written_ = true;
        calibration_ = partial.header.calibration;
        range_.start = partial.header.start_ticks;
        phase_ = Phase::kRunning;
    } else if (from_start) {
        begin(0);
    }
    next_index_ = static_cast<std::uint32_t>(partial.processes.size());
    for (PartialProcess& process : partial.processes)
        past_.emplace(process.facts.segment.id, std::move(process));
}

void Capture::go_on(TrackedProcess& process, PartialProcess part) {
    process.refresh();
    const auto& losses = part.facts.losses_before;
    process.losses_before = {};
    std::copy_n(losses.begin(), std::min(losses.size(), process.losses_before.size()),
                process.losses_before.begin());
    process.in_capture = true;
    process.index = part.facts.index;
    process.start_delay_ns = part.facts.start_delay_ns;
    process.attached = process.start_delay_ns >= 0;
    process.iterations.reset();
    process.told.reset();
    process.reached = part.facts.segment.sources;
    process.drainer.resume(process.index, std::move(part.accounts), std::move(part.carries),
                           part.bytes);
    process.drainer.names().restore(part.names);
}

bool Capture::include(TrackedProcess& process) {
    if (process.in_capture || process.segment == nullptr) return false;
    if (auto past = past_.extract(process.id)) {
        go_on(process, std::move(past.mapped()));
        return true;
    }
    if (!wants(process)) return false;
    // The dead are of use to a capture of everything that is there, and to the one that they were born under. Who is found dead while one
    // runs has come since it was ordered, or a moment before; where an agent died in between it may be anybody's.
    const std::uint64_t since = resumed_ ? range_.start : order_ticks_;
    const bool whole =
        range_.start == 0 || ((resumed_ || on_word_ != 0) && process.id.start_ticks >= since);
    if (process.ending && !(process.left_behind && whole)) return false;
    if (resumed_ && process.left_behind && !whole) return false;
    process.refresh();
    process.losses_before = {};
    // One that is taken whole has nothing from before.
    if (!whole) process.losses_before = process.facts.losses;
    process.in_capture = true;
    process.index = next_index_++;
    process.attached = false;
    process.came_late = false;
    process.waited = {0};
    process.start_delay_ns = -1;
    process.told.reset();
    process.reached.clear();
    process.iterations.reset();
    process.drainer.start(process.index);
    process.drainer.iterations().start(request_.iterations, 0);
    return true;
}

void Capture::ordered(std::uint32_t word, std::uint64_t now_ticks) {
    on_word_ = word;
    order_ticks_ = now_ticks;
    order_cpu_ns_ = own_cpu_ns();
}

void Capture::begin(std::uint64_t start_ticks) {
    range_.start = start_ticks;
    phase_ = Phase::kRunning;
    if (header_written_) return;
    header_written_ = true;
    if (writer_) writer_->header({job_, request_.id, calibration_, start_ticks, request_.options});
}

void Capture::set_stop(std::uint64_t stop_ticks) {
    // A capture that never began holds nothing; its dump says so.
    if (!header_written_) begin(stop_ticks);
    range_.stop = std::max(stop_ticks, range_.start);
    phase_ = Phase::kStopping;
}

void Capture::draining(std::uint32_t word) {
    off_word_ = word;
    phase_ = Phase::kDraining;
}

void Capture::follow_attach(TrackedProcess& process, std::uint64_t now_ticks) const {
    if (process.attached || on_word_ == 0) return;
    const auto pulse = process.segment->pulse();
    if (!pulse || pulse->attached_word != on_word_) return;
    process.attached = true;
    process.refresh();
    // A process born during the capture could not attach before it was there.
    const std::uint64_t asked = std::max(order_ticks_, process.id.start_ticks);
    const std::uint64_t told = process.facts.capture_clock.ticks;
    const std::uint64_t done = told >= asked && told <= now_ticks ? told : now_ticks;
    process.start_delay_ns =
        done < asked ? 0 : calibration_.node_ns({done}).value - calibration_.node_ns({asked}).value;
}

bool Capture::has_let_go(TrackedProcess& process) const {
    if (!process.in_capture || !process.alive() || !process.attached) return true;
    const auto pulse = process.segment->pulse();
    return !pulse || pulse->attached_word == off_word_;
}

ProcessFacts Capture::facts_of(TrackedProcess& process) {
    if (process.segment) {
        process.refresh();
        process.drainer.names().use(*process.segment, process.facts.worker_name.value);
    }
    ProcessFacts facts{process.index, process.life ? process.life->host_pid() : 0,
                       process.drainer.names().text(process.facts.worker_name),
                       process.facts_in_capture()};
    facts.losses_before.assign(process.losses_before.begin(), process.losses_before.end());
    facts.start_delay_ns = process.start_delay_ns;
    // Before its segment goes: from here on this file alone knows.
    if (process.ending) {
        facts.end = end_of(process, process.end_ticks);
        facts.end_reason = process.ending->reason;
    }
    return facts;
}

void Capture::tell(TrackedProcess& process) {
    ProcessFacts facts = facts_of(process);
    if (process.told && same_to_a_reader(*process.told, facts)) return;
    // A piece tells what has been counted until it: who reads it without those before it has lost none of that.
    if (window_) {
        const auto& counted = process.facts.losses;
        facts.losses_before.assign(counted.begin(), counted.end());
    }
    sink_.process(facts);
    process.told = std::move(facts);
}

void Capture::flush(std::vector<std::unique_ptr<TrackedProcess>>& processes, DrainBuffers& buffers,
                    std::uint64_t now_ticks, bool last) {
    if (!header_written_) return;
    std::size_t lanes = 0, count = 0, untold = 0;
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        lanes += process->drainer.accounts().size();
        ++count;
        untold += !(process->told && process->told->end);
    }
    for (const auto& [id, past] : past_) {
        lanes += past.accounts.size();
        ++count;
    }
    if (writer_) writer_->reserve_end(lanes, count, untold);
    // A frame is bounded, what waits is not (an agent that was stopped for a while): some processes at a time.
    BlocksGroup group;
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        // Of one that has been buried all is told, and nothing comes any more.
        if (process->segment == nullptr && process->told && process->told->end) continue;
        tell(*process);
        process->drainer.seal(buffers, range_, now_ticks, last || process->ending.has_value());
        add(group, *process);
        if (group.bytes >= kGroupBytes) write(group, buffers, now_ticks);
    }
    write(group, buffers, now_ticks);
    if (window_) turn(processes, now_ticks);
}

void Capture::turn(std::vector<std::unique_ptr<TrackedProcess>>& processes,
                   std::uint64_t now_ticks) {
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        process->drainer.take_losses([&](const LaneAccount& account, const LossSpan& lost) {
            window_->losses().add({process->index, account.lane, account.tid, lost.records,
                                   lost.first_ticks, lost.last_ticks});
        });
        window_->losses().note(process->index, now_ticks,
                               {process->losses_in_capture(), process->drainer.unknown_records()});
    }
    if (!window_->turn()) return;
    const std::uint64_t oldest = window_->needed_from();
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        process->told.reset();
        process->drainer.begin_piece(oldest);
    }
}

void Capture::flush_one(TrackedProcess& process, DrainBuffers& buffers, std::uint64_t now_ticks) {
    if (!header_written_ || !process.in_capture) return;
    if (!process.told) tell(process);
    process.drainer.seal(buffers, range_, now_ticks, false);
    BlocksGroup group;
    add(group, process);
    write(group, buffers, now_ticks);
}

/// Its names, and its blocks into the group.
void Capture::add(BlocksGroup& group, TrackedProcess& process) {
    NamesBatch batch;
    batch.process = process.index;
    if (process.drainer.names().take(batch)) sink_.names(batch);
    group.add(process);
}

void Capture::BlocksGroup::add(TrackedProcess& process) {
    for (const Block& block : process.drainer.sealed()) {
        blocks.push_back(&block);
        bytes += block.data.size();
    }
    processes.push_back(&process);
}

/// Writes the group as chunks of a bounded size, whatever one process has, tells its processes what became of each block, and empties it.
void Capture::write(BlocksGroup& group, DrainBuffers& buffers, std::uint64_t now_ticks) {
    const std::span<const Block* const> blocks = group.blocks;
    std::vector<std::uint8_t> kept;
    kept.reserve(blocks.size());
    while (kept.size() < blocks.size()) {
        const std::size_t first = kept.size();
        std::size_t count = 0, bytes = 0;
        do {
            bytes += blocks[first + count++]->data.size();
        } while (first + count < blocks.size() &&
                 bytes + blocks[first + count]->data.size() <= kGroupBytes);
        kept.insert(kept.end(), count, sink_.blocks(blocks.subspan(first, count)) ? 1 : 0);
    }
    std::span<const std::uint8_t> answers = kept;
    for (TrackedProcess* process : group.processes) {
        const std::size_t count = process->drainer.sealed().size();
        process->drainer.settle(buffers, answers.first(count), now_ticks);
        answers = answers.subspan(count);
    }
    group = {};
}

DumpFooter Capture::footer(const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                           std::uint64_t now_ticks) const {
    DumpFooter footer;
    footer.start_ticks = range_.start;
    footer.stop_ticks = std::min(range_.stop, now_ticks);
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        const ProcessDrainer& drainer = process->drainer;
        for (const LaneAccount& account : drainer.accounts())
            footer.lanes.push_back({process->index, account});
        footer.unknown_records += drainer.unknown_records();
        const std::uint64_t end = process->ending ? process->end_ticks : footer.stop_ticks;
        OpenFacts open = process->open_at(end);
        footer.processes.push_back(end_of(*process, end));
        footer.processes.back().open = std::move(open);
    }
    return footer;
}

CaptureReport Capture::finish(const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                              std::uint64_t now_ticks, double record_cost_ns) {
    DumpFooter totals = footer(processes, now_ticks);
    totals.record_cost_ns = record_cost_ns;
    for (const auto& [id, past] : past_) {
        for (const LaneAccount& account : past.accounts)
            totals.lanes.push_back({past.facts.index, account});
        totals.processes.push_back(past.facts.end.value_or(
            ProcessEndFacts{past.facts.index, Fate::kRunning, totals.stop_ticks}));
    }
    totals.perturbation = perturbation_of(totals, processes, calibration_);
    // What the agent that died has cost nobody knows: no receipt.
    totals.perturbation.agent_cpu_ns = resumed_ ? -1 : own_cpu_ns() - order_cpu_ns_;
    CaptureReport report;
    report.perturbation = totals.perturbation;
    report.id = request_.id;
    report.calibration = calibration_;
    report.start_ticks = totals.start_ticks;
    report.stop_ticks = totals.stop_ticks;
    report.left_out = choice_.left_out();
    report.record_cost_ns = record_cost_ns;
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        // It had no framework when it came in, and found one when there was no place any more: left out, as those who were there then.
        if (!wants(*process) && process->has_framework() && process->drainer.kept() == 0) continue;
        report.processes.push_back(report_process(*process, true));
        if (!process->ending) report.processes.back().end_ticks = totals.stop_ticks;
        report.records += report.processes.back().events;
        report.lost += report.processes.back().lost;
    }
    for (const auto& [id, past] : past_) {
        report.processes.push_back(report_gone(past));
        report.records += report.processes.back().events;
        report.lost += report.processes.back().lost;
    }
    const DumpReceipt receipt = writer_->finish(totals);
    report.path = receipt.path;
    report.bytes = receipt.bytes;
    report.complete = receipt.complete;
    report.error = receipt.error;
    return report;
}

}  // namespace ringside::agent
