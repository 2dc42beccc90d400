#include "agent/control/job_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <vector>

#include "agent/attach/file_handle.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/file_lock.hpp"
#include "agent/control/member.hpp"
#include "schema/control_page.hpp"
#include "schema/task_note.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr const char* kWishAside = "agent.wish.new";
/// A killed agent leaves it (endpoint.hpp).
constexpr const char* kSocketName = "agent.sock";
constexpr std::size_t kMostWishBytes = 8192;

std::vector<std::string> names_in(int directory) {
    std::vector<std::string> names;
    const int descriptor = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr) {
        const FileHandle unused(descriptor);
        return names;
    }
    while (const dirent* entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(stream);
    return names;
}

bool goes_with_the_folder(const std::string& name) {
    constexpr std::array kNames = {kElectionName,
                                   kOwnerName,
                                   kLogName,
                                   kWishName,
                                   kWishAside,
                                   kSocketName,
                                   schema::kLockFileName,
                                   schema::kControlFileName,
                                   schema::kBudgetFileName};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

schema::Result<int> open_job_folder(const std::string& root, const std::string& job) {
    const FileHandle parent = open_private_directory(AT_FDCWD, root.c_str());
    const FileHandle folder =
        parent ? open_private_directory(parent.get(), job.c_str()) : FileHandle();
    const int opened = folder ? ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0) : -1;
    if (opened >= 0) return opened;
    return Error{ErrorCode::kUsage, "make the job directory " + root + "/" + job + ": " +
                                        error_text(errno) +
                                        "; name a root of yours with RINGSIDE_DIR"};
}

bool is_segment(std::string_view name) {
    return std::count(name.begin(), name.end(), '.') == 2 &&
           name.find_first_not_of("0123456789.") == std::string_view::npos;
}

FolderState look_at_folder(int directory) {
    FolderState state;
    state.agent = is_held(directory, schema::kLockFileName);
    for (const std::string& name : names_in(directory)) {
        const bool step = name.starts_with(kStepPrefix);
        if (step || schema::is_task_note(name)) {
            state.steps = true;
            state.tasks = state.tasks || is_held(directory, name);
        } else if (is_segment(name)) {
            state.segments = true;
        } else {
            state.others = state.others || !goes_with_the_folder(name);
        }
    }
    return state;
}

void remove_job_folder(int directory, const std::string& path) {
    const std::vector<std::string> names = names_in(directory);
    const FolderState state = look_at_folder(directory);
    if (state.agent || state.segments || state.tasks || state.others) return;
    for (const std::string& name : names) ::unlinkat(directory, name.c_str(), 0);
    ::rmdir(path.c_str());  // not where somebody has come in the meantime
}

void write_wish(int directory, const AgentWish& wish) {
    constexpr mode_t kPrivate = 0600;
    const std::string text =
        "member " + wish.member + "\nnode " + wish.node + "\noutput " + wish.output_root + "\n";
    const FileHandle file(::openat(
        directory, kWishAside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
        ::renameat(directory, kWishAside, directory, kWishName);
}

AgentWish read_wish(int directory) {
    AgentWish wish;
    std::string text(kMostWishBytes, '\0');
    const FileHandle file(
        ::openat(directory, kWishName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    const ssize_t size = ::read(file.get(), text.data(), text.size());
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t space = std::min(line.find(' '), line.size());
        const std::string key = line.substr(0, space);
        const std::string value = line.substr(std::min(space + 1, line.size()));
        if (key == "member" && check_member(key, value)) wish.member = value;
        if (key == "node" && check_name(key, value)) wish.node = value;
        if (key == "output" && value.starts_with('/')) wish.output_root = value;
    }
    return wish;
}

}  // namespace ringside::agent
