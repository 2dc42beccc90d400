// Waits a second, or for the end of the work, whichever comes first.
#include "tools/ringside/progress.hpp"

#include <chrono>
#include <csignal>
#include <utility>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

Progress::Progress(std::string what)
    : thread_([this, text = std::move(what)] {
          std::unique_lock lock(mutex_);
          if (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
              say(text + " ...");
          }
      }) {}

Progress::~Progress() {
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

}  // namespace ringside::tools
