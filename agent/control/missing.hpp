// What a trace was asked for by number or name, and no node has: said, not passed over.
#pragma once

#include "agent/control/messages.hpp"

namespace ringside::agent {

/// Adds a verdict, of no node, for each pid, rank and executable of the request that none of the reply's verdicts has.
void add_missing(const fbs::TraceRequestT& request, fbs::TraceReplyT& reply);

}  // namespace ringside::agent
