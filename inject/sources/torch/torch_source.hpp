// PyTorch: operators through a RecordFunction callback, RPC through the slots of libtorch. No torch header, nothing of torch linked.
#pragma once

#include "inject/core/source.hpp"

namespace ringside::inject {

extern const Source kTorchSource;

namespace torch {

/// Works out the level that the source has reached and publishes it, if it is attached: when a part of it has changed.
/// @thread thread-safe
void publish_level();

}  // namespace torch
}  // namespace ringside::inject
