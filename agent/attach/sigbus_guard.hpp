// Survives a peer that truncates a file we have mapped: a SIGBUS inside the guarded piece of memory ends the guarded work, not the
// agent. A SIGBUS anywhere else does what it did before we came.
#pragma once

#include <cstddef>
#include <type_traits>

namespace ringside::agent {

/// Runs work(context). A SIGBUS at an address in [base, base + bytes) jumps out of it.
/// @param work  holds no object with a destructor and no lock while it touches the memory: they would be jumped over
/// @return false where it was jumped out of
/// @thread thread-safe; nests
bool run_guarded(const void* base, std::size_t bytes, void (*work)(void*), void* context);

/// run_guarded for a lambda; what it writes to its captures stays.
template <class Work>
bool guarded(const void* base, std::size_t bytes, Work&& work) {
    using Plain = std::remove_reference_t<Work>;
    return run_guarded(
        base, bytes, [](void* context) { (*static_cast<Plain*>(context))(); }, &work);
}

}  // namespace ringside::agent
