#include "agent/capture/unseen_tasks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "agent/attach/process_life.hpp"

namespace ringside::agent {
namespace {

/// A program makes its segment within milliseconds of its start; the tasks of a step start within a second or two of each other.
constexpr std::int64_t kOwnWordMs = 2'000;
constexpr std::int64_t kOthersWordMs = 5'000;
constexpr std::uint32_t kNoIndex = 0xffffffffu;

/// What runs there now: the command may have become another program.
std::string program_of(int host_pid) {
    std::array<char, 4096> path{};
    const std::string link = "/proc/" + std::to_string(host_pid) + "/exe";
    const ssize_t size = host_pid == 0 ? -1 : ::readlink(link.c_str(), path.data(), path.size());
    return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "";
}

ProcessReport not_injected(int rank, std::string reason) {
    ProcessReport report;
    report.index = kNoIndex;
    report.rank = rank;
    report.verdict = Verdict::kNotInjected;
    report.reason = std::move(reason);
    return report;
}

ProcessReport report_of(const schema::TaskNote& note) {
    ProcessReport report = not_injected(note.rank, note.why);
    report.pid = note.pid;
    report.host_pid = note.pid_namespace == own_pid_namespace() ? note.pid : 0;
    report.segment = {note.pid_namespace, static_cast<std::uint32_t>(note.pid), 0};
    report.executable = note.program;
    if (const std::string now = program_of(report.host_pid); !now.empty()) report.executable = now;
    if (report.reason.empty()) report.reason = "no word from it: it runs without the preload";
    return report;
}

}  // namespace

std::vector<ProcessReport> unseen_tasks(const std::vector<FoundNote>& notes,
                                        const std::function<bool(const Selection&)>& is_seen) {
    std::vector<ProcessReport> reports;
    struct Ranks {
        std::set<int> noted, expected;
    };
    std::map<std::string, Ranks> steps;
    for (const FoundNote& found : notes) {
        const schema::TaskNote& note = found.note;
        Ranks& step = steps[found.step];
        step.noted.insert(note.rank);
        if (!found.runs) continue;
        if (found.age_ms >= kOthersWordMs)
            step.expected.insert(note.ranks_here.begin(), note.ranks_here.end());
        // Its command may have taken another rank, or have put the program that records into a process of its own.
        Selection of_rank, of_pid;
        of_rank.ranks = {note.rank};
        of_pid.pids = {note.pid};
        const bool silent =
            found.age_ms >= kOwnWordMs && !is_seen(of_pid) && (note.rank < 0 || !is_seen(of_rank));
        if (!note.why.empty() || silent) reports.push_back(report_of(note));
    }
    for (const auto& [id, step] : steps) {
        for (const int rank : step.expected) {
            Selection itself;
            itself.ranks = {rank};
            if (step.noted.contains(rank) || is_seen(itself)) continue;
            reports.push_back(
                not_injected(rank,
                             "no word from it on this node (another user's? started without "
                             "ringside-wrap?)"));
        }
    }
    std::sort(reports.begin(), reports.end(),
              [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return reports;
}

}  // namespace ringside::agent
