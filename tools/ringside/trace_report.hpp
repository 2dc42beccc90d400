// What a trace request came to: nodes, verdicts, calls, clocks, as text and as JSON; and the exit status that follows.
#pragma once

#include <string>
#include <vector>

#include "schema/control_generated.h"

namespace ringside::tools {

/// @return 0 where every node answered and every verdict is good, else 1
int trace_status(const fbs::TraceReplyT& reply);

/// The reply's paths are those that are printed: where the files lie now, empty where they are not told of.
/// @param waiting  lines of who waits for whom, beneath the verdicts; of the JSON an object, empty: none
std::string trace_text(const fbs::TraceReplyT& reply, const std::string& waiting = "");
std::string trace_json(const fbs::TraceReplyT& reply, const std::string& waiting = "");

/// "RPCs: 14 requests and 14 replies joined, 0 cut, 0 orphans, 0 unfinished".
std::string calls_line(const fbs::TraceReplyT& reply);

}  // namespace ringside::tools
