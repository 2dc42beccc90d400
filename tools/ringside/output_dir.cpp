// Makes, checks and fills an output directory.
#include "tools/ringside/output_dir.hpp"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;

namespace {

bool holds_trace(const fs::path& directory) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
        const fs::path extension = entry.path().extension();
        if (extension == ".rsd" || extension == ".rsj") {
            return true;
        }
    }
    return false;
}

Error unusable(const std::string& shown, const std::string& cause, const std::string& remedy) {
    return {ErrorCode::kUsage, "write into " + shown + ": " + cause + "; " + remedy};
}

/// Links, else copies to a temporary name and renames: the final name never holds a part.
std::error_code place(const fs::path& source, const fs::path& target) {
    std::error_code error;
    fs::create_hard_link(source, target, error);
    if (!error) {
        return error;
    }
    const fs::path partial = target.string() + ".partial";
    fs::copy_file(source, partial, fs::copy_options::overwrite_existing, error);
    if (!error) {
        fs::rename(partial, target, error);
    }
    if (error) {
        std::error_code ignored;
        fs::remove(partial, ignored);
    }
    return error;
}

}  // namespace

OutputDir::OutputDir(std::string shown, std::string absolute, bool made)
    : shown_(std::move(shown)), absolute_(std::move(absolute)), made_(made) {}

OutputDir::OutputDir(OutputDir&& other) noexcept
    : shown_(std::move(other.shown_)),
      absolute_(std::move(other.absolute_)),
      made_(std::exchange(other.made_, false)) {}

OutputDir::~OutputDir() {
    if (made_) {
        ::rmdir(absolute_.c_str());  // fails where it holds something, as it should
    }
}

Result<OutputDir> OutputDir::open(const std::string& path, const std::string& fallback) {
    const std::string shown = path.empty() ? fallback : path;
    std::error_code error;
    const bool made = fs::create_directories(shown, error);
    if (error) {
        return unusable(shown, error.message(),
                        "name a directory in a place that you may write with -o DIR");
    }
    const fs::path absolute = fs::canonical(shown, error);
    OutputDir directory(shown, absolute.string(), made);
    if (error || ::access(absolute.c_str(), W_OK | X_OK) != 0) {
        return unusable(shown, error ? error.message() : errno_text(errno),
                        "name a directory that you may write with -o DIR");
    }
    if (holds_trace(absolute)) {
        return unusable(shown, "it holds a trace already",
                        "name another directory with -o DIR, so that nothing is mixed up");
    }
    return directory;
}

Result<std::string> OutputDir::take(const std::string& source, bool keep_source) const {
    const fs::path target = fs::path(absolute_) / fs::path(source).filename();
    std::error_code error;
    if (!keep_source) {
        fs::rename(source, target, error);
    }
    if (keep_source || error) {
        error = place(source, target);
        if (!error && !keep_source) {
            fs::remove(source, error);
            error.clear();  // it is here; that it is there, too, hurts nobody
        }
    }
    if (error) {
        return Error{ErrorCode::kInternal, "put " + source + " into " + shown_ + ": " +
                                               error.message() +
                                               "; the file stays where it is: copy it by hand"};
    }
    return target.string();
}

}  // namespace ringside::tools
