// What a trace request came to: nodes, verdicts, calls, clocks, as text and as JSON; and the exit status that follows.
#pragma once

#include <string>
#include <vector>

#include "schema/control_generated.h"

namespace ringside::tools {

/// @return 0 where every node answered and every verdict is good, else 1
int trace_status(const fbs::TraceReplyT& reply);

/// @param paths  dumps and index where they now lie
std::string trace_text(const fbs::TraceReplyT& reply, const std::vector<std::string>& paths);
std::string trace_json(const fbs::TraceReplyT& reply, const std::vector<std::string>& paths);

/// "RPCs: 14 requests and 14 replies joined, 0 cut, 0 orphans, 0 unfinished".
std::string calls_line(const fbs::TraceReplyT& reply);

}  // namespace ringside::tools
