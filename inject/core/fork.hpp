// fork(): the child is a process of its own, with its own segment, lanes and helper. Never two writers in one ring.
#pragma once

namespace ringside::inject {

/// @thread main thread, at load, once
void watch_forks();

}  // namespace ringside::inject
