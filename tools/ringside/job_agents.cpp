#include "tools/ringside/job_agents.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "agent/control/at_once.hpp"
#include "agent/control/client.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/known_agents.hpp"
#include "tools/ringside/progress.hpp"

namespace ringside::tools {

namespace {

namespace fs = std::filesystem;
using agent::SlurmNode;

/// Those in a job's directories on this host: `ID`, and `ID.NODE` where several nodes share it; of an array each task has an id.
std::vector<std::string> endpoints_here(const std::string& job,
                                        const std::vector<SlurmNode>& nodes) {
    std::set<std::string> ids = {job};
    for (const SlurmNode& node : nodes) {
        ids.insert(node.id);
    }
    const std::string root = agent::default_root();
    std::vector<std::string> endpoints;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        const std::string name = entry.path().filename().string();
        if (!ids.contains(name) && !ids.contains(name.substr(0, name.find('.')))) {
            continue;
        }
        const std::string endpoint = agent::default_endpoint(root, name);
        const auto socket = agent::socket_path(endpoint);
        if (socket && fs::exists(*socket, error)) {
            endpoints.push_back(endpoint);
        }
    }
    std::sort(endpoints.begin(), endpoints.end());
    return endpoints;
}

std::string at(const std::string& host, std::uint16_t port) {
    return "tcp://" + host + ":" + std::to_string(port);
}

/// Where an agent of the job may be, and what came of asking there.
struct Candidate {
    bool noted = false;
    std::string node;                    ///< as it is noted, else Slurm's name
    std::vector<std::string> endpoints;  ///< in the order in which they are tried
    std::string answers_as;              ///< node, by the agent's own word; empty: nobody answers

    const std::string& endpoint() const { return endpoints.front(); }
};

/// Where one answers, that endpoint is its first one from then on.
void ask(Candidate& candidate, const agent::Key& key) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kNoWayThere{1500};
    for (std::string& endpoint : candidate.endpoints) {
        const auto began = Clock::now();
        if (!agent::probe_endpoint(endpoint)) {
            // Packets that are dropped at one port are at the others.
            if (Clock::now() - began > kNoWayThere) {
                return;
            }
            continue;
        }
        const auto client = agent::Client::connect(endpoint, &key);
        const auto status = client ? (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{})
                                   : Result<fbs::StatusReplyT>(client.error());
        if (status) {
            candidate.answers_as = status->node;
            std::swap(endpoint, candidate.endpoints.front());
            return;
        }
    }
}

/// Many at once: each may be silent for seconds.
void ask_all(std::vector<Candidate>& candidates, const agent::Key& key) {
    const Progress progress("looking for the job's agents");
    agent::at_once(candidates.size(), [&](std::size_t n) { ask(candidates[n], key); });
}

/// Whether an agent is noted as this node's. A task of an array says which it is in its node's name, too (launch_step); a component of a heterogeneous
/// job can't.
bool is_of(const agent::NotedAgent& agent, const SlurmNode& node) {
    const std::string family = agent::family_of(node.member);
    return (agent.member == node.member &&
            agent.node == node.name + node.member.substr(family.size())) ||
           (agent.member == family && agent.node == node.name);
}

/// The noted agents, and for each node that has none the ports that follow from the job's name: where no home is shared.
std::vector<Candidate> candidates_of(const std::vector<agent::NotedAgent>& noted,
                                     const std::vector<SlurmNode>& nodes) {
    std::vector<Candidate> candidates;
    candidates.reserve(noted.size() + nodes.size());
    for (const agent::NotedAgent& agent : noted) {
        candidates.push_back({true, agent.node, {agent.endpoint}, ""});
    }
    for (const SlurmNode& node : nodes) {
        if (std::any_of(noted.begin(), noted.end(),
                        [&](const auto& agent) { return is_of(agent, node); })) {
            continue;
        }
        Candidate candidate{false, node.name, {}, ""};
        for (const std::uint16_t port : agent::rendezvous_ports(node.member)) {
            candidate.endpoints.push_back(at(node.address, port));
        }
        candidates.push_back(std::move(candidate));
    }
    return candidates;
}

/// An agent that is noted by a name that is not Slurm's of its node has been found twice; a note of a node that the job has no longer, and where nobody
/// answers, is one of before it was started again elsewhere.
void drop_doubles_and_dead(std::vector<Candidate>& candidates,
                           const std::vector<agent::NotedAgent>& noted,
                           const std::vector<SlurmNode>& nodes) {
    std::set<std::string> named, answering;
    for (const SlurmNode& node : nodes) {
        for (const agent::NotedAgent& agent : noted) {
            if (is_of(agent, node)) {
                named.insert(agent.node);
            }
        }
    }
    for (const Candidate& candidate : candidates) {
        if (candidate.noted && !candidate.answers_as.empty()) {
            answering.insert(candidate.answers_as);
        }
    }
    std::erase_if(candidates, [&](const Candidate& candidate) {
        return candidate.noted ? candidate.answers_as.empty() && !nodes.empty() &&
                                     !named.contains(candidate.node)
                               : answering.contains(candidate.answers_as);
    });
}

