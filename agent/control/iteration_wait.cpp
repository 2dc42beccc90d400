#include "agent/control/iteration_wait.hpp"

#include <algorithm>
#include <utility>

#include "schema/units.hpp"

namespace ringside::agent {
namespace {

/// A peer's word, and that of a process behind it: no more is believed.
constexpr std::int64_t kLongestNs = 24 * 3600 * schema::kNsPerSecond;

std::string missing_text(const ProcessOutcome& process, const std::string& sought,
                         const std::string& until) {
    const IterationReport& had = *process.iterations;
    if (had.name.empty()) {
        return "no iteration" + (sought.empty() ? "" : " of " + sought) +
               " seen; is there an optimizer, an NVTX range or API iteration? name one with "
               "--iterations-of";
    }
    return std::to_string(had.count) + " of " + std::to_string(had.asked) + " iterations of " +
           had.name + " until " + (process.fate == Fate::kRunning ? until : "it ended");
}

}  // namespace

void end_all(fbs::IterationsReplyT& node) {
    node.ended += std::exchange(node.under_way, 0) + std::exchange(node.none, 0);
}

void add_progress(fbs::IterationsReplyT& sum, const fbs::IterationsReplyT& node) {
    if (node.under_way != 0)
        sum.least = sum.under_way == 0 ? node.least : std::min(sum.least, node.least);
    sum.done += node.done;
    sum.under_way += node.under_way;
    sum.none += node.none;
    sum.ended += node.ended;
    sum.slowest_ns = std::clamp(node.slowest_ns, sum.slowest_ns, kLongestNs);
}

bool iterations_over(const fbs::IterationsReplyT& all, std::int64_t since_start_ns) {
    if (all.under_way != 0) return false;
    if (all.none == 0) return all.done + all.ended != 0;
    const std::int64_t patience =
        std::max(2 * all.slowest_ns, all.slowest_ns + schema::kNsPerSecond);
    return all.done != 0 && since_start_ns >= patience;
}

std::string iterations_text(const fbs::IterationsReplyT& all, std::uint32_t asked) {
    const std::uint32_t have = all.done + all.under_way;
    if (have == 0) return "no iteration yet";
    return "iterations " + std::to_string(all.under_way == 0 ? asked : all.least) + " of " +
           std::to_string(asked) + " in " + std::to_string(have) +
           (have == 1 ? " process" : " processes");
}

void say_missing_iterations(std::vector<NodeCapture>& captures, const std::string& sought,
                            const std::string& until) {
    for (NodeCapture& capture : captures) {
        for (ProcessOutcome& process : capture.processes) {
            if (!process.iterations || process.iterations->beside ||
                process.iterations->count >= process.iterations->asked)
                continue;
            process.reason +=
                (process.reason.empty() ? "" : "; ") + missing_text(process, sought, until);
        }
    }
}

}  // namespace ringside::agent
