#include "agent/correlate/halves.hpp"

#include <algorithm>

namespace ringside::agent {
namespace {

constexpr std::size_t kMostCommandBytes = 256;
constexpr const char* kRankPrefix = "rank ";

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

void add_worker(std::vector<std::string>& workers, const std::string& name) {
    if (!name.empty() && std::find(workers.begin(), workers.end(), name) == workers.end())
        workers.push_back(name);
}

/// Whether messages may name it: a rank in which MPI was found.
bool has_mpi(const ProcessReport& report) {
    return report.rank >= 0 && std::any_of(report.sources.begin(), report.sources.end(),
                                           [](const SourceReport& source) {
                                               return source.id == schema::SourceId::kMpi &&
                                                      source.level != schema::SourceLevel::kAbsent;
                                           });
}

}  // namespace

std::string rank_name(int rank) {
    return kRankPrefix + std::to_string(rank);
}

bool is_rank_name(std::string_view name) {
    constexpr std::string_view kPrefix = kRankPrefix;
    return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
           std::all_of(name.begin() + kPrefix.size(), name.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
}

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
    add_worker(outcome.workers, report.worker_name);
    if (has_mpi(report)) add_worker(outcome.workers, rank_name(report.rank));
    return outcome;
}

}  // namespace ringside::agent
