#include "agent/capture/capture_note.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "agent/attach/file_handle.hpp"
#include "schema/control_page.hpp"

namespace ringside::agent {
namespace {

constexpr std::size_t kMostBytes = 64 << 10;

std::string text_of(const CaptureNote& note) {
    std::ostringstream text;
    text << "capture " << note.id << "\nnode " << note.node << "\noutput " << note.output_root
         << "\nname " << note.name << "\nmax_bytes " << note.max_bytes << "\noptions "
         << note.options << "\nfrom_start " << (note.from_start ? 1 : 0) << "\ncompress "
         << (note.compress ? 1 : 0) << "\nwindow " << (note.window ? 1 : 0) << "\n";
    for (const int pid : note.selection.pids) text << "pid " << pid << "\n";
    for (const int rank : note.selection.ranks) text << "rank " << rank << "\n";
    for (const std::string& name : note.selection.executables)
        text << "executable " << name << "\n";
    text << "limit " << note.selection.limit << "\n";
    text << "end\n";
    return text.str();
}

std::optional<CaptureNote> parse(const std::string& text) {
    std::istringstream lines(text);
    CaptureNote note;
    std::string line;
    while (std::getline(lines, line)) {
        if (line == "end") return note.id != 0 ? std::optional(note) : std::nullopt;
        const std::size_t space = line.find(' ');
        if (space == std::string::npos) return std::nullopt;
        const std::string key = line.substr(0, space), value = line.substr(space + 1);
        std::istringstream number(value);
        if (key == "node") note.node = value;
        if (key == "output") note.output_root = value;
        if (key == "name") note.name = value;
        if (key == "capture") number >> note.id;
        if (key == "max_bytes") number >> note.max_bytes;
        if (key == "options") number >> note.options;
        if (key == "from_start") note.from_start = value == "1";
        if (key == "compress") note.compress = value == "1";
        if (key == "window") note.window = value == "1";
        if (key == "pid") number >> note.selection.pids.emplace_back();
        if (key == "rank") number >> note.selection.ranks.emplace_back();
        if (key == "executable") note.selection.executables.push_back(value);
        if (key == "limit") number >> note.selection.limit;
        if (number.fail()) return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

schema::Result<void> write_note(const std::string& directory, const CaptureNote& note) {
    const std::string path = directory + "/" + schema::kCaptureNoteName;
    const std::string temporary = directory + "/." + schema::kCaptureNoteName;
    const auto failed = [&](int error) {
        return schema::Error{schema::ErrorCode::kUsage,
                             "note the capture in " + path + ": " + error_text(error) +
                                 "; make room there or give another --dir"};
    };
    std::string words = note.output_root + note.name + note.node;
    for (const std::string& name : note.selection.executables) words += name;
    if (words.find('\n') != std::string::npos) return failed(EINVAL);
    // The name is ours while we hold the directory's lock: what is there is an earlier agent's that died here.
    ::unlink(temporary.c_str());
    constexpr mode_t kPrivate = 0600;
    const FileHandle file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    const std::string text = text_of(note);
    if (!file) return failed(errno);
    errno = ENOSPC;
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary.c_str());
        return failed(error);
    }
    return {};
}

std::optional<CaptureNote> read_note(const std::string& directory) {
    const std::string path = directory + "/" + schema::kCaptureNoteName;
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid() || status.st_size > static_cast<off_t>(kMostBytes))
        return std::nullopt;
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    if (::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return std::nullopt;
    return parse(text);
}

void remove_note(const std::string& directory) {
    ::unlink((directory + "/" + schema::kCaptureNoteName).c_str());
}

}  // namespace ringside::agent
