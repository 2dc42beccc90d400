#include "inject/core/headroom.hpp"

#include <fcntl.h>
#include <sys/statfs.h>

#include <cstring>

#include "inject/core/file_descriptor.hpp"
#include "inject/core/fixed_text.hpp"

namespace ringside::inject {

namespace {

// The numbers that are looked for stand in the first 1200 bytes of memory.stat; hooks run on small stacks.
constexpr std::size_t kReadBytes = 1600;
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
    {":", "", "/memory.max", "/memory.current", "\ninactive_file "},
    {"memory:", "/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "\ntotal_inactive_file "},
};

/// @return whether anything was read; the text is NUL-terminated
bool read_text(const char* path, char (&text)[kReadBytes]) {
    const FileDescriptor file{open(path, O_RDONLY | O_CLOEXEC)};
    const ssize_t size = file ? read(file.get(), text, sizeof text - 1) : -1;
    text[size > 0 ? size : 0] = 0;
    return size > 0;
}

/// @return false where there is no number ("max")
bool parse(const char* text, std::uint64_t& value) {
    value = 0;
    const char* at = text;
    for (; *at >= '0' && *at <= '9'; ++at)
        value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    return at != text;
}

bool read_number(const Path& folder, const char* name, std::uint64_t& value) {
    char text[kReadBytes];
    Path path;
    path.append(folder.c_str()).append(name);
    return read_text(path.c_str(), text) && parse(text, value);
}

std::uint64_t reclaimable(const Path& folder, const Controller& controller) {
    char text[kReadBytes];
    Path path;
    path.append(folder.c_str()).append("/memory.stat");
    std::uint64_t value = 0;
    const char* at =
        read_text(path.c_str(), text) ? std::strstr(text, controller.reclaimable) : nullptr;
    if (at != nullptr) parse(at + std::strlen(controller.reclaimable), value);
    return value;
}

bool level_allows(const Path& folder, const Controller& controller, std::uint64_t bytes) {
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

/// The process's own group below the mount, without the trailing newline; false where it is in none.
bool own_group(const char* membership, const Controller& controller, Path& group) {
    const std::size_t length = std::strlen(controller.line);
    for (const char* line = membership; *line != 0;) {
        const char* end = std::strchr(line, '\n');
        if (end == nullptr) end = line + std::strlen(line);
        const char* colon =
            static_cast<const char*>(std::memchr(line, ':', static_cast<std::size_t>(end - line)));
        if (colon != nullptr && std::strncmp(colon + 1, controller.line, length) == 0) {
            const char* path = colon + 1 + length;
            group.append(path, static_cast<std::size_t>(end - path));
            return true;
        }
        line = *end != 0 ? end + 1 : end;
    }
    return false;
}

/// A group and all above it, up to the mount. In a container the path may be the host's: then the mount itself is the group.
bool levels_allow(const Path& mount, const Path& group, const Controller& controller,
                  std::uint64_t bytes) {
    std::size_t length = group.length();
    for (int level = 0; level < kMostLevels; ++level) {
        while (length > 0 && group.c_str()[length - 1] == '/') --length;
        Path folder;
        folder.append(mount.c_str()).append(group.c_str(), length);
        if (!level_allows(folder, controller, bytes)) return false;
        if (length == 0) return true;
        while (length > 0 && group.c_str()[length - 1] != '/') --length;
    }
    return true;
}

}  // namespace

bool cgroups_allow(std::uint64_t bytes, const char* mount, const char* membership) {
    char groups[kReadBytes];
    if (!read_text(membership, groups)) return true;
    for (const Controller& controller : kControllers) {
        Path folder, group;
        folder.append(mount).append(controller.folder);
        if (own_group(groups, controller, group) && !group.cut() &&
            !levels_allow(folder, group, controller, bytes)) {
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
