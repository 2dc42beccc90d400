// A file descriptor that closes itself. Used by everything in the agent that holds one.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace ringside::agent {

class FileHandle {
public:
    FileHandle() = default;
    explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
    FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        if (this != &other) {
            reset();
            descriptor_ = std::exchange(other.descriptor_, -1);
        }
        return *this;
    }
    FileHandle(const FileHandle&) = delete;
    FileHandle& operator=(const FileHandle&) = delete;
    ~FileHandle() { reset(); }

    explicit operator bool() const { return descriptor_ >= 0; }
    int get() const { return descriptor_; }
    void reset() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

private:
    int descriptor_ = -1;
};

/// The text of `error` (an errno), thread-safe where strerror is not.
std::string error_text(int error);

/// Opens (with `make` making it where it is missing, mode 0700) the directory `name` beneath `parent`, following no link in `name`.
/// @param parent  a directory, or AT_FDCWD
/// @return an invalid handle and errno: ENOTDIR or ELOOP for a link or a file, EPERM where it is not ours or others may write to it
FileHandle open_private_directory(int parent, const char* name, bool make = true);

/// Whether the open `directory` is this user's and nobody else may write to it.
/// @return false and errno: EPERM where it is not so
bool is_private_directory(int directory);

/// Whether `text` can be one component of a path: not empty, no '/', not "." or "..", at most 200 bytes.
bool is_path_component(const std::string& text);

}  // namespace ringside::agent
