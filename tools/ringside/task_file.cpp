// Written aside, locked, then renamed: who reads it finds it whole, and held.
#include "tools/ringside/task_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "tools/ringside/process.hpp"

namespace ringside::tools {

TaskFile::TaskFile(int directory, const std::string& step, const schema::TaskNote& note) {
    constexpr mode_t kPrivate = 0600;
    const std::string aside = schema::task_note_aside(note.pid, step);
    const std::string text = text_of(note);
    const Descriptor file(::openat(
        directory, aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return;
    }
    auto lock = agent::FileLock::open(directory, aside);
    if (lock && lock->take(false) == agent::FileLock::Answer::kTaken &&
        ::renameat(directory, aside.c_str(), directory,
                   schema::task_note_name(note.pid, step).c_str()) == 0) {
        lock_ = std::move(*lock);
    }
}

void remove_task_files(int directory, const std::string& step) {
    std::vector<std::string> names;
    const int descriptor = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr) {
        ::close(descriptor);
        return;
    }
    while (const dirent* entry = ::readdir(stream)) {
        if (schema::is_task_note_of(entry->d_name, step)) {
            names.emplace_back(entry->d_name);
        }
    }
    ::closedir(stream);
    for (const std::string& name : names) {
        ::unlinkat(directory, name.c_str(), 0);
    }
}

}  // namespace ringside::tools
