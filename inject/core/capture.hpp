// Attaching and detaching: brings the sources to where the capture word wants them. One mutex, several callers: the helper thread, the
// constructor, the interpreter's look-ups (loader_watch).
//
//   absent --(framework mapped, its constructors have run)--> ready --(word on)--> attached --(word off)--> ready
#pragma once

#include <cstdint>

#include "inject/core/source.hpp"

namespace ringside::inject {

/// From where catch_up() is called, which decides what may be done there.
enum class Place {
    kOutsideLoader,  ///< surely in no dlopen(): the constructor, the interpreter's look-up of a module's entry
    kUnknown,  ///< maybe inside a constructor that dlopen() runs: frameworks just mapped are left for later
    kFrameworkCall,  ///< a framework calls us: it is initialised, others may not be
    kHelper,  ///< a thread of our own: it waits for the loader's lock to tell what is initialised
};

/// @param sources  `count` pointers, alive for ever
/// @thread main thread, at load
void set_sources(const Source* const* sources, std::uint32_t count);

/// Whether any source's framework is mapped.
bool any_source_present();

/// Whether any source's framework is known to be there; asks nothing of the loader.
bool any_source_ready();

/// Acts on the capture word as it is now: attaches, detaches, looks again where objects have been loaded, then tells the agent by
/// attached_word. Never from a hook.
/// @return the word acted on, or the one acted on last where nothing could be done now
std::uint32_t catch_up(Place place);

/// Gives attached sources their turn.
/// @return whether any wants another
/// @thread the helper thread
bool turn_sources();

/// The word acted on last.
std::uint32_t acted_word();

/// Before fork(): waits, a second at most, until nobody attaches or detaches, and keeps it so; then has each source hold what of its framework a child would
/// find taken for ever (torch's lock of its callbacks).
/// @thread that which forks
void hold_acting();

/// After it, in the parent.
/// @thread as hold_acting()
void release_acting();

/// After fork: nobody holds the mutex. Where somebody did, who could not be waited for, slots may be half-way: the child keeps them as they are.
/// @thread the child's only one
void reset_capture_after_fork();

}  // namespace ringside::inject
