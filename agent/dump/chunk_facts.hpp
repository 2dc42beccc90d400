// Chunks of a file back into the facts that they were made of (chunks.hpp): for whoever goes on with what another agent has written, or cuts
// something out of it. Pure.
#pragma once

#include "agent/drain/sink.hpp"
#include "agent/dump/dump_writer.hpp"
#include "schema/dump_generated.h"

namespace ringside::agent {

/// @param header  with its calibration
DumpHeader facts_of(const fbs::FileHeader& header);
ProcessFacts facts_of(const fbs::Process& process);
NamesBatch facts_of(const fbs::Names& names);
Block facts_of(const fbs::Block& block);

}  // namespace ringside::agent
