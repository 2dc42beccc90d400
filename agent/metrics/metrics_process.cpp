#include "agent/metrics/metrics_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "agent/control/at_once.hpp"
#include "agent/control/client.hpp"
#include "agent/metrics/metrics_text.hpp"
#include "agent/metrics/text_endpoint.hpp"

namespace ringside::agent {
namespace {

/// Prometheus gives up after ten seconds; an agent that is well answers in a millisecond.
constexpr Milliseconds kAnswer{1000};

AgentAnswer ask(const MetricsSetup::Asked& agent, const Key* key) {
    AgentAnswer answer{agent.job, {}};
    auto client = Client::connect(agent.endpoint, key);
    if (!client) return answer;
    if (auto reply = (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}, kAnswer))
        answer.status = std::move(*reply);
    return answer;
}

[[noreturn]] void serve(const TextEndpoint& endpoint, const MetricsSetup& setup) {
    ::prctl(PR_SET_NAME, "ringside-metric");
    // A reload and a terminal's Ctrl-C are the agent's: it ends, and this with it.
    for (const int signal : {SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    // Locks of the agent's, and what somebody waits for the end of, are no business of this process.
    ::close_range(STDERR_FILENO + 1, static_cast<unsigned>(endpoint.descriptor() - 1), 0);
    ::close_range(static_cast<unsigned>(endpoint.descriptor() + 1), ~0u, 0);
    endpoint.serve([&] {
        const auto agents = setup.agents();
        std::vector<AgentAnswer> answers(agents.size());
        at_once(agents.size(), [&](std::size_t n) { answers[n] = ask(agents[n], setup.key); });
        return metrics_text(answers);
    });
    ::_exit(0);
}

}  // namespace

schema::Result<pid_t> start_metrics(const MetricsSetup& setup) {
    auto endpoint = TextEndpoint::listen(setup.address);
    if (!endpoint) return endpoint.error();
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
        return schema::Error{schema::ErrorCode::kInternal,
                             "serve metrics: fork: " + error_text(errno)};
    }
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(0);
    serve(*endpoint, setup);
}

}  // namespace ringside::agent
