// What other threads want sent: ZeroMQ sockets belong to one thread, so the worker and the leader leave their replies here and the server's
// loop takes them. Header only.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/messages.hpp"

namespace ringside::agent {

/// An eventfd, closed with its owner. Without a descriptor (the limit is reached) it is raised all the same, but wakes nobody: who waits looks up now and then.
/// @thread thread-safe
class Event {
public:
    Event() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Event() {
        if (fd_ >= 0) ::close(fd_);
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    int fd() const { return fd_; }
    void raise() const {
        raised_.store(true, std::memory_order_release);
        const std::uint64_t one = 1;
        (void)!::write(fd_, &one, sizeof one);  // full: it is raised already
    }
    bool raised() const { return raised_.load(std::memory_order_acquire); }
    /// What was raised before is seen to after it.
    void lower() const {
        raised_.store(false, std::memory_order_release);
        std::uint64_t count = 0;
        (void)!::read(fd_, &count, sizeof count);
    }

private:
    int fd_;
    mutable std::atomic<bool> raised_{false};
};

/// A message and the client it is for.
struct Letter {
    std::string identity;
    MessageBytes bytes;
    std::uint64_t leads = 0;        ///< the capture that this reply gives its receiver the lead of
    std::shared_ptr<void> held{};   ///< released once the bytes are on the network, or dropped
    std::shared_ptr<void> place{};  ///< so is this, of what its receiver has not read
};

/// @thread thread-safe
class Outbox {
public:
    void post(Letter letter) {
        {
            const std::lock_guard lock(mutex_);
            letters_.push_back(std::move(letter));
        }
        event_.raise();
    }
    std::vector<Letter> take() {
        event_.lower();
        const std::lock_guard lock(mutex_);
        return std::exchange(letters_, {});
    }
    /// Readable while there is something to take.
    int fd() const { return event_.fd(); }

private:
    std::mutex mutex_;
    std::vector<Letter> letters_;
    Event event_;
};

}  // namespace ringside::agent
