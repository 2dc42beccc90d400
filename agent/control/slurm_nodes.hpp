// What Slurm itself says of a job, by its own commands; a machine without them is one more answer. Public.
#pragma once

#include <string>
#include <vector>

namespace ringside::agent {

struct SlurmNode {
    std::string
        member;  ///< the job, array task or component that has it, as squeue writes it: 4242, 4242_7, 4242+1
    std::string id;       ///< the number that its tasks are told: SLURM_JOB_ID
    std::string name;     ///< of the node
    std::string address;  ///< NodeAddr, or the name where Slurm has no more
};

/// The nodes of a running job, of all tasks of an array, of all components of a heterogeneous job. Asks squeue and scontrol, once each, so it takes some 50 ms.
/// @param job  4242, 4242_7 or 4242+1; anything else is no job of Slurm's
/// @return none: no Slurm here, or it knows no such running job
std::vector<SlurmNode> slurm_nodes(const std::string& job);

}  // namespace ringside::agent
