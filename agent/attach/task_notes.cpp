#include "agent/attach/task_notes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <string>

#include "agent/attach/file_handle.hpp"
#include "schema/units.hpp"

namespace ringside::agent {
namespace {

bool is_locked(int file) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::int64_t age_ms_of(const struct stat& status) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - status.st_mtim.tv_sec) * 1000 +
           (now.tv_nsec - status.st_mtim.tv_nsec) / schema::kNsPerMillisecond;
}

}  // namespace

std::vector<FoundNote> find_task_notes(int directory) {
    std::vector<FoundNote> found;
    const int descriptor = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr) {
        const FileHandle unused(descriptor);
        return found;
    }
    while (const dirent* entry = ::readdir(stream)) {
        if (!schema::is_task_note(entry->d_name)) continue;
        const FileHandle file(
            ::openat(directory, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
            status.st_uid != ::geteuid())
            continue;
        std::string text(schema::kTaskNoteBytes, '\0');
        const ssize_t size = ::read(file.get(), text.data(), text.size());
        if (size <= 0) continue;
        text.resize(static_cast<std::size_t>(size));
        found.push_back({schema::task_note_of(text), is_locked(file.get()), age_ms_of(status),
                         schema::task_note_step(entry->d_name)});
    }
    ::closedir(stream);
    return found;
}

}  // namespace ringside::agent
