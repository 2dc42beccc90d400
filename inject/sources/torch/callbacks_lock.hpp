// torch's lock of its global callbacks, held by who forks. Each thread takes it for a moment to read the list anew when that has changed, as it does when a
// capture begins or ends; a child that is forked in that moment would find it taken for ever, and hang in its first operator (seen: 8 of 133 forks among threads,
// captures going on and off; none of thousands without them). torch has no handler of its own. Where the lock lies is learned by watching what
// libtorch locks while it adds and removes a callback; where that is not plain, forks are as torch alone has them.
// Called by operators (learn, use) and torch_source (hold, release).
#pragma once

#include <cstdint>

#include "inject/sources/torch/abi.hpp"

namespace ringside::inject::torch {

/// The one mutex that a thread has locked; what else it has locked makes it none.
class OneMutex {
public:
    void saw(void* mutex) {
        if (count_++ != 0 && mutex != mutex_) plain_ = false;
        mutex_ = mutex;
    }
    /// @return null where there were several, or none
    void* get() const { return count_ != 0 && plain_ ? mutex_ : nullptr; }

private:
    void* mutex_ = nullptr;
    std::uint32_t count_ = 0;
    bool plain_ = true;
};

/// Adds a callback of no scope and removes it, and sees what is locked for that.
/// @thread one at a time; the loader's lock is waited for
void learn_callbacks_lock(std::uint64_t (*add_callback)(RecordFunctionCallback),
                          void (*remove_callback)(std::uint64_t));

/// From now on forks hold it: the list is about to change. A process that was never captured is left as it is.
void use_callbacks_lock();

/// Takes it where it is known and used, within a second.
/// @thread that which forks
void hold_callbacks_lock();

/// Gives it back, in the parent and in the child.
/// @thread as hold_callbacks_lock(), which it may follow in vain
void release_callbacks_lock();

}  // namespace ringside::inject::torch
