// The join without agents: halves out of loaded dumps, clocks out of the calls between them, through the leader's own library.
// A request begins before it arrives and its reply leaves before it is received, so each call that both sides recorded brackets the
// difference of the two clocks as a ping does, only wider: it takes the call's whole time. Ticks of two nodes are never compared.
#pragma once

#include <cstdint>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/load/join_input.hpp"
#include "viewer_export/model/job.hpp"

namespace ringside::tools {

/// @param corrected  false: for tests and --no-clock-correction, times of each node's own clock
/// @return a JobIndex without its frame, as LoadRequest::index takes it
/// @errors Input: more requests than an index holds
schema::Result<std::vector<std::uint8_t>> join_offline(const viewer_export::model::Job& job,
                                                       bool corrected);

}  // namespace ringside::tools
