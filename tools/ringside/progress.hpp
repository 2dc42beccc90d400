// One line on stderr for work that takes more than a second, and none for the rest: `ringside: reading 3 dumps ...`.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ringside::tools {

/// Says `what` once, when it has lived for a second.
/// @thread main thread; the line comes from a thread of its own
class Progress {
public:
    explicit Progress(std::string what);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace ringside::tools
