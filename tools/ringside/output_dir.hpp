// The directory that `-o DIR` names: checked before anything is traced, filled whole file by whole file, taken away again if nothing
// came of it.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

class OutputDir {
public:
    /// What is done about a trace that lies there.
    enum class Found {
        kRefuse,    ///< the directory is not taken
        kAddTo,     ///< files are put beside it, none over another
        kOverwrite  ///< --force: files are put over those of the same name
    };

    /// Makes it where it is missing, its parents too.
    /// @param path  empty: `fallback` in the working directory
    /// @errors Usage: it can't be made or written, is no directory, or holds a trace already
    static Result<OutputDir> open(const std::string& path, const std::string& fallback,
                                  Found found = Found::kRefuse);
    OutputDir(OutputDir&& other) noexcept;
    OutputDir& operator=(OutputDir&&) = delete;
    /// Removes the directory if it was made here and is still empty.
    ~OutputDir();

    /// As the user would write it, for messages.
    const std::string& shown() const { return shown_; }
    const std::string& absolute() const { return absolute_; }

    /// Puts a file here: moves it (`keep_source` false), else links it, else copies it under a temporary name.
    /// @param name  what it is called here; empty: as it was
    /// @return its path here, absolute
    /// @errors Usage: a file of that name is here; Internal: the source is gone, or the disk full; nothing half-written stays
    Result<std::string> take(const std::string& source, bool keep_source,
                             const std::string& name = "") const;

    /// Where the file `name` is written until it is whole.
    std::string partial(const std::string& name) const;
    /// What is there, synchronised to disk, is whole: it gets its name.
    /// @return its path, absolute
    /// @errors as take
    Result<std::string> finish(const std::string& name) const;
    /// @errors Usage: a file of that name is here and may not be written over
    Result<void> check_free(const std::string& name) const;

private:
    OutputDir(std::string shown, std::string absolute, bool made, bool overwrites);

    std::string shown_;
    std::string absolute_;
    bool made_;
    bool overwrites_;
};

}  // namespace ringside::tools
