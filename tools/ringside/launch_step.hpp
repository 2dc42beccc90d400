// What a launcher tells its tasks: which job and step they are of, and which node this is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ringside::tools {

struct LaunchStep {
    std::string
        job;  ///< the job directory's name: the same for all tasks of the job on this node, and for no others
    std::string step;        ///< whose tasks end together
    std::string node;        ///< empty: the host's name
    std::int32_t rank = -1;  ///< as the shim will find it
    std::vector<std::int32_t>
        ranks_here;  ///< of the step on this node; empty: unknown, or the rank is not Slurm's
    std::string
        member;  ///< the job as its user names it, under which other hosts find its agents (agent/control/rendezvous.hpp)
};

/// From RINGSIDE_JOB and RINGSIDE_NODE, Slurm's, Open MPI's, MPICH's and torchrun's variables, in this order.
/// @param variable   getenv, empty for what is not set
/// @param host       the host's name: where several slurmd share a host, each has a job directory of its own
LaunchStep launch_step(const std::function<std::string(const char*)>& variable,
                       const std::string& host);

}  // namespace ringside::tools
