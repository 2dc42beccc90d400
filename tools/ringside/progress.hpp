// Work that takes more than a second, on stderr: a bar where that is a terminal, a line each phase where it is not, nothing with --quiet.
//
//     ringside: capturing [##########--------------]  42 %, 0.9 s        ringside: reading 3 files ... 2.1 s
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace ringside::tools {

/// Shows what is done, from when it has lived for a second until its end. One at a time.
/// @thread main thread, but for tell(); what it shows comes from a thread of its own
class Progress {
public:
    /// @param what  "reading 3 files"; empty: nothing is under way yet
    explicit Progress(std::string what);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Something else is under way now, or more of it is done.
    /// @thread thread-safe
    /// @param done, total  in one unit, whatever it is; total 0: nobody knows how much there is
    /// @param at_once      it will take long, that is known already
    void tell(const std::string& what, std::uint64_t done = 0, std::uint64_t total = 0,
              bool at_once = false);

private:
    using Clock = std::chrono::steady_clock;

    void run();
    void show();

    std::mutex mutex_;
    std::condition_variable changed_;
    bool ends_ = false;
    bool shows_ = false;
    std::string what_;
    std::string said_;  ///< of lines: the last one
    Clock::time_point said_at_;
    std::uint64_t done_ = 0;
    std::uint64_t total_ = 0;
    Clock::time_point began_ = Clock::now();
    std::thread thread_;
};

/// From now on no progress is shown (--quiet).
/// @thread main thread
void be_quiet();

/// Takes a bar off the terminal, for a line that is said meanwhile.
/// @thread thread-safe
void clear_bar();

/// "[######------]  50 %"; of nothing: empty.
std::string bar_text(std::uint64_t done, std::uint64_t total);

}  // namespace ringside::tools
