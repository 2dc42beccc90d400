#include "tools/ringside/job_agents.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/control/client.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/rendezvous.hpp"
#include "tools/ringside/slurm.hpp"

namespace ringside::tools {

namespace {

namespace fs = std::filesystem;

/// Those in a job's directories on this host: `ID`, and `ID.NODE` where several nodes share it.
std::vector<std::string> endpoints_here(const std::string& job) {
    const std::string root = agent::default_root();
    std::vector<std::string> endpoints;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        const std::string name = entry.path().filename().string();
        if (name != job && name.rfind(job + ".", 0) != 0) {
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

struct Endpoint {
    std::string text;
    bool answers;
};

/// Where no home is shared: the port that the agent there has taken, by trying. The first one where none answers, so that it is heard of.
Endpoint endpoint_of(const SlurmNode& node, const agent::Key& key) {
    const auto ports = agent::rendezvous_ports(node.member);
    for (const std::uint16_t port : ports) {
        if (agent::Client::connect(at(node.address, port), &key)) {
            return {at(node.address, port), true};
        }
    }
    return {at(node.address, ports.front()), false};
}

/// Who leads must be there.
void put_a_living_one_first(std::vector<std::string>& endpoints, const agent::Key& key) {
    const auto lives = [&](const std::string& endpoint) {
        return static_cast<bool>(agent::Client::connect(endpoint, &key));
    };
    const auto first = std::find_if(endpoints.begin(), endpoints.end(), lives);
    if (first != endpoints.end()) {
        std::rotate(endpoints.begin(), first, first + 1);
    }
}

/// The notes of a job; a component of a heterogeneous job has none of its own, for its tasks are told only the whole job's id: those on its nodes.
Result<std::vector<agent::NotedAgent>> notes_of(const std::string& job,
                                                const std::vector<SlurmNode>& nodes) {
    const std::string family = agent::family_of(job);
    auto noted = agent::noted_agents(job);
    if (!noted || !noted->empty() || family == job) {
        return noted;
    }
    noted = agent::noted_agents(family);
    if (noted) {
        std::erase_if(*noted, [&](const agent::NotedAgent& agent) {
            return agent.member != family ||
                   std::none_of(nodes.begin(), nodes.end(),
                                [&](const SlurmNode& node) { return node.name == agent.node; });
        });
    }
    return noted;
}

/// A task of an array says which it is in its node's name, too (launch_step); a component of a heterogeneous job can't.
bool is_noted(const SlurmNode& node, const std::vector<agent::NotedAgent>& noted) {
    const std::string family = agent::family_of(node.member);
    const std::string of_task = node.name + node.member.substr(family.size());
    return std::any_of(noted.begin(), noted.end(), [&](const agent::NotedAgent& agent) {
        return (agent.member == node.member && agent.node == of_task) ||
               (agent.member == family && agent.node == node.name);
    });
}

/// By their notes and by Slurm's word; none: nothing is noted, and no other node has the user's key.
Result<std::vector<std::string>> endpoints_anywhere(const std::string& job,
                                                    const std::vector<SlurmNode>& nodes,
                                                    const agent::Key& key) {
    const auto noted = notes_of(job, nodes);
    if (!noted) {
        return noted.error();
    }
    std::vector<std::string> endpoints;
    for (const agent::NotedAgent& agent : *noted) {
        endpoints.push_back(agent.endpoint);
    }
    bool found = !noted->empty();
    for (const SlurmNode& node : nodes) {
        if (!is_noted(node, *noted)) {
            const auto endpoint = endpoint_of(node, key);
            found = found || endpoint.answers;
            endpoints.push_back(endpoint.text);
        }
    }
    put_a_living_one_first(endpoints, key);
    return found ? endpoints : std::vector<std::string>();
}

/// A task of an array has an id of its own, too: the one by which its agents are noted.
std::string name_of(const std::string& job, const std::vector<SlurmNode>& nodes) {
    const bool other = !nodes.empty() && agent::family_of(nodes.front().member) != job &&
                       std::all_of(nodes.begin(), nodes.end(), [&](const SlurmNode& node) {
                           return node.member == nodes.front().member;
                       });
    return other ? nodes.front().member : job;
}

Error nobody(const std::string& job, bool has_key) {
    return {ErrorCode::kNoAgent,
            "find the agents of job " + job + ": none in " + agent::default_root() +
                " on this host, " +
                (has_key ? "none noted in ~/.ringside/jobs, none with this ~/.ringside/key on "
                           "nodes that Slurm names"
                         : "and there is no ~/.ringside/key to ask others with") +
                "; start its tasks through ringside-wrap, or name agents with --hosts"};
}

}  // namespace

Result<JobAgents> find_job_agents(const std::string& asked, const std::string& key_file) {
    if (const auto checked = agent::check_member("--job", asked); !checked) {
        return checked.error();
    }
    const std::vector<SlurmNode> nodes = slurm_nodes(asked);
    const std::string job = name_of(asked, nodes);
    const auto user = agent::find_key(key_file);
    if (!user) {
        return user.error();
    }
    JobAgents agents;
    if (*user) {
        auto key = agent::job_key(**user, agent::family_of(job));
        if (!key) {
            return key.error();
        }
        auto endpoints = endpoints_anywhere(job, nodes, *key);
        if (!endpoints) {
            return endpoints.error();
        }
        agents = {std::move(*endpoints), std::move(*key)};
    }
    if (agents.endpoints.empty()) {
        agents.endpoints = endpoints_here(job);
        if (nodes.size() > agents.endpoints.size() && !agents.endpoints.empty()) {
            say("job " + job + " has " + std::to_string(nodes.size()) +
                " nodes; of these only the agents on this host are asked: " +
                (*user ? "the others have another ~/.ringside/key, or none"
                       : "there is no ~/.ringside/key for the others"));
        }
    }
    if (agents.endpoints.empty()) {
        return nobody(job, user->has_value());
    }
    return agents;
}

}  // namespace ringside::tools
