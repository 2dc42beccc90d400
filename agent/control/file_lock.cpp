#include "agent/control/file_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace ringside::agent {
namespace {

struct flock whole_file(short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

}  // namespace

schema::Result<FileLock> FileLock::open(int directory, const std::string& name) {
    constexpr mode_t kPrivate = 0600;
    FileHandle file(
        ::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!file) {
        return schema::Error{schema::ErrorCode::kInternal,
                             "open " + name + " in the job directory: " + error_text(errno)};
    }
    return FileLock(std::move(file));
}

FileLock::Answer FileLock::take(bool shared) {
    struct flock lock = whole_file(shared ? F_RDLCK : F_WRLCK);
    if (::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0) return Answer::kTaken;
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? Answer::kBusy : Answer::kNever;
}

void FileLock::release() {
    struct flock lock = whole_file(F_UNLCK);
    ::fcntl(file_.get(), F_OFD_SETLK, &lock);
}

bool FileLock::others_hold_it() const {
    struct flock lock = whole_file(F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool FileLock::others_share_it() const {
    struct flock lock = whole_file(F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

bool FileLock::is_named(int directory, const std::string& name) const {
    struct stat ours {
    }, there{};
    return ::fstat(file_.get(), &ours) == 0 &&
           ::fstatat(directory, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

bool is_held(int directory, const std::string& name) {
    const FileHandle file(
        ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct flock lock = whole_file(F_WRLCK);
    return file && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace ringside::agent
