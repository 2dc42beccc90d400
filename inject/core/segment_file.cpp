#include "inject/core/segment_file.hpp"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "inject/core/budget.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/kernel_calls.hpp"
#include "inject/core/process.hpp"
#include "inject/core/stale_segments.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

using schema::SegmentHeader;

namespace {

using SegmentName = FixedText<schema::kSegmentNameBytes>;

RINGSIDE_START_DATA constinit JobPath job_path{};
constinit Identity own_identity{};
RINGSIDE_START_DATA constinit SegmentName own_name{};
/// Set in a forked child without a segment: what it would be mapped beside.
constinit std::atomic<const schema::ControlPage*> pending_control{nullptr};

/// Of each segment of this process: a forked child's is mapped over its parent's.
RINGSIDE_START_DATA constinit std::uint64_t segment_bytes = 0;

/// A process under a limit that our sparse file or mapping would eat gets a small one, or is left alone (0): ftruncate() beyond RLIMIT_FSIZE
/// kills by SIGXFSZ.
std::uint64_t allowed_bytes() {
    rlimit file{}, room{};
    if (getrlimit(RLIMIT_FSIZE, &file) != 0 || getrlimit(RLIMIT_AS, &room) != 0) return 0;
    for (const std::uint64_t bytes : {schema::kSegmentBytes, schema::kSmallSegmentBytes}) {
        if (file.rlim_cur >= bytes && room.rlim_cur / 16 >= bytes) return bytes;
    }
    return 0;
}

/// Named from the first on: agents wait for what has no size or is not ready. To make it without a name and link it when it is whole would
/// cost each start of a process as much again.
FileDescriptor make_file(const FileDescriptor& directory, const SegmentName& name) {
    return FileDescriptor{open_at(directory.get(), name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
}

bool lock(const FileDescriptor& file) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return control_lock(file.get(), F_OFD_SETLK, &lock) == 0;
}

void fill(SegmentHeader& header, const schema::ClockSnapshot& clock, std::uint64_t start_ticks,
          schema::TicksSource source) {
    header.magic = schema::kSegmentMagic;
    header.layout = schema::kSegmentLayout;
    header.mark = schema::kMachineMark;
    header.pid = getpid();
    header.parent_pid = getppid();
    header.uid = geteuid();
    header.rank = own_identity.rank;
    header.pid_namespace = own_identity.pid_namespace;
    header.start_ticks = start_ticks;
    header.size_bytes = segment_bytes;
    header.ticks_source = static_cast<std::uint32_t>(source);
    header.worker_id.store(-1, std::memory_order_relaxed);
    header.load_clock = clock;
    header.capture_clock = {0, 0, 0, 0};
    std::memcpy(header.job, job_path.job.c_str(), job_path.job.length() + 1);
    std::memcpy(header.executable, own_identity.executable.c_str(),
                own_identity.executable.length() + 1);
    std::memcpy(header.command_line, own_identity.command_line, sizeof header.command_line);
}

/// What a child keeps of its parent.
void inherit(SegmentHeader& child, const SegmentHeader& parent) {
    // Keys of what is in flight stay unique: an end in the child of what began in the parent matches nothing.
    child.next_key.store(parent.next_key.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
    // A child of one that a capture has chosen is chosen, too: it may write before the agent sees it.
    child.selected.store(parent.selected.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
    child.worker_id.store(parent.worker_id.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < schema::kSourceCount; ++i) {
        for (std::uint32_t word = 0; word < schema::kReasonBytes / 8; ++word) {
            child.sources[i].reason[word].store(
                parent.sources[i].reason[word].load(std::memory_order_relaxed),
                std::memory_order_relaxed);
        }
        child.sources[i].level.store(parent.sources[i].level.load(std::memory_order_relaxed),
                                     std::memory_order_relaxed);
    }
}

void* map_shared(const FileDescriptor& file, std::uint64_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

/// Moves a mapping over another one.
bool put_over(void* memory, std::uint64_t bytes, void* over) {
    return mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, over) != MAP_FAILED;
}

/// A forked child's: what it keeps of its parent's segment, and its own in the parent's place.
/// @param file  the child's, whose header is mapped at `header`
bool take_place_of_parent(const FileDescriptor& file, SegmentHeader* header,
                          SegmentHeader* parent) {
    inherit(*header, *parent);
    std::byte* const parent_whole = segment_base();
    if (parent_whole != nullptr) {
        auto* whole = static_cast<std::byte*>(map_shared(file, segment_bytes));
        if (whole == nullptr) return false;
        copy_names(whole, parent_whole);
        if (!put_over(whole, segment_bytes, parent_whole)) {
            munmap(whole, segment_bytes);
            return false;
        }
    }
    return put_over(header, sizeof *header, parent);
}

/// Takes a mapping of the parent's out of a child's reach.
/// @param still_used  by a hook that the fork interrupted: memory of nobody takes its place
void leave(void* memory, std::uint64_t bytes, bool still_used) {
    constexpr int kNobodys = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (!still_used || mmap(memory, bytes, PROT_READ | PROT_WRITE, kNobodys, -1, 0) == MAP_FAILED)
        munmap(memory, bytes);
}

schema::TicksSource ticks_source_of(const schema::ControlPage& control) {
    for (const auto source : {schema::TicksSource::kTsc, schema::TicksSource::kMonotonic}) {
        if (control.ticks_source == static_cast<std::uint32_t>(source)) return source;
    }
    return schema::find_ticks_source();
}

/// Makes the file and its header, and maps that.
/// @param parent  null, or the parent's mapping that it replaces, with that of the whole segment
/// @return null on any error; then nothing is left behind
SegmentHeader* make_segment(const FileDescriptor& directory, const schema::ControlPage& control,
                            SegmentHeader* parent) {
    const schema::TicksSource source = ticks_source_of(control);
    const schema::ClockSnapshot clock = schema::take_snapshot(source);
    const std::uint64_t start = schema::read_ticks(source).value;
    SegmentName name;
    name.append_number(own_identity.pid_namespace).append(".");
    name.append_number(static_cast<std::uint64_t>(getpid())).append(".").append_number(start);
    const FileDescriptor file = make_file(directory, name);
    if (!file) return nullptr;
    SegmentHeader* header = nullptr;
    // One byte makes the header's page real, so that a full file system is an error here and not SIGBUS below.
    if (ftruncate(file.get(), static_cast<off_t>(segment_bytes)) == 0 && lock(file) &&
        write_file_at(file.get(), "", 1, 0) == 1) {
        header = static_cast<SegmentHeader*>(map_shared(file, sizeof *header));
    }
    if (header != nullptr) {
        fill(*header, clock, start, source);
        forget_names();
        if (parent == nullptr || take_place_of_parent(file, header, parent)) {
            if (parent != nullptr) header = parent;
            // SYNC(ready): the header is whole; pairs with the agent's acquire.
            header->state.store(static_cast<std::uint32_t>(schema::SegmentState::kReady),
                                std::memory_order_release);
            own_name = name;
            return header;
        }
        munmap(header, sizeof *header);
    }
    unlinkat(directory.get(), name.c_str(), 0);
    return nullptr;
}

}  // namespace

bool open_segment(const JobPath& path, const Identity& identity) {
    job_path = path;
    own_identity = identity;
    segment_bytes = allowed_bytes();
    if (segment_bytes == 0) return false;
    const FileDescriptor directory = open_job_directory(job_path);
    if (!directory) return false;
    const schema::ControlPage* control = map_control_page(directory);
    if (control == nullptr) return false;
    own_identity.pid_namespace = pid_namespace(*control);
    remove_stale_segments(directory, own_identity.pid_namespace);
    SegmentHeader* header = make_segment(directory, *control, nullptr);
    if (header == nullptr) {
        munmap(const_cast<schema::ControlPage*>(control), sizeof *control);
        return false;
    }
    set_segment(header, control);
    return true;
}

bool map_whole_segment() {
    if (segment_base() != nullptr) return true;
    if (!has_segment()) return false;
    const int saved_errno = errno;
    // Of no bytes, a mapping is not moved: the same file gets a second one. Its descriptor is closed, and its name may be gone.
    void* memory = mremap(g_process.header, 0, segment_bytes, MREMAP_MAYMOVE);
    errno = saved_errno;
    if (memory == MAP_FAILED) return false;
    std::byte* none = nullptr;
    // Relaxed: there is nothing behind the address but what the file has.
    if (!g_process.base.compare_exchange_strong(none, static_cast<std::byte*>(memory),
                                                std::memory_order_relaxed))
        munmap(memory, segment_bytes);
    return true;
}

const char* segment_root() {
    return job_path.root.c_str();
}

FileDescriptor own_job_directory() {
    return open_job_directory(job_path);
}

void replace_segment_after_fork(ForkedSegment when) {
    if (!has_segment()) return;
    const int saved_errno = errno;
    SegmentHeader* const header = g_process.header;
    const schema::ControlPage* control = g_process.control;
    set_segment(nullptr, nullptr);
    own_identity.pid_namespace = pid_namespace(*control);
    bool made = false;
    if (when == ForkedSegment::kNow) {
        const FileDescriptor directory = open_job_directory(job_path);
        made = directory && make_segment(directory, *control, header) != nullptr;
    }
    if (made) {
        set_segment(header, control);
        count_inherited();
    } else {
        const bool still_used = when == ForkedSegment::kNever;
        leave(header, sizeof *header, still_used);
        std::byte* const whole = g_process.base.exchange(nullptr, std::memory_order_relaxed);
        if (whole != nullptr) leave(whole, segment_bytes, still_used);
    }
    if (when == ForkedSegment::kIfNeeded) pending_control.store(control, std::memory_order_release);
    errno = saved_errno;
}

void make_pending_segment() {
    const schema::ControlPage* control = pending_control.load(std::memory_order_relaxed);
    if (control == nullptr) return;
    control = pending_control.exchange(nullptr, std::memory_order_acq_rel);
    if (control == nullptr) return;
    const int saved_errno = errno;
    const FileDescriptor directory = open_job_directory(job_path);
    SegmentHeader* header = directory ? make_segment(directory, *control, nullptr) : nullptr;
    if (header != nullptr) set_segment(header, control);
    errno = saved_errno;
}

void close_segment() {
    // A vfork child that calls exit() runs this in its parent's memory.
    if (!has_segment() || g_process.header->pid != getpid()) return;
    const int saved_errno = errno;
    SegmentHeader& header = *g_process.header;
    // What was refused is to be counted, too.
    constexpr auto kRefused = static_cast<std::uint32_t>(schema::Loss::kLaneRefused);
    const bool recorded = header.lanes_in_use.load(std::memory_order_acquire) != 0 ||
                          header.losses[kRefused].load(std::memory_order_relaxed) != 0;
    // SYNC(closing): tells an end of the process's own will from a kill; pairs with the agent's acquire.
    header.state.store(static_cast<std::uint32_t>(schema::SegmentState::kClosing),
                       std::memory_order_release);
    if (!recorded) {
        // By its whole path: the name is nobody else's, wherever the path may lead by now.
        FixedText<sizeof job_path.root + sizeof job_path.job + schema::kSegmentNameBytes> path;
        path.append(job_path.root.c_str()).append("/").append(job_path.job.c_str());
        path.append("/").append(own_name.c_str());
        unlinkat(AT_FDCWD, path.c_str(), 0);
    }
    errno = saved_errno;
}

}  // namespace ringside::inject
