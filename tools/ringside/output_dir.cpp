// Makes, checks and fills an output directory.
#include "tools/ringside/output_dir.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "schema/frame.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/process.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;

namespace {

/// One of its files; empty: it holds none.
std::string trace_in(const fs::path& directory) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
        const fs::path extension = entry.path().extension();
        if (extension == schema::kDumpExtension || extension == schema::kJobExtension) {
            return entry.path().filename().string();
        }
    }
    return "";
}

Error unusable(const std::string& shown, const std::string& cause, const std::string& remedy) {
    return {ErrorCode::kUsage, "write into " + shown + ": " + cause + "; " + remedy};
}

/// Over a file of that name only where `overwrites`.
std::error_code rename_to(const fs::path& source, const fs::path& target, bool overwrites) {
    if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(),
                    overwrites ? 0 : RENAME_NOREPLACE) == 0) {
        return {};
    }
    std::error_code error(errno, std::generic_category());
    // A file system that knows no such flag (NFS): a link replaces nothing either.
    if (error == std::errc::invalid_argument) {
        error.clear();
        fs::create_hard_link(source, target, error);
        if (!error) {
            fs::remove(source, error);
        }
    }
    return error;
}

/// Links, else copies to a temporary name and renames: the final name never holds a part.
std::error_code place(const fs::path& source, const fs::path& target, bool overwrites) {
    std::error_code error;
    fs::create_hard_link(source, target, error);
    if (!error || (error == std::errc::file_exists && !overwrites)) {
        return error;
    }
    const fs::path partial = target.string() + ".partial";
    fs::copy_file(source, partial, fs::copy_options::overwrite_existing, error);
    if (!error) {
        error = rename_to(partial, target, overwrites);
    }
    if (error) {
        std::error_code ignored;
        fs::remove(partial, ignored);
    }
    return error;
}

}  // namespace

OutputDir::OutputDir(std::string shown, std::string absolute, bool made, bool overwrites)
    : shown_(std::move(shown)),
      absolute_(std::move(absolute)),
      made_(made),
      overwrites_(overwrites) {}

OutputDir::OutputDir(OutputDir&& other) noexcept
    : shown_(std::move(other.shown_)),
      absolute_(std::move(other.absolute_)),
      made_(std::exchange(other.made_, false)),
      overwrites_(other.overwrites_) {}

OutputDir::~OutputDir() {
    if (made_) {
        ::rmdir(absolute_.c_str());  // fails where it holds something, as it should
    }
}

Result<OutputDir> OutputDir::open(const std::string& path, const std::string& fallback,
                                  Found found) {
    const std::string shown = path.empty() ? fallback : path;
    std::error_code error;
    const bool made = fs::create_directories(shown, error);
    if (error) {
        return unusable(shown, error.message(),
                        "name a directory in a place that you may write with -o DIR");
    }
    const fs::path absolute = fs::canonical(shown, error);
    OutputDir directory(shown, absolute.string(), made, found == Found::kOverwrite);
    if (error || ::access(absolute.c_str(), W_OK | X_OK) != 0) {
        return unusable(shown, error ? error.message() : errno_text(errno),
                        "name a directory that you may write with -o DIR");
    }
    const std::string holds = trace_in(absolute);
    if (found == Found::kRefuse && !holds.empty()) {
        return unusable(shown, "it holds a trace already (" + holds + ")",
                        "name another directory with -o DIR, so that nothing is mixed up; `trace "
                        "--force` writes there, over files of the same name");
    }
    return directory;
}

Result<void> OutputDir::check_free(const std::string& name) const {
    const fs::path target = fs::path(absolute_) / name;
    std::error_code error;
    if (overwrites_ || fs::symlink_status(target, error).type() == fs::file_type::not_found) {
        return {};
    }
    return unusable(target.string(), "it is there already",
                    "give --force to write over it, or another directory with -o DIR");
}

std::string OutputDir::partial(const std::string& name) const {
    return absolute_ + "/" + name + ".partial";
}

Result<std::string> OutputDir::finish(const std::string& name) const {
    const fs::path target = fs::path(absolute_) / name;
    if (const auto error = rename_to(partial(name), target, overwrites_)) {
        if (const auto free = check_free(name); !free) {
            return free.error();
        }
        return Error{ErrorCode::kInternal, "give " + partial(name) + " its name: " +
                                               error.message() + "; it is whole: rename it"};
    }
    const Descriptor directory(::open(absolute_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)::fsync(directory.number());
    return target.string();
}

Result<std::string> OutputDir::take(const std::string& source, bool keep_source,
                                    const std::string& name) const {
    const std::string called = name.empty() ? fs::path(source).filename().string() : name;
    if (const auto free = check_free(called); !free) {
        return free.error();
    }
    const fs::path target = fs::path(absolute_) / called;
    std::error_code error;
    if (!keep_source) {
        error = rename_to(source, target, overwrites_);
    }
    if (keep_source || error) {
        error = place(source, target, overwrites_);
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
