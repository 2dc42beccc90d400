// What agents say of themselves as Prometheus reads it (text format 0.0.4). Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "schema/control_generated.h"

namespace ringside::agent {

struct AgentAnswer {
    std::string job;
    std::optional<fbs::StatusReplyT> status;  ///< none: it does not answer
};

/// A family with each of its samples, one an agent, labels `job` and `node`; what an agent can't say has no sample.
std::string metrics_text(std::span<const AgentAnswer> agents);

}  // namespace ringside::agent
