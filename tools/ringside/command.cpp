// Errors and output of every verb.
#include "tools/ringside/command.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "tools/ringside/progress.hpp"

namespace ringside::tools {

namespace {

/// @return 0, or errno
int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(file, text.data(), text.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return errno;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

Error cannot_write(const std::string& path, int error_number) {
    return {ErrorCode::kUsage, "write " + path + ": " + errno_text(error_number) +
                                   "; name a file in a directory that you may write"};
}

/// lstat, not stat: a rename replaces the link, not what it leads to.
bool is_special(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string errno_text(int error_number) {
    return std::system_category().message(error_number);
}

void say(const std::string& message) {
    clear_bar();
    // One write, so that lines of several processes on one terminal don't mix.
    write_all(STDERR_FILENO, "ringside: " + message + "\n");
}

int fail(const Error& error) {
    say(error.message);
    return static_cast<int>(error.code);
}

Result<void> print(const std::string& text) {
    if (const int error = write_all(STDOUT_FILENO, text); error != 0) {
        return Error{ErrorCode::kInternal, "write to standard output: " + errno_text(error)};
    }
    return {};
}

void print_to_stderr(const std::string& text) {
    write_all(STDERR_FILENO, text);
}

Result<void> write_file(const std::string& path, const std::string& text) {
    const bool direct = is_special(path);
    const std::string target = direct ? path : path + ".partial";
    const int file = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return cannot_write(path, errno);
    }
    int error = write_all(file, text);
    if (::close(file) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0 && !direct && ::rename(target.c_str(), path.c_str()) != 0) {
        error = errno;
    }
    if (error != 0 && !direct) {
        ::unlink(target.c_str());
    }
    return error == 0 ? Result<void>() : Result<void>(cannot_write(path, error));
}

Result<void> check_target(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) {
        return {};
    }
    return cannot_write(path, errno);
}

}  // namespace ringside::tools
