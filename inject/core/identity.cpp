#include "inject/core/identity.hpp"

#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "inject/core/file_status.hpp"
#include "schema/ids.hpp"

namespace ringside::inject {

namespace {

/// The path that the kernel was given, links and all, where that is the executable's: the first look into a process's /proc costs more than
/// all else here together, and to resolve a path as much as to make a file.
/// @return null where it may be a script's (then it is one of the arguments, too), a descriptor's, or relative
const char* given_path(const char* const* arguments) {
    const auto* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (given == nullptr || arguments == nullptr || *arguments == nullptr) return nullptr;
    if (*given != '/' || starts_with(given, "/dev/") || starts_with(given, "/proc/"))
        return nullptr;
    for (const char* const* argument = arguments + 1; *argument != nullptr; ++argument) {
        if (std::strcmp(*argument, given) == 0) return nullptr;
    }
    return given;
}

/// Patterns of executables mean the file, by whatever name it was started.
bool patterns_given() {
    return secure_getenv("RINGSIDE_INCLUDE") != nullptr ||
           secure_getenv("RINGSIDE_EXCLUDE") != nullptr;
}

void read_executable(Identity& identity, const char* const* arguments) {
    identity.executable.clear();
    const char* given = patterns_given() ? nullptr : given_path(arguments);
    if (given != nullptr) {
        identity.executable.append(given);
        return;
    }
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length > 0) identity.executable.append(path, static_cast<std::size_t>(length));
}

void read_command_line(Identity& identity, const char* const* arguments) {
    std::memset(identity.command_line, 0, sizeof identity.command_line);
    std::size_t at = 0;
    for (; arguments != nullptr && *arguments != nullptr; ++arguments) {
        const std::size_t room = sizeof identity.command_line - 1 - at;
        if (room == 0) return;
        const std::size_t length = strnlen(*arguments, room - 1);
        std::memcpy(identity.command_line + at, *arguments, length);
        at += length + 1;
    }
}

/// schema::proc_mark() of a /proc in which we have the pid that we know ourselves; 0: there is none.
std::uint64_t proc_that_shows_us() {
    struct stat status {};
    char shown[24];
    const ssize_t length = readlink("/proc/self", shown, sizeof shown);
    FixedText<24> own;
    own.append_number(static_cast<std::uint64_t>(getpid()));
    const bool ours = length > 0 && static_cast<std::size_t>(length) == own.length() &&
                      std::memcmp(shown, own.c_str(), own.length()) == 0;
    if (!ours || !status_of("/proc", status)) return 0;
    return schema::proc_mark(status.st_dev, static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                             static_cast<std::uint64_t>(status.st_ctim.tv_nsec));
}

}  // namespace

bool parse_number(const char* text, std::int32_t& value) {
    if (text == nullptr || *text == 0) return false;
    std::int64_t number = 0;
    for (; *text != 0; ++text) {
        if (*text < '0' || *text > '9') return false;
        number = number * 10 + (*text - '0');
        if (number > INT32_MAX) return false;
    }
    value = static_cast<std::int32_t>(number);
    return true;
}

void read_identity(Identity& identity, const char* const* arguments) {
    read_executable(identity, arguments);
    read_command_line(identity, arguments);
    identity.rank = -1;
    for (const char* variable : schema::kRankVariables) {
        if (parse_number(secure_getenv(variable), identity.rank)) break;
    }
}

std::uint64_t pid_namespace(const schema::ControlPage& control) {
    return control.machine_proc != 0 && control.machine_proc == proc_that_shows_us()
               ? schema::kMachinePidNamespace
               : pid_namespace();
}

std::uint64_t machine_proc() {
    return pid_namespace() == schema::kMachinePidNamespace ? proc_that_shows_us() : 0;
}

std::uint64_t pid_namespace() {
    struct stat status {};
    return status_of("/proc/self/ns/pid", status) ? status.st_ino : 0;
}

}  // namespace ringside::inject
