// The directory that `-o DIR` names: checked before anything is traced, filled whole file by whole file, taken away again if nothing
// came of it.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

class OutputDir {
public:
    /// Makes it where it is missing, its parents too.
    /// @param path  empty: `fallback` in the working directory
    /// @errors Usage: it can't be made or written, is no directory, or holds a trace already
    static Result<OutputDir> open(const std::string& path, const std::string& fallback);
    OutputDir(OutputDir&& other) noexcept;
    OutputDir& operator=(OutputDir&&) = delete;
    /// Removes the directory if it was made here and is still empty.
    ~OutputDir();

    /// As the user would write it, for messages.
    const std::string& shown() const { return shown_; }
    const std::string& absolute() const { return absolute_; }

    /// Puts a file of the same name here: moves it (`keep_source` false), else links it, else copies it under a temporary name.
    /// @return its path here, absolute
    /// @errors Internal: the source is gone, or the disk full; nothing half-written stays
    Result<std::string> take(const std::string& source, bool keep_source) const;

private:
    OutputDir(std::string shown, std::string absolute, bool made);

    std::string shown_;
    std::string absolute_;
    bool made_;
};

}  // namespace ringside::tools
