// One thread for what takes time in the engine (attaching, stopping, halves), so that the server's loop answers pings meanwhile. In order,
// with a bounded queue. The thread comes with the first task: most agents are asked for little.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ringside::agent {

class Worker {
public:
    Worker() = default;
    /// Runs what is queued, then ends.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// @return false where the queue is full; the task is then not run
    /// @thread thread-safe
    bool submit(std::function<void()> task);

private:
    void run();
    static constexpr std::size_t kMostTasks = 64;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace ringside::agent
