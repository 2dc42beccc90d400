#include "agent/control/file_parts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "agent/attach/beneath.hpp"
#include "agent/control/file_digest.hpp"
#include "schema/frame.hpp"
#include "schema/units.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

Error refuse(const std::string& path, const std::string& cause) {
    return {ErrorCode::kRefused, "fetch " + path + ": " + cause};
}

/// What follows the root in `path`: replies name files by its real path, others as the agent was told it. A relative path is beneath it.
std::optional<std::string> beneath(const std::string& root, const std::string& path) {
    if (path.empty() || path[0] != '/') return path;
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(root.c_str(), nullptr),
                                                           &std::free);
    for (const std::string& each : {real ? std::string(real.get()) : root, root}) {
        if (path.size() > each.size() + 1 && path.compare(0, each.size(), each) == 0 &&
            path[each.size()] == '/')
            return path.substr(each.size() + 1);
    }
    return std::nullopt;
}

bool is_whole_by_name(const std::string& path) {
    return path.ends_with(schema::kDumpExtension) || path.ends_with(schema::kJobExtension);
}

schema::Result<FileHandle> open_whole(const std::string& root, const std::string& path) {
    const auto rest = beneath(root, path);
    if (!rest)
        return refuse(path, "it is not beneath this agent's output root " + root +
                                "; name a file as `ringside trace` did");
    if (!is_whole_by_name(*rest))
        return refuse(path, std::string("agents give whole dumps and job indexes (") +
                                schema::kDumpExtension + ", " + schema::kJobExtension +
                                ") and nothing else");
    const FileHandle directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // NONBLOCK: a pipe of that name must not hold us up.
    FileHandle file =
        directory ? open_beneath(directory.get(), *rest, O_RDONLY | O_NONBLOCK) : FileHandle();
    if (file) return file;
    const int cause = errno;
    if (cause == ENOENT)
        return Error{ErrorCode::kNothingMatched,
                     "fetch " + path +
                         ": it is not there (any more); `ringside trace` moves what "
                         "its own host sees, else somebody has removed it"};
    if (cause == ELOOP || cause == ENOTDIR || cause == EXDEV)
        return refuse(path, "a link or '..' leads there; name a file beneath " + root + " itself");
    return refuse(path, error_text(cause));
}

}  // namespace

schema::Result<fbs::FetchReplyT> FileParts::read(const fbs::FetchRequestT& request) const {
    const auto file = open_whole(root_, request.path);
    if (!file) return file.error();
    struct stat facts {};
    if (::fstat(file->get(), &facts) != 0) return refuse(request.path, error_text(errno));
    if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid())
        return refuse(request.path, "it is no file of this agent's user");
    fbs::FetchReplyT reply;
    reply.offset = request.offset;
    reply.size = static_cast<std::uint64_t>(facts.st_size);
    reply.changed_ns = facts.st_mtim.tv_sec * schema::kNsPerSecond + facts.st_mtim.tv_nsec;
    reply.inode = facts.st_ino;
    if (request.offset > reply.size)
        return Error{ErrorCode::kInput, "fetch " + request.path + ": it has " +
                                            std::to_string(reply.size) + " bytes, not " +
                                            std::to_string(request.offset)};
    if (request.digest) {
        const auto digest = digest_of(file->get(), request.offset, [this] { return !ends_; });
        if (!digest) return refuse(request.path, digest.error().message);
        reply.checksum = *digest;
        return reply;
    }
    const std::uint32_t most = std::min(request.most, kMostPartBytes);
    reply.data.resize(std::min<std::uint64_t>(most, reply.size - request.offset));
    const ssize_t got = ::pread(file->get(), reply.data.data(), reply.data.size(),
                                static_cast<off_t>(request.offset));
    if (got < 0) return refuse(request.path, error_text(errno));
    reply.data.resize(static_cast<std::size_t>(got));
    reply.checksum = digest_of(reply.data);
    return reply;
}

}  // namespace ringside::agent
