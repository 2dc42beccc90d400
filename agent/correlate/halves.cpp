#include "agent/correlate/halves.hpp"

#include <algorithm>

namespace ringside::agent {
namespace {

constexpr std::size_t kMostCommandBytes = 256;

/// The command line as one text, cut where it gets long.
std::string command_text(const ProcessReport& report) {
    std::string text;
    for (const std::string& argument : report.command_line) {
        if (!text.empty()) text += ' ';
        text += argument;
        if (text.size() > kMostCommandBytes) break;
    }
    if (text.empty()) text = report.executable;
    if (text.size() > kMostCommandBytes) {
        std::size_t end = kMostCommandBytes - 3;
        while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a UTF-8 character
        text.resize(end);
        text += "...";
    }
    return text;
}

}  // namespace

ProcessOutcome outcome_of(const ProcessReport& report) {
    ProcessOutcome outcome;
    outcome.index = report.index;
    outcome.pid = report.pid;
    outcome.rank = report.rank;
    outcome.command = command_text(report);
    outcome.fate = report.fate;
    outcome.end_ticks = report.end_ticks;
    outcome.verdict = report.verdict;
    outcome.reason = report.reason;
    outcome.events = report.events;
    outcome.lost = report.lost;
    outcome.start_delay_ns = report.start_delay_ns;
    outcome.workers = report.workers;
    outcome.iterations = report.iterations;
    outcome.host_pid = report.host_pid;
    outcome.bytes = report.bytes;
    outcome.sources = report.sources;
    outcome.executable = report.executable;
    const bool named = std::find(outcome.workers.begin(), outcome.workers.end(),
                                 report.worker_name) != outcome.workers.end();
    if (!report.worker_name.empty() && !named) outcome.workers.push_back(report.worker_name);
    return outcome;
}

}  // namespace ringside::agent
