// What is known on a host of where a job's agents are: their notes in the user's home there, and the nodes that Slurm names. An agent tells it to who asks
// from elsewhere. Public: the command looks the same way.
#pragma once

#include <string>
#include <vector>

#include "agent/control/messages.hpp"
#include "agent/control/rendezvous.hpp"
#include "agent/control/slurm_nodes.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct KnownAgents {
    std::vector<NotedAgent> noted;
    std::vector<SlurmNode> nodes;
};

/// A task of an array has an id of its own, too: `4250` is `4242_7`, the one by which its agents are noted.
/// @param nodes  of `job`
std::string name_of(const std::string& job, const std::vector<SlurmNode>& nodes);

/// The notes of a job; a component of a heterogeneous job has none of its own, for its tasks are told only the whole job's id: those on its nodes.
/// @errors as noted_agents
schema::Result<std::vector<NotedAgent>> notes_of(const std::string& job,
                                                 const std::vector<SlurmNode>& nodes);

/// What is known here. Asks Slurm, so it takes some 50 ms, where Slurm does not answer 15 s.
/// @param own  who is asked: known, noted or not, where it is of that job
/// @errors Usage: no job's name; NothingMatched: own is of another job, or of none; as noted_agents
schema::Result<fbs::PeersReplyT> tell_known(const std::string& job, const NotedAgent& own);

/// What an agent has told; that one is where it was asked.
/// @errors Input: an endpoint that is none
schema::Result<KnownAgents> known_by(const fbs::PeersReplyT& reply, const std::string& asked_at);

}  // namespace ringside::agent
