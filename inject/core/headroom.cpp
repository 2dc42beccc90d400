#include "inject/core/headroom.hpp"

#include <sys/statfs.h>

#include <cstring>

#include "inject/core/file_descriptor.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/kernel_calls.hpp"

namespace ringside::inject {

namespace {

// A thread's first record may come from a signal handler on a stack of 8 KiB, most of which the kernel's own frame takes: one path and one small
// buffer at a time.
constexpr std::size_t kReadBytes = 128;
constexpr std::uint64_t kLeastMargin = 4u << 20;
constexpr std::uint64_t kMarginOfLimit = 32;
constexpr int kMostLevels = 16;

using Path = FixedText<512>;

/// What a version of cgroups calls things.
struct Controller {
    const char* line;  ///< in the membership file, after the number
    const char* folder;
    const char* limit;
    const char* usage;
    const char* reclaimable;  ///< in memory.stat
};
constexpr Controller kControllers[] = {
    {":", "", "/memory.max", "/memory.current", "inactive_file "},
    {"memory:", "/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file "},
};

/// A file, a character at a time.
class Characters {
public:
    explicit Characters(const char* path) : file_(open_file(path, O_RDONLY | O_CLOEXEC)) {}

    /// @return 0 at the end, and where there is no file
    char next() {
        if (at_ == size_) {
            const ssize_t size = file_ ? read_file(file_.get(), bytes_, sizeof bytes_) : -1;
            at_ = 0;
            size_ = size > 0 ? static_cast<std::size_t>(size) : 0;
        }
        return at_ != size_ ? bytes_[at_++] : '\0';
    }
    /// Goes to the line that begins so, behind what it begins with.
    /// @param after  where the text stands: 0 at the line's begin, else behind this character's first
    bool find_line(const char* text, char after) {
        for (char c = next(); c != 0;) {
            while (after != 0 && c != after && c != '\n' && c != 0) c = next();
            if (after != 0 && c == after) c = next();
            const char* wanted = text;
            for (; *wanted != 0 && c == *wanted; ++wanted) c = next();
            if (*wanted == 0) {
                first_ = c;
                return true;
            }
            while (c != '\n' && c != 0) c = next();
            if (c != 0) c = next();
        }
        return false;
    }
    /// The first character behind what find_line() has found.
    char first() const { return first_; }

private:
    FileDescriptor file_;
    char bytes_[kReadBytes];
    std::size_t at_ = 0;
    std::size_t size_ = 0;
    char first_ = 0;
};

/// @param c  its first character
/// @return false where there is no number ("max")
bool parse(Characters& text, char c, std::uint64_t& value) {
    value = 0;
    if (c < '0' || c > '9') return false;
    for (; c >= '0' && c <= '9'; c = text.next())
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    return true;
}

bool read_number(const char* path, std::uint64_t& value) {
    Characters text(path);
    return parse(text, text.next(), value);
}

/// @param folder  of a group; has its length again afterwards
bool read_number(Path& folder, const char* name, std::uint64_t& value) {
    const std::size_t length = folder.length();
    folder.append(name);
    const bool found = read_number(folder.c_str(), value);
    folder.shorten(length);
    return found;
}

std::uint64_t reclaimable(Path& folder, const Controller& controller) {
    const std::size_t length = folder.length();
    folder.append("/memory.stat");
    Characters text(folder.c_str());
    folder.shorten(length);
    std::uint64_t value = 0;
    return text.find_line(controller.reclaimable, 0) && parse(text, text.first(), value) ? value
                                                                                         : 0;
}

bool level_allows(Path& folder, const Controller& controller, std::uint64_t bytes) {
    std::uint64_t limit = 0, usage = 0;
    if (!read_number(folder, controller.limit, limit) ||
        !read_number(folder, controller.usage, usage)) {
        return true;
    }
    const std::uint64_t part = limit / kMarginOfLimit;
    const std::uint64_t wanted = bytes + (part > kLeastMargin ? part : kLeastMargin);
    if (usage < limit && limit - usage >= wanted) return true;
    const std::uint64_t cache = reclaimable(folder, controller);
    usage -= cache < usage ? cache : usage;
    return usage < limit && limit - usage >= wanted;
}

/// Appends the process's own group; false where it is in none.
bool append_own_group(const char* membership, const Controller& controller, Path& folder) {
    Characters text(membership);
    if (!text.find_line(controller.line, ':')) return false;
    for (char c = text.first(); c != '\n' && c != 0; c = text.next()) folder.append(&c, 1);
    return true;
}

/// A group and all above it, up to the mount. In a container the path may be the host's: then the mount itself is the group.
/// @param folder  mount and group
bool levels_allow(Path& folder, std::size_t mount_length, const Controller& controller,
                  std::uint64_t bytes) {
    std::size_t length = folder.length();
    for (int level = 0; level < kMostLevels; ++level) {
        while (length > mount_length && folder.c_str()[length - 1] == '/') --length;
        folder.shorten(length);
        if (!level_allows(folder, controller, bytes)) return false;
        if (length <= mount_length) return true;
        while (length > mount_length && folder.c_str()[length - 1] != '/') --length;
    }
    return true;
}

}  // namespace

bool cgroups_allow(std::uint64_t bytes, const char* mount, const char* membership) {
    Path folder;
    for (const Controller& controller : kControllers) {
        folder.clear();
        folder.append(mount).append(controller.folder);
        const std::size_t mount_length = folder.length();
        if (append_own_group(membership, controller, folder) && !folder.cut() &&
            !levels_allow(folder, mount_length, controller, bytes)) {
            return false;
        }
    }
    return true;
}

bool cgroups_allow(std::uint64_t bytes) {
    return cgroups_allow(bytes, "/sys/fs/cgroup", "/proc/self/cgroup");
}

bool file_system_allows(const char* path, std::uint64_t bytes) {
    struct statfs status {};
    if (statfs(path, &status) != 0) return true;
    return bytes <= static_cast<std::uint64_t>(status.f_bavail) *
                        static_cast<std::uint64_t>(status.f_bsize) / 2;
}

}  // namespace ringside::inject
