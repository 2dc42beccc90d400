// Locks on whole files that belong to their descriptor (F_OFD_SETLK): they go with the process, however it ends, and no other descriptor of it takes them along.
#pragma once

#include <string>

#include "tools/ringside/process.hpp"

namespace ringside::tools {

class FileLock {
public:
    FileLock() = default;
    /// Opens `name` in `directory`, and makes it (0600) where it is missing. Nothing is locked yet.
    /// @errors Internal
    static Result<FileLock> open(int directory, const std::string& name);

    enum class Answer {
        kTaken,
        kBusy,  ///< somebody else holds it in a way that excludes this
        kNever  ///< it is not open, or its file system has no such locks
    };
    Answer take(bool shared);
    void release();
    /// Whether anybody else holds it, shared or not.
    bool others_hold_it() const;
    /// Whether anybody else shares it.
    bool others_share_it() const;

private:
    explicit FileLock(Descriptor file) : file_(std::move(file)) {}

    Descriptor file_;
};

}  // namespace ringside::tools
