#include "viewer_export/out/file_sink.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ringside::viewer_export {

FileSink::FileSink(std::filesystem::path target)
    : target_(std::move(target)),
      temporary_(target_.string() + ".partial." + std::to_string(::getpid())) {}

FileSink::~FileSink() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
}

schema::Error FileSink::failure(int cause) const {
    return {schema::ErrorCode::kInput,
            "write " + target_.string() + ": " + std::strerror(cause) +
                "; nothing is left there, name a directory that you may write to and "
                "that has room"};
}

schema::Result<void> FileSink::open() {
    std::error_code code;
    if (std::filesystem::is_directory(target_, code)) return failure(EISDIR);
    // One that an earlier process of this pid left behind is in the way of O_EXCL, and nobody writes to it any more.
    ::unlink(temporary_.c_str());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) return failure(errno);
    return {};
}

/// Blocks that are there before the bytes halve what the kernel does for them: as much again as has been written, so a small file asks for none.
/// Where that fails (a file system that cannot, a full one) writes say what is to be said.
void FileSink::make_room() {
    constexpr std::uint64_t kLeast = 1u << 20;
    constexpr std::uint64_t kMost = 64u << 20;
    if (written_ < std::max(room_, kLeast)) return;
    const std::uint64_t more = std::min(written_, kMost);
    (void)::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(written_),
                      static_cast<off_t>(more));
    room_ = written_ + more;
}

void FileSink::write(const char* data, std::size_t size) {
    make_room();
    while (size > 0 && write_error_ == 0) {
        const ssize_t written = ::write(descriptor_, data, size);
        if (written < 0) {
            if (errno != EINTR) write_error_ = errno;
            continue;
        }
        data += written;
        written_ += static_cast<std::size_t>(written);
        size -= static_cast<std::size_t>(written);
    }
}

schema::Result<void> FileSink::commit() {
    // Gives back the blocks beyond its end.
    if (room_ > written_ && ::ftruncate(descriptor_, static_cast<off_t>(written_)) != 0 &&
        write_error_ == 0)
        write_error_ = errno;
    if (::close(std::exchange(descriptor_, -1)) != 0 && write_error_ == 0) write_error_ = errno;
    if (write_error_ == 0 && std::rename(temporary_.c_str(), target_.c_str()) == 0) return {};
    const int cause = write_error_ != 0 ? write_error_ : errno;
    ::unlink(temporary_.c_str());
    return failure(cause);
}

}  // namespace ringside::viewer_export
