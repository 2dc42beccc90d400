#include "agent/capture/verdict.hpp"

#include <algorithm>
#include <utility>

#include "agent/capture/words.hpp"

namespace ringside::agent {
namespace {

constexpr std::uint32_t kNoIndex = 0xffffffffu;
constexpr const char* kNoFramework = "no framework loaded";

constexpr const char* kCameLate =
    "it came during a capture of chosen processes: its first moments are missing";

/// Why it can't do as it is told; empty: it does, or nobody knows.
std::string hang(const TrackedProcess& process, bool capturing) {
    const char state = process.life ? process.life->state() : '\0';
    std::string text;
    if (state == 'T' || state == 't') text = std::string("stopped: state ") + state;
    if (capturing && !process.attached && process.waited.value != 0) {
        text += (text.empty() ? "" : "; ") + std::string("it did not attach within ") +
                seconds_text(process.waited.value);
    }
    return text;
}

/// Why nothing was recorded in a process that a capture asked.
std::string silence(const TrackedProcess& process) {
    if (!process.has_framework()) return kNoFramework;
    if (process.came_late) return kCameLate;
    for (const SourceFacts& source : process.facts.sources) {
        if (source.level == schema::SourceLevel::kNotInstrumented && !source.reason.empty())
            return source.reason;
    }
    return "its shim did not attach in time";
}

void judge_ended(const TrackedProcess& process, ProcessReport& report) {
    report.reason = process.ending->reason;
    switch (process.ending->fate) {
        case Fate::kReplaced:
            report.verdict = report.events != 0 ? Verdict::kExited : Verdict::kNothingRecorded;
            report.reason = report.events != 0 ? "replaced by exec" : kNoFramework;
            return;
        case Fate::kExited:
            report.verdict = Verdict::kExited;
            if (report.events != 0 || process.has_framework()) return;
            // A launcher's, a shell's: like one that still runs, and its status beside it.
            report.verdict = Verdict::kNothingRecorded;
            report.reason =
                kNoFramework + (report.reason.empty() ? std::string() : "; " + report.reason);
            return;
        default:
            // _exit() says no more than kill -9 does. Where the kernel does not tell them apart either, a process in which there was
            // nothing to record is not called killed.
            if (!process.ending->known && report.events == 0 && !process.has_framework()) {
                report.verdict = Verdict::kNothingRecorded;
                report.reason = kNoFramework;
                return;
            }
            report.verdict = Verdict::kKilled;
            if (report.reason.empty()) report.reason = "it ended without a word";
    }
}

/// What is in the dump of a process whose segment has gone bad is true; that it is all there is, nobody knows.
void judge_damaged(const TrackedProcess& process, std::string damage, ProcessReport& report) {
    report.verdict = Verdict::kRefused;
    report.reason = std::move(damage);
    if (process.ending && !process.ending->reason.empty())
        report.reason += "; it ended: " + process.ending->reason;
}

void judge(const TrackedProcess& process, bool capturing, ProcessReport& report) {
    std::string damage = process.segment ? process.segment->damage() : process.damage;
    if (!damage.empty()) return judge_damaged(process, std::move(damage), report);
    if (process.ending) return judge_ended(process, report);
    report.reason = hang(process, capturing);
    if (!report.reason.empty()) {
        report.verdict = Verdict::kHung;
        return;
    }
    const bool listens = process.has_framework() && (!capturing || !process.must_attach());
    if (report.events != 0 || process.attached || listens) {
        report.verdict = Verdict::kCaptured;
        if (capturing && process.came_late) report.reason = kCameLate;
        return;
    }
    report.verdict = Verdict::kNothingRecorded;
    report.reason = silence(process);
}

/// What kept the process from getting more memory in the capture. The records that it cost are in the count of the lost.
std::string memory_refused(const TrackedProcess& process) {
    using schema::Loss;
    static constexpr std::pair<Loss, const char*> kBounds[] = {
        {Loss::kRefusedByProcess, "the process's budget"},
        {Loss::kRefusedByNode, "the node's budget"},
        {Loss::kRefusedByCgroup, "the limit of its memory cgroup"},
        {Loss::kRefusedByFileSystem, "what is free on the segments' file system"},
        {Loss::kRefusedByKernel, "the kernel, or a filter in front of it"},
    };
    const auto losses = process.losses_in_capture();
    std::string text;
    for (const auto& [loss, bound] : kBounds) {
        const std::uint64_t times = losses[static_cast<std::uint32_t>(loss)];
        if (times == 0) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(times) + " times by " + bound;
    }
    return text.empty() ? text : "more memory was refused " + text;
}

/// What records lack though they are there; none of them is lost.
std::string attributes_lost(const TrackedProcess& process) {
    const std::uint64_t lost =
        process.losses_in_capture()[static_cast<std::uint32_t>(schema::Loss::kAttributesLost)];
    if (lost == 0) return "";
    return "its table of names was full: " + std::to_string(lost) +
           " input shapes, labels or peers of records are unknown (shown as ?)";
}

std::vector<std::string> worker_names(const TrackedProcess& process) {
    std::vector<std::string> workers;
    const auto add = [&](const std::string& name) {
        if (!name.empty() && std::find(workers.begin(), workers.end(), name) == workers.end())
            workers.push_back(name);
    };
    schema::NameId last;
    for (const RawHalf& half : process.drainer.halves().halves()) {
        if (half.self != last) add(process.drainer.names().text(half.self));
        last = half.self;
    }
    add(process.drainer.names().text(process.facts.worker_name));
    return workers;
}

}  // namespace

ProcessReport report_process(const TrackedProcess& process, bool capturing) {
    const SegmentFacts facts = capturing ? process.facts_in_capture() : process.facts;
    ProcessReport report;
    report.index = process.index;
    report.segment = process.id;
    report.pid = static_cast<int>(process.id.pid);
    report.host_pid = process.life ? process.life->host_pid() : 0;
    report.parent_pid = facts.parent_pid;
    report.rank = facts.rank;
    report.executable = facts.executable;
    report.command_line = facts.command_line;
    report.worker_name = process.drainer.names().text(facts.worker_name);
    report.worker_id = facts.worker_id;
    report.workers = worker_names(process);
    for (const SourceFacts& source : facts.sources)
        report.sources.push_back({source.id, source.level, source.reason});
    report.lanes = facts.lanes_in_use;
    report.events = process.drainer.kept();
    report.lost = process.drainer.lost() + process.passed_over();
    report.bytes = process.drainer.bytes();
    report.attached = process.attached;
    report.fate = process.ending ? process.ending->fate : Fate::kRunning;
    report.end_ticks = process.end_ticks;
    report.start_delay_ns = process.start_delay_ns;
    if (capturing) report.iterations = process.iterations;
    judge(process, capturing, report);
    for (const std::string& note : {memory_refused(process), attributes_lost(process)}) {
        if (!note.empty()) report.reason += (report.reason.empty() ? "" : "; ") + note;
    }
    return report;
}

ProcessReport report_gone(const PartialProcess& process) {
    const SegmentFacts& facts = process.facts.segment;
    ProcessReport report;
    report.index = process.facts.index;
    report.segment = facts.id;
    report.pid = static_cast<int>(facts.id.pid);
    report.parent_pid = facts.parent_pid;
    report.rank = facts.rank;
    report.executable = facts.executable;
    report.command_line = facts.command_line;
    report.worker_name = process.facts.worker_name;
    report.worker_id = facts.worker_id;
    if (!report.worker_name.empty()) report.workers.push_back(report.worker_name);
    for (const SourceFacts& source : facts.sources)
        report.sources.push_back({source.id, source.level, source.reason});
    report.bytes = process.bytes;
    report.start_delay_ns = process.facts.start_delay_ns;
    report.attached = report.start_delay_ns >= 0;
    for (const LaneAccount& account : process.accounts) {
        report.events += account.kept;
        report.lost += account.lost;
    }
    if (!process.facts.end && report.events == 0 && report.lost == 0) {
        // A shim that has recorded nothing removes its segment itself.
        report.verdict = Verdict::kNothingRecorded;
        report.reason = report.sources.empty() ? kNoFramework : "it ended while no agent watched";
        return report;
    }
    if (!process.facts.end) {
        report.verdict = Verdict::kRefused;
        report.reason = "its segment was removed before its end was known; what it held is lost";
        return report;
    }
    report.fate = process.facts.end->fate;
    report.end_ticks = process.facts.end->ticks;
    report.lost += passed_over(process.facts.end->losses);
    report.reason = process.facts.end_reason;
    report.verdict = report.fate == Fate::kKilled ? Verdict::kKilled : Verdict::kExited;
    if (report.verdict == Verdict::kKilled && report.events == 0 && report.sources.empty()) {
        report.verdict = Verdict::kNothingRecorded;
        report.reason = kNoFramework;
    }
    return report;
}

ProcessReport report_refused(const schema::SegmentId& id, const std::string& cause) {
    ProcessReport report;
    report.index = kNoIndex;
    report.segment = id;
    report.pid = static_cast<int>(id.pid);
    report.verdict = Verdict::kRefused;
    report.reason = cause;
    return report;
}

}  // namespace ringside::agent
