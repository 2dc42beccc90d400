#include "inject/core/stale_segments.hpp"

#include <errno.h>
#include <signal.h>

#include <cstring>

#include "inject/core/file_status.hpp"
#include "inject/core/kernel_calls.hpp"
#include "schema/control_page.hpp"
#include "schema/segment.hpp"

namespace ringside::inject {

namespace {

// Starting a process must stay cheap in a directory of thousands: what is beyond these bounds is left to others.
constexpr std::uint32_t kMostReads = 32;
constexpr std::uint32_t kMostRemoved = 64;
constexpr std::size_t kReadBytes = 2048;  // of stack that a start touches anyway

// What getdents64() writes; the C library has no declaration of its own for it.
struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t bytes;
    std::uint8_t type;
    char name[1];
};

/// A decimal number and the dot behind it.
/// @return what follows, or null
const char* read_number(const char* text, std::uint64_t& value) {
    const char* begin = text;
    value = 0;
    for (; *text >= '0' && *text <= '9' && text - begin < 20; ++text) {
        value = value * 10 + static_cast<std::uint64_t>(*text - '0');
    }
    return text != begin && *text == '.' ? text + 1 : nullptr;
}

bool is_locked(const FileDescriptor& file, off_t length) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = length;
    return control_lock(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool agent_is_there(const FileDescriptor& directory) {
    const FileDescriptor file{
        open_at(directory.get(), schema::kLockFileName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
    return file && is_locked(file, 0);
}

/// Of a dead process, whole, and without a lane: nobody would miss it.
bool is_stale(const FileDescriptor& directory, const char* name) {
    const FileDescriptor file{
        open_at(directory.get(), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
    struct stat status {};
    if (!file || !status_of(file.get(), status) || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || is_locked(file, 1)) {
        return false;
    }
    std::uint64_t words[5];
    static_assert(offsetof(schema::SegmentHeader, lanes_in_use) == 28 && sizeof words >= 32);
    if (read_file_at(file.get(), words, sizeof words, 0) != sizeof words) return false;
    return words[0] == schema::kSegmentMagic && words[3] >> 32 == 0;
}

struct Sweep {
    const FileDescriptor& directory;
    std::uint64_t pid_namespace;
    std::uint32_t removed = 0;
    int agent = -1;  ///< whether there is one; below 0: not looked yet

    bool others_allowed() {
        if (agent < 0) agent = agent_is_there(directory) ? 1 : 0;
        return agent == 0;
    }

    void look_at(const char* name) {
        std::uint64_t space = 0, pid = 0;
        const char* rest = read_number(name, space);
        if (rest == nullptr || space != pid_namespace) return;
        if (read_number(rest, pid) == nullptr || pid > INT32_MAX) return;
        const auto process = static_cast<pid_t>(pid);
        if (process != getpid() && (kill(process, 0) == 0 || errno != ESRCH || !others_allowed())) {
            return;
        }
        if (is_stale(directory, name) && unlinkat(directory.get(), name, 0) == 0) ++removed;
    }
};

}  // namespace

void remove_stale_segments(const FileDescriptor& directory, std::uint64_t pid_namespace) {
    if (pid_namespace == 0) return;
    alignas(Entry) char buffer[kReadBytes];
    Sweep sweep{directory, pid_namespace};
    for (std::uint32_t i = 0; i < kMostReads; ++i) {
        const long size = syscall(SYS_getdents64, directory.get(), buffer, sizeof buffer);
        if (size <= 0) return;
        for (long at = 0; at < size && sweep.removed < kMostRemoved;) {
            Entry entry;
            std::memcpy(&entry, buffer + at, offsetof(Entry, name));
            if (entry.bytes == 0) return;
            sweep.look_at(buffer + at + offsetof(Entry, name));
            at += entry.bytes;
        }
    }
}

}  // namespace ringside::inject
