#include "agent/control/rendezvous.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <tuple>
#include <utility>

#include "agent/attach/file_handle.hpp"
#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::size_t kMostNoteBytes = 512;
constexpr std::time_t kLongestSeconds = 24 * 3600;  ///< an agent's note is never so old

/// Of a member's family. @return empty: there is no home, or none that is the same for every program
std::string directory_of(const std::string& member) {
    const char* home = ::secure_getenv("HOME");
    return home == nullptr || *home != '/'
               ? ""
               : std::string(home) + "/.ringside/jobs/" + family_of(member);
}

Error failed(const char* action, const std::string& path, int cause) {
    const bool not_private = cause == EPERM || cause == ENOTDIR || cause == ELOOP;
    return {not_private ? ErrorCode::kRefused : ErrorCode::kUsage,
            std::string(action) + " " + path + ": " + error_text(cause) +
                (not_private ? "; it must be a directory of yours that nobody else may write to"
                             : "; agents are found on this host alone, or by --job with --hosts")};
}

/// Opens `~/.ringside/jobs/<family>`. @param make  what is missing of it
FileHandle open_family(const std::string& path, bool make) {
    const std::size_t family = path.rfind('/') + 1;
    const std::string own = path.substr(0, path.rfind('/', family - 2));
    const FileHandle first = open_private_directory(AT_FDCWD, own.c_str(), make);
    const FileHandle second =
        first ? open_private_directory(first.get(), "jobs", make) : FileHandle();
    return second ? open_private_directory(second.get(), &path[family], make) : FileHandle();
}

std::string read_note(int directory, const std::string& file) {
    char text[kMostNoteBytes];
    const FileHandle note(::openat(directory, file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const ssize_t size = ::read(note.get(), text, sizeof text);
    return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

/// @return false: no note, or none that we understand
bool parse_note(const std::string& file, std::string text, NotedAgent& out) {
    const std::size_t at = file.find('@');
    if (file.front() == '.' || at == std::string::npos || text.empty() || text.back() != '\n')
        return false;
    text.pop_back();
    out = {file.substr(0, at), file.substr(at + 1), std::move(text)};
    return is_tcp(out.endpoint) && tcp_address(out.endpoint);
}

}  // namespace

schema::Result<std::vector<NotedAgent>> noted_agents(const std::string& member) {
    std::vector<NotedAgent> agents;
    const std::string path = directory_of(member);
    if (path.empty()) return agents;
    const FileHandle directory = open_family(path, false);
    if (!directory && errno == ENOENT) return agents;
    if (!directory) return failed("read", path, errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(
        ::fdopendir(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0)), &::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        NotedAgent agent;
        struct stat status {};
        if (::fstatat(directory.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (::time(nullptr) - status.st_mtime > kLongestSeconds) {
            ::unlinkat(directory.get(), entry->d_name, 0);
            continue;
        }
        if (parse_note(entry->d_name, read_note(directory.get(), entry->d_name), agent) &&
            (agent.member == member || family_of(member) == member))
            agents.push_back(std::move(agent));
    }
    std::sort(agents.begin(), agents.end(), [](const NotedAgent& a, const NotedAgent& b) {
        return std::tie(a.member, a.node) < std::tie(b.member, b.node);
    });
    return agents;
}

schema::Result<RendezvousNote> RendezvousNote::write(const NotedAgent& agent) {
    const std::string directory = directory_of(agent.member);
    const std::string file = agent.member + "@" + agent.node;
    if (directory.empty())
        return Error{ErrorCode::kUsage,
                     "note where this agent listens: there is no home; set HOME"};
    // The last agent of another node may take the directory away between two of our calls.
    constexpr int kMostTries = 100;
    int cause = ENOENT;
    for (int tries = 0; tries < kMostTries && cause == ENOENT; ++tries) {
        const FileHandle family = open_family(directory, true);
        cause = family ? 0 : errno;
        if (cause != 0) continue;
        const std::string aside = "." + file, text = agent.endpoint + "\n";
        const FileHandle note(::openat(family.get(), aside.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                       S_IRUSR | S_IWUSR));
        // On the disk before it has its name: where a quota is full some file systems say so that late.
        const bool written =
            note &&
            ::write(note.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
            ::fsync(note.get()) == 0 &&
            ::renameat(family.get(), aside.c_str(), family.get(), file.c_str()) == 0;
        if (written) return RendezvousNote(directory, file, text);
        cause = errno;
        ::unlinkat(family.get(), aside.c_str(), 0);
    }
    return failed("write", directory + "/" + file, cause);
}

RendezvousNote::~RendezvousNote() {
    if (file_.empty()) return;
    const FileHandle directory(
        ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // Another's by now: one that took over when this one's node was thought dead.
    if (!directory || read_note(directory.get(), file_) != text_) return;
    ::unlinkat(directory.get(), file_.c_str(), 0);
    ::rmdir(directory_.c_str());  // the last one
}

void keep_noted(const std::string& path) {
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void forget_agent(const std::string& member, const std::string& node) {
    const std::string directory = directory_of(member);
    if (directory.empty()) return;
    ::unlink((directory + "/" + member + "@" + node).c_str());
    ::rmdir(directory.c_str());
}

}  // namespace ringside::agent
