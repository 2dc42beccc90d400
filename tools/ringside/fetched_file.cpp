#include "tools/ringside/fetched_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "tools/ringside/command.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

std::string fetched_text(const agent::Fetched& fetched, std::int64_t took_ns) {
    const auto times = [](std::uint32_t count) {
        return count == 1 ? std::string("once") : std::to_string(count) + " times";
    };
    const double came = static_cast<double>(fetched.bytes - fetched.kept_bytes);
    char speed[32];
    std::snprintf(speed, sizeof speed, "%.1f MB/s",
                  came * 1e3 / static_cast<double>(std::max<std::int64_t>(took_ns, 1)));
    return bytes_text(fetched.bytes) + " in " + time_text(took_ns) + ", " + speed +
           (fetched.kept_bytes == 0 ? ""
                                    : "; " + bytes_text(fetched.kept_bytes) + " of it were here") +
           (fetched.reconnected == 0 ? "" : "; connected again " + times(fetched.reconnected)) +
           (fetched.asked_again == 0
                ? ""
                : "; damaged parts asked for again " + times(fetched.asked_again)) +
           (fetched.begun_again == 0 ? "" : "; begun again: what was here was of another file");
}

Result<std::string> fetch_into(const OutputDir& output, const agent::FetchWish& wish,
                               const std::string& name, Progress& progress,
                               const std::function<bool()>& go_on) {
    using Clock = std::chrono::steady_clock;
    if (const auto free = output.check_free(name); !free) {
        return free.error();
    }
    const std::string partial = output.partial(name);
    constexpr mode_t kPrivate = 0600;
    const Descriptor file(
        ::open(partial.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (file.number() < 0) {
        return Error{ErrorCode::kUsage, "write " + partial + ": " + errno_text(errno) +
                                            "; name another directory with -o DIR"};
    }
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
        return Error{ErrorCode::kRefused,
                     "write " + partial + ": another ringside is fetching it; wait for its end"};
    }
    const auto began = Clock::now();
    const auto fetched = agent::fetch_file(
        wish, file.number(),
        [&](std::uint64_t done, std::uint64_t total, const std::string& trouble) {
            progress.tell("fetching " + name + (trouble.empty() ? "" : " (" + trouble + ")"), done,
                          total);
            return go_on();
        });
    if (!fetched) {
        struct stat facts {};
        if (::fstat(file.number(), &facts) == 0 && facts.st_size == 0) {
            ::unlink(partial.c_str());  // nothing to go on with
        }
        return fetched.error();
    }
    if (::fsync(file.number()) != 0) {
        return Error{ErrorCode::kInternal, "write " + partial + ": " + errno_text(errno)};
    }
    auto path = output.finish(name);
    if (path) {
        say("fetched " + name + ": " +
            fetched_text(*fetched, std::chrono::nanoseconds(Clock::now() - began).count()));
    }
    return path;
}

}  // namespace ringside::tools
