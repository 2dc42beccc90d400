#include "tools/ringside/job_agents.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
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

/// By their notes and by Slurm's word; none: nothing is noted, and no other node has the user's key.
Result<std::vector<std::string>> endpoints_anywhere(const std::string& job,
                                                    const std::vector<SlurmNode>& nodes,
                                                    const agent::Key& key) {
    const auto noted = agent::noted_agents(job);
    if (!noted) {
        return noted.error();
    }
    std::map<std::string, std::string> by_node;
    for (const agent::NotedAgent& agent : *noted) {
        by_node.emplace(agent.node, agent.endpoint);
    }
    bool found = !noted->empty();
    for (const SlurmNode& node : nodes) {
        if (by_node.count(node.name) == 0) {
            const auto endpoint = endpoint_of(node, key);
            found = found || endpoint.answers;
            by_node.emplace(node.name, endpoint.text);
        }
    }
    std::vector<std::string> endpoints;
    for (auto& [name, endpoint] : by_node) {
        endpoints.push_back(std::move(endpoint));
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
