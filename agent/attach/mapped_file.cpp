#include "agent/attach/mapped_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/file_mapping.hpp>
#include <cerrno>

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

Error refuse(const std::string& path, const std::string& cause) {
    return {ErrorCode::kRefused, "map " + path + ": " + cause};
}

}  // namespace

schema::Result<MappedFile> MappedFile::open(int directory, const std::string& directory_path,
                                            const std::string& name, std::size_t least_bytes) {
    const std::string path = directory_path + "/" + name;
    // NONBLOCK: a FIFO that squats on the name must not hold us.
    FileHandle file(
        ::openat(directory, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        if (errno == ELOOP)
            return refuse(path, "it is a symbolic link, which this agent never follows; remove it");
        return refuse(path, error_text(errno));
    }
    struct stat checked {};
    if (::fstat(file.get(), &checked) != 0) return refuse(path, error_text(errno));
    if (!S_ISREG(checked.st_mode)) return refuse(path, "it is not a regular file; remove it");
    if (checked.st_uid != ::geteuid()) {
        return refuse(path, "it belongs to user " + std::to_string(checked.st_uid) +
                                ", this agent runs as " + std::to_string(::geteuid()));
    }
    const auto bytes = static_cast<std::size_t>(checked.st_size);
    if (bytes < least_bytes) {
        return refuse(path, "it has " + std::to_string(bytes) + " bytes, at least " +
                                std::to_string(least_bytes) + " are needed");
    }
    // Just made and not yet sized: there is nothing to map.
    if (bytes == 0) return MappedFile{std::move(file), {}};
    try {
        namespace bi = boost::interprocess;
        const bi::file_mapping mapping(path.c_str(), bi::read_write);
        struct stat mapped {};
        if (::fstat(mapping.get_mapping_handle().handle, &mapped) != 0)
            return refuse(path, error_text(errno));
        if (mapped.st_dev != checked.st_dev || mapped.st_ino != checked.st_ino)
            return refuse(path, "it was replaced while it was opened");
        return MappedFile{std::move(file), bi::mapped_region(mapping, bi::read_write, 0, bytes)};
    } catch (const boost::interprocess::interprocess_exception& error) {
        return refuse(path, error.what());
    }
}

}  // namespace ringside::agent
