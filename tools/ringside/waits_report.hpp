// Who waits for whom, from the dumps that a trace has brought together.
#pragma once

#include <string>

#include "schema/control_generated.h"

namespace ringside::tools {

/// Reads what the reply's dumps say of their processes.
/// @param reply  its paths lead to the files as they lie now
/// @return lines, or (json) one object; empty where nothing waits, or the dumps can't be read: whoever reads on is told why
std::string waits_in(const fbs::TraceReplyT& reply, bool json);

}  // namespace ringside::tools
