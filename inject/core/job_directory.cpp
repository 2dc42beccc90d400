#include "inject/core/job_directory.hpp"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/core/budget.hpp"
#include "inject/core/file_status.hpp"
#include "inject/core/identity.hpp"
#include "inject/core/kernel_calls.hpp"
#include "schema/ticks.hpp"

namespace ringside::inject {

using schema::ControlPage;

namespace {

// As <linux/openat2.h> has it, which headers before 5.6 lack.
struct OpenHow {
    std::uint64_t flags;
    std::uint64_t mode;
    std::uint64_t resolve;
};
constexpr long kOpenat2 = 437;
constexpr std::uint64_t kNoSymlinks = 4;

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool ours(const FileDescriptor& file, mode_t type, off_t least_size = 0) {
    struct stat status {};
    return file && status_of(file.get(), status) && (status.st_mode & S_IFMT) == type &&
           status.st_size >= least_size && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Opens first and makes second: all but the first process of a job find it there.
FileDescriptor open_or_make(int parent, const char* name) {
    int fd = open_at(parent, name, kDirectoryFlags);
    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return FileDescriptor{};
        fd = open_at(parent, name, kDirectoryFlags);
    }
    FileDescriptor directory{fd};
    return ours(directory, S_IFDIR) ? static_cast<FileDescriptor&&>(directory) : FileDescriptor{};
}

bool plain_name(const char* text) {
    return *text != 0 && *text != '.' && std::strchr(text, '/') == nullptr;
}

void fill(ControlPage& page) {
    page.magic = schema::kControlMagic;
    page.layout = schema::kControlLayout;
    page.mark = schema::kMachineMark;
    page.ticks_source = static_cast<std::uint32_t>(schema::find_ticks_source());
    page.source_mask.store(~0u, std::memory_order_relaxed);
    page.machine_proc = machine_proc();
    page.start_ticks.store(~0ull, std::memory_order_relaxed);
    page.stop_ticks.store(~0ull, std::memory_order_relaxed);
    page.first_lane_kib.store(schema::kDefaultFirstLaneKib, std::memory_order_relaxed);
    page.most_lane_kib.store(schema::kDefaultMostLaneKib, std::memory_order_relaxed);
}

/// @return whether there is a control page now, ours or of somebody who was faster
bool make_control_page(const FileDescriptor& directory) {
    FixedText<96> name;
    name.append(".control.").append_number(static_cast<std::uint64_t>(getpid()));
    name.append(".").append_number(schema::read_ticks(schema::TicksSource::kTsc).value);
    const FileDescriptor file{open_at(directory.get(), name.c_str(),
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) return false;
    ControlPage page{};
    fill(page);
    bool made = write_file(file.get(), &page, sizeof page) == sizeof page;
    made = made && (linkat(directory.get(), name.c_str(), directory.get(), schema::kControlFileName,
                           0) == 0 ||
                    errno == EEXIST);
    unlinkat(directory.get(), name.c_str(), 0);
    return made;
}

/// The whole path in one call, no link on it: for all but the first process of a job. What is in a directory that is ours alone is ours,
/// whosever the one above it is.
FileDescriptor open_at_once(const JobPath& path) {
    FixedText<sizeof path.root + sizeof path.job> whole;
    whole.append(path.root.c_str()).append("/").append(path.job.c_str());
    const OpenHow how{kDirectoryFlags, 0, kNoSymlinks};
    FileDescriptor directory{
        static_cast<int>(syscall(kOpenat2, AT_FDCWD, whole.c_str(), &how, sizeof how))};
    return !whole.cut() && ours(directory, S_IFDIR) ? static_cast<FileDescriptor&&>(directory)
                                                    : FileDescriptor{};
}

FileDescriptor open_step_by_step(const JobPath& path) {
    const FileDescriptor root = open_or_make(AT_FDCWD, path.root.c_str());
    if (!root) return FileDescriptor{};
    return open_or_make(root.get(), path.job.c_str());
}

FileDescriptor open_control_page(const FileDescriptor& directory) {
    return FileDescriptor{
        open_at(directory.get(), schema::kControlFileName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
}

const ControlPage* map(const FileDescriptor& file) {
    // A shorter file would raise SIGBUS at the first look.
    if (!ours(file, S_IFREG, sizeof(ControlPage))) return nullptr;
    void* memory = mmap(nullptr, sizeof(ControlPage), PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    const auto* page = static_cast<const ControlPage*>(memory);
    if (page->magic == schema::kControlMagic && page->layout == schema::kControlLayout &&
        page->mark == schema::kMachineMark) {
        return page;
    }
    munmap(memory, sizeof(ControlPage));
    return nullptr;
}

}  // namespace

bool read_job_path(JobPath& path) {
    path.root.clear();
    path.job.clear();
    const char* root = secure_getenv("RINGSIDE_DIR");
    if (root != nullptr && *root != 0) {
        path.root.append(root);
    } else {
        path.root.append("/dev/shm/ringside-").append_number(geteuid());
    }
    const char* job = secure_getenv("RINGSIDE_JOB");
    if (job == nullptr || *job == 0) job = secure_getenv("SLURM_JOB_ID");
    if (job == nullptr || *job == 0) job = "default";
    path.job.append(job);
    return path.root.c_str()[0] == '/' && !path.root.cut() && !path.job.cut() &&
           plain_name(path.job.c_str());
}

FileDescriptor open_job_directory(const JobPath& path) {
    FileDescriptor directory = open_at_once(path);
    return directory ? static_cast<FileDescriptor&&>(directory) : open_step_by_step(path);
}

const ControlPage* map_control_page(const FileDescriptor& directory) {
    {
        const FileDescriptor file = open_control_page(directory);
        if (file) return map(file);
        if (errno != ENOENT || !make_control_page(directory)) return nullptr;
    }
    const FileDescriptor file = open_control_page(directory);
    return file ? map(file) : nullptr;
}

schema::BudgetPage* map_budget_page(const FileDescriptor& directory) {
    const FileDescriptor file{
        open_at(directory.get(), schema::kBudgetFileName, O_RDWR | O_NOFOLLOW | O_CLOEXEC)};
    if (!ours(file, S_IFREG, sizeof(schema::BudgetPage))) return nullptr;
    void* memory = mmap(nullptr, sizeof(schema::BudgetPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                        file.get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* page = static_cast<schema::BudgetPage*>(memory);
    if (populate(memory, sizeof *page) && page->magic == schema::kBudgetMagic) return page;
    munmap(memory, sizeof *page);
    return nullptr;
}

}  // namespace ringside::inject
