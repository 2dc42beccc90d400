#include "agent/control/missing.hpp"

#include <algorithm>
#include <memory>

#include "agent/capture/engine.hpp"

namespace ringside::agent {
namespace {

template <class Is>
bool is_there(const fbs::TraceReplyT& reply, const Is& is) {
    return std::any_of(reply.verdicts.begin(), reply.verdicts.end(), [&](const auto& verdict) {
        return is(Candidate{verdict->pid, verdict->host_pid, verdict->rank, verdict->executable});
    });
}

fbs::ProcessVerdictT& add(fbs::TraceReplyT& reply, const char* what) {
    auto verdict = std::make_unique<fbs::ProcessVerdictT>();
    verdict->node = static_cast<std::uint32_t>(reply.nodes.size());
    verdict->verdict = fbs::Verdict::NotInjected;
    verdict->reason =
        std::string("no process that fits and has the preload ") + what + "; see `ringside ps`";
    reply.verdicts.push_back(std::move(verdict));
    return *reply.verdicts.back();
}

}  // namespace

void add_missing(const fbs::TraceRequestT& request, fbs::TraceReplyT& reply) {
    // It may be one of those, or on a node of which nobody knows.
    if (std::any_of(reply.nodes.begin(), reply.nodes.end(), [](const auto& node) {
            return node->left_out != 0 || (!node->error.empty() && !node->not_meant);
        }))
        return;
    for (const int pid : request.pids) {
        if (!is_there(reply, [&](const Candidate& it) { return it.has_pid(pid); }))
            add(reply, "has this pid").pid = pid;
    }
    for (const int rank : request.ranks) {
        if (!is_there(reply, [&](const Candidate& it) { return it.rank == rank; }))
            add(reply, "is of this rank").rank = rank;
    }
    for (const std::string& name : request.executables) {
        if (is_there(reply, [&](const Candidate& it) { return it.is_executable(name); })) continue;
        fbs::ProcessVerdictT& verdict = add(reply, "is of this executable");
        verdict.command = verdict.executable = name;
    }
}

}  // namespace ringside::agent
