#include "agent/dump/output_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "agent/attach/beneath.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

Error refuse(const std::string& root, const std::string& name, const std::string& cause) {
    return {ErrorCode::kRefused, "write dump '" + name + "' beneath " + root + ": " + cause};
}

std::string absolute(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                           &std::free);
    return real ? real.get() : path;
}

/// Looked up from the root each time: who moves a folder away meanwhile takes no dump with it.
FileHandle make_private(int root, int parent, const std::string& path, const std::string& part) {
    constexpr mode_t kPrivate = 0700;
    if (::mkdirat(parent, part.c_str(), kPrivate) != 0 && errno != EEXIST) return FileHandle();
    FileHandle made = open_beneath(root, path, O_RDONLY | O_DIRECTORY);
    if (made && !is_private_directory(made.get())) return FileHandle();
    return made;
}

}  // namespace

schema::Result<OutputFolder> OutputFolder::open(const std::string& root, const std::string& name) {
    constexpr mode_t kPrivate = 0700;
    if (::mkdir(root.c_str(), kPrivate) != 0 && errno != EEXIST) {
        return Error{ErrorCode::kUsage, "make output root " + root + ": " + error_text(errno) +
                                            "; make its parent or give another --output"};
    }
    // The root itself is the user's choice and may be a link; what lies beneath it is ours.
    const FileHandle top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        return Error{ErrorCode::kUsage, "open output root " + root + ": " + error_text(errno) +
                                            "; give another --output"};
    }
    OutputFolder folder{FileHandle(), absolute(root)};
    int parent = top.get();
    for (std::size_t at = 0; at <= name.size();) {
        const std::size_t slash = std::min(name.find('/', at), name.size());
        const std::string part = name.substr(at, slash - at);
        if (!is_path_component(part)) {
            return refuse(root, name,
                          "a name has components joined by '/', none of them empty, '.' or '..'; "
                          "give another --name");
        }
        FileHandle next = make_private(top.get(), parent, name.substr(0, slash), part);
        if (!next) {
            if (errno == ELOOP || errno == ENOTDIR || errno == EXDEV)
                return refuse(root, name, "'" + part + "' is a link or a file; remove it");
            if (errno == EPERM)
                return refuse(root, name, "'" + part + "' is not this user's alone; remove it");
            return Error{ErrorCode::kUsage, "make " + folder.path + "/" + part + ": " +
                                                error_text(errno) + "; give another --output"};
        }
        folder.directory = std::move(next);
        parent = folder.directory.get();
        folder.path += "/" + part;
        at = slash + 1;
    }
    return folder;
}

}  // namespace ringside::agent
