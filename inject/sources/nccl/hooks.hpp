// The wrappers that stand in the slots of NCCL's callers. Called by nccl_source; the wrappers by programs.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::nccl {

/// Everybody who calls nccl*, but for NCCL itself. Filled at the first call, under the loader's lock.
SlotSet& caller_slots();

}  // namespace ringside::inject::nccl
