#include "agent/control/known_agents.hpp"

#include <algorithm>
#include <utility>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

bool is_same(const NotedAgent& agent, const std::string& member, const std::string& node) {
    return agent.member == member && agent.node == node;
}

}  // namespace

std::string name_of(const std::string& job, const std::vector<SlurmNode>& nodes) {
    const bool other = !nodes.empty() && family_of(nodes.front().member) != job &&
                       std::all_of(nodes.begin(), nodes.end(), [&](const SlurmNode& node) {
                           return node.member == nodes.front().member;
                       });
    return other ? nodes.front().member : job;
}

schema::Result<std::vector<NotedAgent>> notes_of(const std::string& job,
                                                 const std::vector<SlurmNode>& nodes) {
    const std::string family = family_of(job);
    auto noted = noted_agents(job);
    if (!noted || !noted->empty() || family == job) return noted;
    noted = noted_agents(family);
    if (noted) {
        std::erase_if(*noted, [&](const NotedAgent& agent) {
            return agent.member != family ||
                   std::none_of(nodes.begin(), nodes.end(),
                                [&](const SlurmNode& node) { return node.name == agent.node; });
        });
    }
    return noted;
}

schema::Result<fbs::PeersReplyT> tell_known(const std::string& job, const NotedAgent& own) {
    if (auto checked = check_member("--job", job); !checked) return checked.error();
    if (own.member.empty() || family_of(own.member) != family_of(job)) {
        return Error{ErrorCode::kNothingMatched,
                     "tell who else is of job " + job + ": the agent of node " + own.node +
                         (own.member.empty() ? " was started without --rendezvous, and knows nobody"
                                             : " is of job " + own.member)};
    }
    const std::vector<SlurmNode> nodes = slurm_nodes(job);
    const std::string name = name_of(job, nodes);
    auto noted = notes_of(name, nodes);
    if (!noted) return noted.error();
    const bool alone = std::none_of(noted->begin(), noted->end(), [&](const NotedAgent& agent) {
        return is_same(agent, own.member, own.node);
    });
    if (alone && (own.member == name || family_of(own.member) == name)) noted->push_back(own);
    fbs::PeersReplyT reply;
    reply.member = own.member;
    reply.node = own.node;
    for (const NotedAgent& agent : *noted) {
        auto table = std::make_unique<fbs::NotedAgentT>();
        table->member = agent.member;
        table->node = agent.node;
        table->endpoint = agent.endpoint;
        reply.noted.push_back(std::move(table));
    }
    for (const SlurmNode& node : nodes) {
        auto table = std::make_unique<fbs::SlurmNodeT>();
        table->member = node.member;
        table->id = node.id;
        table->name = node.name;
        table->address = node.address;
        reply.nodes.push_back(std::move(table));
    }
    return reply;
}

schema::Result<KnownAgents> known_by(const fbs::PeersReplyT& reply, const std::string& asked_at) {
    KnownAgents known;
    for (const auto& agent : reply.noted) {
        known.noted.push_back({agent->member, agent->node, agent->endpoint});
        NotedAgent& noted = known.noted.back();
        if (is_same(noted, reply.member, reply.node)) {
            noted.endpoint = asked_at;
        } else if (auto address = tcp_address(noted.endpoint); !address) {
            return Error{ErrorCode::kInput, "read what the agent at " + asked_at +
                                                " knows: " + address.error().message};
        }
    }
    for (const auto& node : reply.nodes)
        known.nodes.push_back({node->member, node->id, node->name, node->address});
    return known;
}

}  // namespace ringside::agent
