#include "tools/ringside/file_lock.hpp"

#include <fcntl.h>

#include <cerrno>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace {

struct flock whole_file(short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

}  // namespace

Result<FileLock> FileLock::open(int directory, const std::string& name) {
    constexpr mode_t kPrivate = 0600;
    Descriptor file(
        ::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (file.number() < 0) {
        return Error{ErrorCode::kInternal,
                     "open " + name + " in the job directory: " + errno_text(errno)};
    }
    return FileLock(std::move(file));
}

FileLock::Answer FileLock::take(bool shared) {
    struct flock lock = whole_file(shared ? F_RDLCK : F_WRLCK);
    if (::fcntl(file_.number(), F_OFD_SETLK, &lock) == 0) {
        return Answer::kTaken;
    }
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? Answer::kBusy : Answer::kNever;
}

void FileLock::release() {
    struct flock lock = whole_file(F_UNLCK);
    ::fcntl(file_.number(), F_OFD_SETLK, &lock);
}

bool FileLock::others_hold_it() const {
    struct flock lock = whole_file(F_WRLCK);
    return ::fcntl(file_.number(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool FileLock::others_share_it() const {
    struct flock lock = whole_file(F_WRLCK);
    return ::fcntl(file_.number(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

}  // namespace ringside::tools
