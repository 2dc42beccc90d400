#include "agent/control/worker.hpp"

#include <utility>

namespace ringside::agent {

Worker::~Worker() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

bool Worker::submit(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        if (tasks_.size() >= kMostTasks) return false;
        tasks_.push_back(std::move(task));
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
    changed_.notify_one();
    return true;
}

void Worker::run() {
    while (true) {
        std::function<void()> task;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        task();
    }
}

}  // namespace ringside::agent