/// By their notes and by Slurm's word, one that answers first, for who leads must be there; none: nothing is noted, and no other node has the user's key.
std::vector<std::string> endpoints_anywhere(const agent::KnownAgents& known,
                                            const agent::Key& key) {
    std::vector<Candidate> candidates = candidates_of(known.noted, known.nodes);
    ask_all(candidates, key);
    drop_doubles_and_dead(candidates, known.noted, known.nodes);
    const auto answers = [](const Candidate& candidate) { return !candidate.answers_as.empty(); };
    const auto first = std::find_if(candidates.begin(), candidates.end(), answers);
    std::vector<std::string> endpoints;
    if (first != candidates.end()) {
        std::rotate(candidates.begin(), first, first + 1);
    } else if (std::none_of(candidates.begin(), candidates.end(),
                            [](const Candidate& candidate) { return candidate.noted; })) {
        return endpoints;
    }
    for (const Candidate& candidate : candidates) {
        endpoints.push_back(candidate.endpoint());
    }
    return endpoints;
}

Error nobody(const std::string& job, bool has_key) {
    return {ErrorCode::kNoAgent,
            "find the agents of job " + job + ": none in " + agent::default_root() +
                " on this host, " +
                (has_key ? "none noted in ~/.ringside/jobs, none with this ~/.ringside/key on "
                           "nodes that Slurm names"
                         : "and there is no ~/.ringside/key to ask others with") +
                "; start its tasks through ringside-wrap, or say where its agents are: --hosts, "
                "or one of them: --peers-of, beside --job"};
}

/// Where an agent may be that is named for its peers: a host alone is asked at the ports that follow from the job's name.
Result<std::vector<std::string>> endpoints_of(const std::string& named, const std::string& job) {
    std::vector<std::string> endpoints;
    const bool is_host = named.find(':') == std::string::npos || named.ends_with(']');
    if (is_host) {
        for (const std::uint16_t port : agent::rendezvous_ports(job)) {
            endpoints.push_back(at(named, port));
        }
    } else {
        endpoints.push_back(named.find("://") == std::string::npos ? "tcp://" + named : named);
    }
    if (const auto checked = agent::check_endpoint(endpoints.front()); !checked) {
        return Error{ErrorCode::kUsage, "--peers-of: " + checked.error().message};
    }
    return endpoints;
}

/// What one of the job's agents knows of the others.
Result<agent::KnownAgents> known_to(const std::string& named, const std::string& job,
                                    const agent::Key& key) {
    constexpr agent::Milliseconds kWithSlurm{20'000};
    const auto endpoints = endpoints_of(named, job);
    if (!endpoints) {
        return endpoints.error();
    }
    const Progress progress("asking " + named + " for the job's agents");
    Error error{};
    for (const std::string& endpoint : *endpoints) {
        const auto client = agent::Client::connect(endpoint, &key);
        fbs::PeersRequestT request;
        request.job = job;
        const auto reply = client ? (*client)->ask<fbs::PeersReplyT>(request, kWithSlurm)
                                  : Result<fbs::PeersReplyT>(client.error());
        if (reply) {
            return agent::known_by(*reply, endpoint);
        }
        error = reply.error();
    }
    return Error{error.code, "--peers-of " + named + ": " + error.message};
}

}  // namespace

Result<JobAgents> find_job_agents(const std::string& asked, const std::string& key_file,
                                  const std::vector<std::string>& hosts,
                                  const std::string& peers_of) {
    if (const auto checked = agent::check_member("--job", asked); !checked) {
        return checked.error();
    }
    agent::KnownAgents known;
    if (peers_of.empty()) {
        known.nodes = agent::slurm_nodes(asked);
    }
    const std::string job = agent::name_of(asked, known.nodes);
    const auto found = agent::find_key(key_file);
    if (!found && (!key_file.empty() || !peers_of.empty())) {
        return found.error();
    }
    if (!found) {
        say(found.error().message);
    }
    const std::optional<agent::Key> user = found ? *found : std::nullopt;
    JobAgents agents{hosts, std::nullopt};
    if (user) {
        auto key = agent::job_key(*user, agent::family_of(job));
        if (!key) {
            return key.error();
        }
        agents.key = std::move(*key);
    }
    if (!peers_of.empty()) {
        auto told = user ? known_to(peers_of, job, *agents.key)
                         : Result<agent::KnownAgents>(agent::key_missing(peers_of));
        if (!told) {
            return told.error();
        }
        known = std::move(*told);
        agents.endpoints = endpoints_anywhere(known, *agents.key);
    } else if (user && hosts.empty()) {
        auto noted = agent::notes_of(job, known.nodes);
        if (!noted) {
            return noted.error();
        }
        known.noted = std::move(*noted);
        agents.endpoints = endpoints_anywhere(known, *agents.key);
    }
    if (agents.endpoints.empty() && peers_of.empty()) {
        agents.endpoints = endpoints_here(job, known.nodes);
        if (known.nodes.size() > agents.endpoints.size() && !agents.endpoints.empty()) {
            say("job " + job + " has " + std::to_string(known.nodes.size()) +
                " nodes; of these only the agents on this host are asked: " +
                (user ? "the others have another ~/.ringside/key, or none"
                      : "there is no ~/.ringside/key for the others"));
        }
    }
    if (agents.endpoints.empty()) {
        return nobody(job, user.has_value());
    }
    return agents;
}

}  // namespace ringside::tools
