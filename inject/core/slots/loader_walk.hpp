// dl_iterate_phdr(), kept out of forks: it holds a lock of the loader's that the C library does not make anew in a forked child (it does so with
// the other one, which dlopen() takes). A child forked while a thread of ours walks, or one of the job's within our dlsym(), would wait for
// that lock for ever at its first look at the loaded objects. So a fork waits until nobody walks, and who begins to walk meanwhile waits for the fork.
// Both waits are bounded: whoever forks inside a walk of somebody else's goes on.
#pragma once

#include <link.h>

#include <cstddef>

namespace ringside::inject {

using LookAtObject = int (*)(dl_phdr_info*, std::size_t, void*);

/// As dl_iterate_phdr().
/// @thread thread-safe; may wait as long as another thread takes to fork, 50 ms at most
int walk_objects(LookAtObject look, void* argument);

/// Before fork(): waits for those that walk, 50 ms at most.
/// @thread that which forks
void hold_walks();

/// After it, in the parent.
/// @thread as hold_walks()
void release_walks();

/// After it, in the child: the threads that walked or waited are not there any more.
/// @thread the child's only one
void reset_walks_after_fork();

/// Whether a fork waits.
bool walks_are_held();

}  // namespace ringside::inject
