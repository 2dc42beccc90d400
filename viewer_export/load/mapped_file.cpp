#include "viewer_export/load/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace ringside::viewer_export::load {

namespace {

schema::Error failure(const std::filesystem::path& path, const std::string& cause) {
    return {schema::ErrorCode::kInput,
            "read " + path.string() + ": " + cause +
                "; name a dump (.rsd), an index (.rsj) or a directory of them"};
}

}  // namespace

schema::Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return failure(path, std::strerror(errno));
    struct stat status {};
    MappedFile file;
    std::string cause;
    if (::fstat(descriptor, &status) != 0) {
        cause = std::strerror(errno);
    } else if (!S_ISREG(status.st_mode)) {
        cause = "not a regular file";
    } else if (status.st_size > 0) {
        const auto size = static_cast<std::size_t>(status.st_size);
        void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) {
            cause = std::strerror(errno);
        } else {
            file.data_ = static_cast<const std::uint8_t*>(data);
            file.size_ = size;
        }
    }
    ::close(descriptor);
    if (!cause.empty()) return failure(path, cause);
    return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

void MappedFile::release_before(std::uint64_t offset) {
    constexpr std::size_t kStep = std::size_t{64} << 10;
    const std::size_t until = static_cast<std::size_t>(offset) / kStep * kStep;
    if (until < released_) released_ = 0;  // from the start again
    if (until == released_) return;
    ::madvise(const_cast<std::uint8_t*>(data_) + released_, until - released_, MADV_DONTNEED);
    released_ = until;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace ringside::viewer_export::load
