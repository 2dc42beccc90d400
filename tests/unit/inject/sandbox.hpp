// What the shim's tests share: a job directory of one's own, a forked child that plays the traced process, and the agent's eye on the
// segment that it leaves behind. Each test runs the core in a child, because a process has one segment in its life.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "inject/core/emit.hpp"
#include "schema/control_page.hpp"
#include "schema/segment.hpp"
#include "tests/unit/eventually.hpp"

namespace ringside::test {

/// In a child: a check that ends it with status 1 and says which line it was.
#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: EXPECT(%s)\n", __FILE__, __LINE__, #condition); \
            std::_Exit(1);                                                               \
        }                                                                                \
    } while (false)

struct ReadRecord {
    schema::RecordHeader header;
    std::uint64_t position = 0;
    std::vector<std::uint64_t> words;  ///< all of them, the header too
    std::string name;                  ///< "<inline>text" where its bytes stood before it
};

/// A segment file as the agent maps it.
class SegmentView {
public:
    explicit SegmentView(const std::string& path);
    ~SegmentView();
    SegmentView(const SegmentView&) = delete;
    SegmentView& operator=(const SegmentView&) = delete;

    schema::SegmentHeader& header() const;
    schema::LaneHeader& lane(std::uint32_t index) const;
    schema::LaneEntry& entry(std::uint32_t index) const;
    std::string name(schema::NameId id) const;
    /// All records of a lane that has not wrapped, through schema's reader.
    std::vector<ReadRecord> records(std::uint32_t lane) const;
    /// As records(), and gives the cells back to the producer.
    std::vector<ReadRecord> drain(std::uint32_t lane) const;
    std::uint64_t loss(schema::Loss loss) const;
    /// Whether the process that made it lives.
    bool locked() const;

private:
    std::vector<ReadRecord> read(std::uint32_t lane, bool release) const;

    std::string path_;
    std::byte* base_ = nullptr;
};

class Sandbox {
public:
    Sandbox();
    ~Sandbox();
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;

    const std::string& root() const { return root_; }
    std::string job_directory() const { return root_ + "/job"; }
    /// Paths of the segments, in the order of their names.
    std::vector<std::string> segments() const;
    /// The segment of that process; fails the test where there is not exactly one.
    std::string segment_of(pid_t pid) const;

    /// The control page, made if need be, writable as the agent's.
    schema::ControlPage& control();
    /// The agent's store: another generation, on or off; wakes who waits.
    std::uint32_t set_capture(bool on, bool selected_only = false);
    /// Whoever waits for the word, without a change of it.
    void wake();

    /// The shim's constructor without sources: in a child.
    bool load() const;

    /// Runs `body` in a forked child and waits for it.
    /// @return its pid; a body that did not end with status 0 fails the test
    pid_t run(const std::function<void()>& body) const;
    /// As run(), for a child that ends by `signal`.
    pid_t run_killed(int signal, const std::function<void()>& body) const;

private:
    std::string root_;
    schema::ControlPage* control_ = nullptr;
};

}  // namespace ringside::test
