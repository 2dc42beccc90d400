// What a process waited for at its end or the capture's, from a dump's ProcessEnd to the model. Called by JobBuilder.
#pragma once

#include "schema/dump_generated.h"
#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::load {

void add_open_calls(const fbs::ProcessEnd& end, model::Process& process);

}  // namespace ringside::viewer_export::load
