#include "agent/control/worker.hpp"

#include <utility>

#include "agent/control/beside.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// No connection's identity is empty.
const std::string kOwn;

}  // namespace

Worker::~Worker() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

bool Worker::has_room(const std::string& whose, std::size_t bytes) const {
    if (count_ >= kMostTasksOfAll) return false;
    const auto found = queues_.find(whose);
    const std::size_t tasks = found == queues_.end() ? 0 : found->second.tasks.size();
    const std::size_t own = found == queues_.end() ? 0 : found->second.bytes;
    return tasks < kMostTasksOfOne &&
           (bytes_ + bytes <= kMostTaskBytes || own + bytes <= kTaskBytesInACrowd);
}

void Worker::enter(const std::string& whose, Task task) {
    Queue& queue = queues_[whose];
    if (queue.tasks.empty()) turns_.push_back(whose);
    ++count_;
    bytes_ += task.bytes;
    queue.bytes += task.bytes;
    queue.tasks.push_back(std::move(task));
}

schema::Result<void> Worker::make_thread() {
    if (thread_.joinable()) return {};
    return run_beside(thread_, [this] { run(); });
}

schema::Result<void> Worker::submit(const std::string& whose, Task task) {
    {
        const std::lock_guard lock(mutex_);
        if (!has_room(whose, task.bytes))
            return Error{ErrorCode::kRefused,
                         "this agent has too many requests of yours waiting; ask again later"};
        if (auto made = make_thread(); !made) return made;
        enter(whose, std::move(task));
    }
    changed_.notify_one();
    return {};
}

schema::Result<void> Worker::submit_own(std::function<void()> run) {
    {
        const std::lock_guard lock(mutex_);
        if (auto made = make_thread(); !made) return made;
        enter(kOwn, {std::move(run), {}});
    }
    changed_.notify_one();
    return {};
}

Worker::Task Worker::next() {
    const auto found = queues_.find(turns_.front());
    Queue& queue = found->second;
    Task task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    --count_;
    bytes_ -= task.bytes;
    queue.bytes -= task.bytes;
    if (queue.tasks.empty())
        queues_.erase(found);
    else
        turns_.push_back(turns_.front());
    turns_.pop_front();
    return task;
}

void Worker::run() {
    while (true) {
        Task task;
        bool ending = false;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return ending_ || count_ != 0; });
            if (count_ == 0) return;
            ending = ending_;
            task = next();
        }
        if (ending && task.drop)
            task.drop();
        else
            task.run();
    }
}

}  // namespace ringside::agent
