// Whether anybody listens at a tcp endpoint: libzmq goes on trying in silence, a person wants to know now.
#pragma once

#include <chrono>

#include "agent/control/endpoint.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Connects and lets go again.
/// @errors NoAgent: no such host, nobody listens, or no answer within `limit`; with what to do
schema::Result<void> probe_tcp(const TcpAddress& address, std::chrono::milliseconds limit);

}  // namespace ringside::agent
