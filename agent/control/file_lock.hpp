// Locks on whole files that belong to their descriptor (F_OFD_SETLK): they go with the process, however it ends, and no other descriptor of it takes them along.
// Public.
#pragma once

#include <string>
#include <utility>

#include "agent/attach/file_handle.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

class FileLock {
public:
    FileLock() = default;
    /// Opens `name` in `directory`, and makes it (0600) where it is missing. Nothing is locked yet.
    /// @errors Internal
    static schema::Result<FileLock> open(int directory, const std::string& name);

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
    /// Whether `name` in `directory` is still this file.
    bool is_named(int directory, const std::string& name) const;
    int descriptor() const { return file_.get(); }

private:
    explicit FileLock(FileHandle file) : file_(std::move(file)) {}

    FileHandle file_;
};

/// Whether anybody holds the file `name` in `directory`; not where there is none.
bool is_held(int directory, const std::string& name);

}  // namespace ringside::agent
