// A job as the shim would make it, out of the schema alone: a directory, segments with lanes and names, writers in this process or in
// forked children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schema/control_page.hpp"
#include "schema/ring_writer.hpp"
#include "schema/segment.hpp"
#include "tests/unit/eventually.hpp"

namespace ringside::agent::testing {

/// A directory that is removed with all that is in it.
class TemporaryDirectory {
public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const std::string& path() const { return path_; }
    std::string sub(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// No namespace of any process here: of such a segment the lock alone tells whether its process lives.
inline constexpr std::uint64_t kForeignNamespace = 7;

struct SegmentSpec {
    std::uint64_t pid_namespace = kForeignNamespace;
    std::uint32_t pid = 100;
    std::uint64_t start_ticks = 1;
    std::uint64_t bytes = 8ull << 20;
    std::uint32_t layout = schema::kSegmentLayout;
    bool ready = true;
};

class FakeLane {
public:
    using Room = schema::BasicLaneRoom<std::atomic, schema::Cell>;
    FakeLane(schema::LaneHeader* header, const Room& room)
        : header_(header), room_(room), writer_(header, room) {}

    /// Goes on in the next ring.
    void grow();

    /// Writes a range, or counts it as dropped. @return whether it found room
    bool range(std::uint32_t name, std::uint64_t begin, std::uint64_t end);
    bool rpc_begin(std::uint32_t name, std::uint64_t ticks, std::uint64_t key, bool server,
                   std::uint32_t self, std::uint32_t peer, std::uint64_t span);
    bool rpc_end(std::uint64_t ticks, std::uint64_t key);
    bool put(const void* record, std::uint32_t cells, std::uint64_t ticks);
    void push_open(std::uint32_t name, std::uint64_t begin);
    schema::RingWriter& writer() { return writer_; }
    schema::LaneHeader* header() { return header_; }

private:
    schema::LaneHeader* header_;
    Room room_;
    schema::RingWriter writer_;
};

class FakeSegment {
public:
    FakeSegment(const std::string& job_directory, const SegmentSpec& spec);
    ~FakeSegment();
    FakeSegment(const FakeSegment&) = delete;
    FakeSegment& operator=(const FakeSegment&) = delete;

    schema::SegmentHeader* header() { return reinterpret_cast<schema::SegmentHeader*>(base_); }
    FakeLane& add_lane(std::uint32_t capacity_cells, std::uint32_t ring_count = 1);
    /// @return the name's id
    std::uint32_t intern(const std::string& text, std::uint16_t attribute = 0);
    void set_level(schema::SourceId source, schema::SourceLevel level, const std::string& reason);
    /// The process "ends": the lock goes, the file stays.
    void die(bool clean);
    template <class T>
    T* at(std::uint64_t offset) {
        return reinterpret_cast<T*>(base_ + offset);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    int lock_ = -1;
    std::uint64_t next_lane_ = schema::kLanesOffset;
    std::uint32_t next_name_ = 0;
    std::uint32_t name_bytes_ = 0;
    std::vector<std::unique_ptr<FakeLane>> lanes_;
};

/// The job directory's control page, as a shim sees it.
class FakeControl {
public:
    explicit FakeControl(const std::string& job_directory);
    ~FakeControl();
    FakeControl(const FakeControl&) = delete;
    FakeControl& operator=(const FakeControl&) = delete;
    std::uint32_t word() const { return page_->capture_word.load(std::memory_order_acquire); }
    const schema::ControlPage& page() const { return *page_; }

private:
    schema::ControlPage* page_;
};

/// A child that runs `work` and then waits to be killed; the constructor returns when `work` is done.
class Child {
public:
    explicit Child(const std::function<void()>& work, bool exits = false);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    pid_t pid() const { return pid_; }
    void kill();
    /// Waits for its end without a signal.
    void join();

private:
    pid_t pid_ = -1;
};

using ringside::test::eventually;

std::uint64_t ticks_now();
bool exists(const std::string& path);

}  // namespace ringside::agent::testing
