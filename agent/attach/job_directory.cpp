#include "agent/attach/job_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "agent/attach/process_life.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

Error no_directory(const std::string& path, int error) {
    if (error == EPERM || error == ELOOP || error == ENOTDIR) {
        return {ErrorCode::kRefused,
                "hold job directory " + path +
                    ": it must be a directory of this user, no link, that no other may write to; "
                    "remove it or give another --dir"};
    }
    return {ErrorCode::kUsage, "hold job directory " + path + ": " + error_text(error) +
                                   "; make its parent writable or give another --dir"};
}

std::string holder(int lock) {
    std::array<char, 256> text{};
    const ssize_t size = ::pread(lock, text.data(), text.size() - 1, 0);
    std::string name(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name.empty() ? "an agent that has not yet said its name" : name;
}

/// Waits for the lock. Whoever tells a standby to end need not wait with it: signals do as they would without an agent.
bool await_lock(int lock, struct flock whole) {
    sigset_t ends, before;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &ends, &before);
    int taken = -1;
    do {
        taken = ::fcntl(lock, F_OFD_SETLKW, &whole);
    } while (taken != 0 && errno == EINTR);
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return taken == 0;
}

/// Takes the lock for as long as the descriptor is open; it goes with the agent however that ends.
schema::Result<FileHandle> take_lock(int directory, const std::string& path,
                                     const std::string& node, bool wait) {
    constexpr mode_t kPrivate = 0600;
    FileHandle lock(::openat(directory, schema::kLockFileName,
                             O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!lock) return no_directory(path + "/" + schema::kLockFileName, errno);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
        if (errno != EAGAIN && errno != EACCES)
            return no_directory(path + "/" + schema::kLockFileName, errno);
        if (!wait) {
            return Error{ErrorCode::kRefused,
                         "hold job directory " + path + ": " + holder(lock.get()) +
                             " holds it; ask that agent, end it, give another --job, or take over "
                             "when it ends with `ringside agent --standby`"};
        }
        spdlog::info("stand by for job directory {}: {} holds it", path, holder(lock.get()));
        if (!await_lock(lock.get(), whole))
            return no_directory(path + "/" + schema::kLockFileName, errno);
        spdlog::info("take over job directory {}: its holder has ended", path);
    }
    const std::string text =
        "agent with pid " + std::to_string(::getpid()) + " of node " + node + "\n";
    if (::ftruncate(lock.get(), 0) != 0 ||
        ::pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return no_directory(path + "/" + schema::kLockFileName, errno);
    return lock;
}

schema::Result<FileHandle> open_directory(const std::string& root, const std::string& job) {
    const FileHandle parent = open_private_directory(AT_FDCWD, root.c_str());
    if (!parent) return no_directory(root, errno);
    FileHandle directory = open_private_directory(parent.get(), job.c_str());
    if (!directory) return no_directory(root + "/" + job, errno);
    return directory;
}

/// Of our pid namespace, and nobody has its pid. One that has died and is not waited for yet still has it.
bool is_nobody(const schema::SegmentId& id) {
    return id.pid_namespace == own_pid_namespace() && ::kill(static_cast<pid_t>(id.pid), 0) != 0 &&
           errno == ESRCH;
}

/// Whether `name` in `directory` is the very file or directory that we have open.
bool is_same(int open, int directory, const char* name) {
    struct stat ours {
    }, there{};
    return ::fstat(open, &ours) == 0 &&
           ::fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

}  // namespace

JobDirectory::JobDirectory(std::string root, std::string job, std::string node,
                           FileHandle directory, FileHandle lock, ControlFile control,
                           BudgetFile budget)
    : root_(std::move(root)),
      job_(std::move(job)),
      node_(std::move(node)),
      path_(root_ + "/" + job_),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      control_(std::move(control)),
      budget_(std::move(budget)) {}

schema::Result<JobDirectory> JobDirectory::open(const std::string& root, const std::string& job,
                                                const std::string& node, bool wait) {
    if (!is_path_component(job)) {
        return Error{ErrorCode::kUsage,
                     "hold job directory '" + job + "' in " + root +
                         ": a job's name is one component of a path; give another --job"};
    }
    const std::string path = root + "/" + job;
    auto directory = open_directory(root, job);
    if (!directory) return directory.error();
    auto lock = take_lock(directory->get(), path, node, wait);
    // While we stood by somebody may have emptied the directory, and its holder made another: this lock is nobody's then.
    while (wait && lock &&
           !(is_same(lock->get(), directory->get(), schema::kLockFileName) &&
             is_same(directory->get(), AT_FDCWD, path.c_str()))) {
        directory = open_directory(root, job);
        if (!directory) return directory.error();
        lock = take_lock(directory->get(), path, node, wait);
    }
    if (!lock) return lock.error();
    auto control = ControlFile::open(directory->get(), path);
    if (!control) return control.error();
    auto budget = BudgetFile::open(directory->get(), path);
    if (!budget) return budget.error();
    return JobDirectory(root, job, node, std::move(*directory), std::move(*lock),
                        std::move(*control), std::move(*budget));
}

bool JobDirectory::whole() const {
    return is_same(directory_.get(), AT_FDCWD, path_.c_str()) &&
           is_same(lock_.get(), directory_.get(), schema::kLockFileName) &&
           control_.is_in(directory_.get());
}

schema::Result<void> JobDirectory::restore() {
    auto directory = open_directory(root_, job_);
    if (!directory) return directory.error();
    if (!is_same(lock_.get(), directory->get(), schema::kLockFileName)) {
        auto lock = take_lock(directory->get(), path_, node_, false);
        if (!lock) return lock.error();
        lock_ = std::move(*lock);
    }
    if (!control_.is_in(directory->get())) {
        auto control = ControlFile::open(directory->get(), path_);
        if (!control) return control.error();
        control->succeed(std::move(control_));
        control_ = std::move(*control);
        // Shims that hold the former page go on with it; the count in the new one is put right by what the segments hold.
        auto budget = BudgetFile::open(directory->get(), path_);
        if (!budget) return budget.error();
        budget_ = std::move(*budget);
    }
    directory_ = std::move(*directory);
    return {};
}

std::vector<std::unique_ptr<MappedSegment>> JobDirectory::scan(
    const std::set<schema::SegmentId>& known) {
    std::vector<std::unique_ptr<MappedSegment>> found;
    making_ = false;
    // A descriptor of its own: a directory stream keeps its place, and closes what it was made from.
    const int descriptor = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr) {
        FileHandle unused(descriptor);
        return found;
    }
    std::set<RefusedSegment> refused;
    while (const dirent* entry = ::readdir(stream)) {
        const auto id = parse_segment_name(entry->d_name);
        if (!id || known.contains(*id)) continue;
        if (const auto before = refused_.find({*id, ""}); before != refused_.end()) {
            refused.insert(*before);
            continue;
        }
        auto segment = MappedSegment::open(directory_.get(), path_, *id);
        if (!segment) {
            if (::faccessat(directory_.get(), entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
                continue;  // gone in the meantime: not a fault
            spdlog::warn("{}", segment.error().message);
            refused.insert({*id, segment.error().message});
        } else if (*segment == nullptr) {
            making_ = true;
            remove_stillborn(*id);
        } else {
            found.push_back(std::move(*segment));
        }
    }
    ::closedir(stream);
    refused_ = std::move(refused);
    return found;
}

void JobDirectory::remove_stillborn(const schema::SegmentId& id) {
    // A process that died between making its file and finishing it: nobody holds the lock, and it is gone or has had time enough.
    constexpr std::int64_t kEnoughS = 10;
    const std::string name = segment_name(id);
    const FileHandle file(
        ::openat(directory_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid() ||
        (!is_nobody(id) && ::time(nullptr) - status.st_mtime < kEnoughS))
        return;
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return;
    // Dead by now: but it may have finished the segment, and recorded, since it was looked at. The next scan finds that.
    const auto again = MappedSegment::open(directory_.get(), path_, id);
    if (again && *again == nullptr) {
        spdlog::info("remove segment {}: its process died while it made it", name);
        ::unlinkat(directory_.get(), name.c_str(), 0);
    }
}

void JobDirectory::remove(const MappedSegment& segment) {
    struct stat ours {
    }, theirs{};
    if (::fstat(segment.lock_descriptor(), &ours) != 0 ||
        ::fstatat(directory_.get(), segment.name().c_str(), &theirs, AT_SYMLINK_NOFOLLOW) != 0 ||
        ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
        return;
    ::unlinkat(directory_.get(), segment.name().c_str(), 0);
}

}  // namespace ringside::agent
