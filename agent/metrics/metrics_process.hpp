// The process that serves metrics: a child of the agent's, or of the resident one's, which asks agents for their status as `ringside status` does.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/control/key.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct MetricsSetup {
    std::string address;
    struct Asked {
        std::string job;
        std::string endpoint;
    };
    std::function<std::vector<Asked>()> agents;  ///< at each scrape
    const Key* key = nullptr;                    ///< for tcp endpoints
};

/// Ends with this process.
/// @thread main thread, and no other in this process yet: it forks
/// @return its pid
/// @errors as TextEndpoint::listen
schema::Result<pid_t> start_metrics(const MetricsSetup& setup);

}  // namespace ringside::agent
