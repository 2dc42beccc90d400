// One thread for what takes time in the engine (attaching, stopping, halves), so that the server's loop answers pings meanwhile. Who asks has a queue of his own,
// they have their turns one after the other: who asks much waits for himself alone. The thread comes with the first task: most agents are asked for little.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "schema/result.hpp"

namespace ringside::agent {

/// Of each who asks, and of all: with as many connections as there may be nobody is refused for others' sake.
inline constexpr std::size_t kMostTasksOfOne = 16;
inline constexpr std::size_t kMostTasksOfAll = 2048;
/// Of the messages that wait; what each may have where that is exceeded.
inline constexpr std::size_t kMostTaskBytes = std::size_t{2} << 20;
inline constexpr std::size_t kTaskBytesInACrowd = std::size_t{16} << 10;

class Worker {
public:
    struct Task {
        std::function<void()> run;
        /// Instead, where the worker ends before its turn has come; empty: it runs all the same.
        std::function<void()> drop;
        std::size_t bytes = 0;  ///< that it holds
    };

    Worker() = default;
    /// Waits for the task that runs, and for those of the queued ones that can't be dropped.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// @param whose  a connection's
    /// @errors Refused: he has too much in the queue, or there can be no thread; the task is then not run
    /// @thread thread-safe
    schema::Result<void> submit(const std::string& whose, Task task);
    /// Of the agent itself: never dropped.
    /// @errors Refused: there can be no thread
    /// @thread thread-safe
    schema::Result<void> submit_own(std::function<void()> run);

private:
    struct Queue {
        std::deque<Task> tasks;
        std::size_t bytes = 0;
    };
    bool has_room(const std::string& whose, std::size_t bytes) const;
    void enter(const std::string& whose, Task task);
    schema::Result<void> make_thread();
    Task next();
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::unordered_map<std::string, Queue> queues_;  ///< that are not empty
    std::deque<std::string> turns_;                  ///< whose they are
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace ringside::agent
