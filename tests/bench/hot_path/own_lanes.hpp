// The job directory seen from inside a traced process, as its agent sees it: the lanes of this process's segment, emptied between blocks, and the capture
// word. A bench plays the agent itself where none may share the cores with what is measured.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "schema/control_page.hpp"
#include "schema/segment.hpp"

namespace ringside::bench {

[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "hot_path: %s\n", why.c_str());
    std::exit(2);
}

template <class T>
T* map_shared(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (file < 0 || ::fstat(file, &status) != 0) give_up("open " + path + ": it can't be opened");
    void* memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE,
                          MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) give_up("map " + path + ": no memory");
    return static_cast<T*>(memory);
}

/// The capture word of the job directory; the agent_stand_in of this process's driver has made the page, or an agent has.
class CaptureSwitch {
public:
    explicit CaptureSwitch(const std::string& directory)
        : page_(map_shared<schema::ControlPage>(directory + "/control")) {}

    /// A capture of all processes, a new one each time; or none.
    void set(bool on) {
        const std::uint32_t generation =
            (page_->capture_word.load(std::memory_order_relaxed) >> 2) + 1;
        page_->capture_word.store(generation << 2 | (on ? 1u : 0u), std::memory_order_release);
    }

private:
    schema::ControlPage* page_;
};

/// One lane, from the outside.
class OwnLane {
public:
    OwnLane() = default;
    explicit OwnLane(schema::LaneHeader* header) : header_(header) {}

    std::uint64_t written() const { return header_->committed.load(std::memory_order_acquire); }
    std::uint64_t drained() const { return header_->tail.load(std::memory_order_acquire); }
    std::uint64_t dropped() const { return header_->dropped.load(std::memory_order_acquire); }
    std::uint32_t capacity() const { return header_->capacity_cells.load(); }
    /// Only where no agent does it.
    void empty() { header_->tail.store(written(), std::memory_order_release); }

private:
    schema::LaneHeader* header_ = nullptr;
};

inline std::string job_directory() {
    const char* root = std::getenv("RINGSIDE_DIR");
    const char* job = std::getenv("RINGSIDE_JOB");
    if (root == nullptr || job == nullptr) give_up("RINGSIDE_DIR and RINGSIDE_JOB: not set");
    return std::string(root) + "/" + job;
}

/// The segment of this process, or of a child.
class OwnSegment {
public:
    explicit OwnSegment(const std::string& directory, pid_t pid = ::getpid()) {
        const std::string mine = "." + std::to_string(pid) + ".";
        for (const auto& entry : std::filesystem::directory_iterator(directory)) {
            if (entry.path().filename().string().find(mine) != std::string::npos)
                base_ = map_shared<std::byte>(entry.path().string());
        }
        if (base_ == nullptr)
            give_up("find the segment of process " + std::to_string(pid) + " in " + directory +
                    ": none");
    }

    /// The lane that the thread `tid` writes.
    OwnLane lane_of(std::uint32_t tid) const {
        const auto* header = reinterpret_cast<const schema::SegmentHeader*>(base_);
        const auto* table =
            reinterpret_cast<const schema::LaneEntry*>(base_ + schema::kLaneTableOffset);
        for (std::uint32_t i = 0; i < header->lanes_in_use.load(std::memory_order_acquire); ++i) {
            const std::uint64_t offset = table[i].offset.load(std::memory_order_acquire);
            if (offset == 0) continue;
            auto* lane = reinterpret_cast<schema::LaneHeader*>(base_ + offset);
            if (lane->tid.load(std::memory_order_relaxed) == tid) return OwnLane(lane);
        }
        give_up("find the lane of thread " + std::to_string(tid) + ": it has recorded nothing");
    }

private:
    std::byte* base_ = nullptr;
};

}  // namespace ringside::bench
