// Waits a second, or for the end of the work, whichever comes first; then shows it five times a second.
#include "tools/ringside/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tools/ringside/command.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kBetween{200};
/// Of lines that differ by their numbers alone.
constexpr std::chrono::seconds kBetweenLines{5};
constexpr const char* kClear = "\r\033[K";

std::atomic<bool> quiet{false};
std::atomic<bool> bar_stands{false};

std::string without_numbers(std::string text) {
    text.erase(
        std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }),
        text.end());
    return text;
}

/// Of the terminal that stderr is; 0: it is none.
std::size_t terminal_columns() {
    winsize size{};
    if (::isatty(STDERR_FILENO) == 0) {
        return 0;
    }
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

}  // namespace

void be_quiet() {
    quiet = true;
}

void clear_bar() {
    if (bar_stands.exchange(false)) {
        print_to_stderr(kClear);
    }
}

std::string bar_text(std::uint64_t done, std::uint64_t total) {
    constexpr std::uint64_t kWidth = 24, kPercent = 100;
    if (total == 0) {
        return "";
    }
    const std::uint64_t part = std::min(done, total);
    const auto filled = static_cast<std::size_t>(part * kWidth / total);
    std::string percent = std::to_string(part * kPercent / total);
    percent.insert(0, 3 - percent.size(), ' ');
    return "[" + std::string(filled, '#') + std::string(kWidth - filled, '-') + "] " + percent +
           " %";
}

Progress::Progress(std::string what) : what_(std::move(what)), thread_([this] { run(); }) {}

Progress::~Progress() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
    clear_bar();
}

void Progress::tell(const std::string& what, std::uint64_t done, std::uint64_t total,
                    bool at_once) {
    const std::lock_guard lock(mutex_);
    const bool news = what_ != what || (at_once && !shows_);
    what_ = what;
    done_ = done;
    total_ = total;
    shows_ |= at_once;
    // A phase that is over before the thread looks is said all the same; of how far it is, the thread tells.
    if (shows_ && news) {
        show();
    }
}

void Progress::run() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return ends_; });
    while (!ends_) {
        shows_ = true;
        show();
        changed_.wait_for(lock, kBetween, [this] { return ends_; });
    }
}

/// With the lock.
void Progress::show() {
    if (quiet || what_.empty()) {
        return;
    }
    const std::size_t columns = terminal_columns();
    if (columns == 0) {
        const bool news = without_numbers(said_) != without_numbers(what_) ||
                          (said_ != what_ && Clock::now() - said_at_ >= kBetweenLines);
        if (news) {
            say(what_ + " ...");
            said_ = what_;
            said_at_ = Clock::now();
        }
        return;
    }
    const auto ran =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_).count();
    const std::string bar = bar_text(done_, total_);
    std::string line = "ringside: " + what_ + (bar.empty() ? " ..." : " " + bar + ",") + " " +
                       std::to_string(ran / 1000) + "." + std::to_string(ran / 100 % 10) + " s";
    // One that wraps could not be taken back.
    line.resize(std::min(line.size(), columns - 1));
    print_to_stderr(kClear + line);
    bar_stands = true;
}

}  // namespace ringside::tools
