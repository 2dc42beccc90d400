// One process's segment, mapped. The process on the other side is the peer we trust least: each word is copied once, checked, and only
// the copy is used; a file that shrinks under us breaks this segment and nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/attach/mapped_file.hpp"
#include "agent/attach/open_calls.hpp"
#include "agent/attach/segment_facts.hpp"
#include "agent/attach/sigbus_guard.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// `<pid namespace>.<pid>.<ticks>`, all decimal.
std::optional<schema::SegmentId> parse_segment_name(const std::string& name);
std::string segment_name(const schema::SegmentId& id);

class MappedSegment {
public:
    /// Maps and checks a segment.
    /// @return null where its process has not finished making it: ask again
    /// @errors Refused: not ours, a link, too small, another layout or machine; the message says what to do
    static schema::Result<std::unique_ptr<MappedSegment>> open(int directory,
                                                               const std::string& directory_path,
                                                               const schema::SegmentId& id);

    const schema::SegmentId& id() const { return id_; }
    const std::string& name() const { return name_; }
    int lock_descriptor() const { return file_.file.get(); }
    /// Once true, the file has shrunk under us and nothing in it is read any more.
    bool broken() const { return broken_; }
    /// What has happened to the file, for the process's verdict: it is broken, or shorter now than it was mapped. Empty: nothing.
    std::string damage() const;
    /// Words that failed a check so far.
    std::uint64_t violations() const { return violations_; }

    /// The accessors below give false or nothing where the segment is broken or a word fails its check.
    /// @thread one consumer
    std::optional<SegmentPulse> pulse();
    std::optional<SegmentFacts> facts();
    /// @return a view with a null header while the process is making the lane
    std::optional<LaneView> lane(std::uint32_t index);
    std::optional<NameFacts> name_of(schema::NameId id);
    std::optional<AttributeFacts> attribute_of(schema::AttributeId id);
    std::optional<LaneFacts> lane_facts(const LaneView& lane);
    std::optional<LaneCounters> lane_counters(const LaneView& lane);
    std::optional<LaneContext> lane_context(const LaneView& lane);
    /// Appends the open ranges of a lane to `out`: each entry is read twice and taken where both agree.
    bool open_stack(const LaneView& lane, std::vector<OpenRange>& out);

    /// What the process is in at this moment. Entries that move while they are looked at are left out (whoever has them waits for nobody); those
    /// that were left half-written, or can't be right, count as violations.
    OpenFacts open_calls(schema::TicksSource clock);

    /// Flags the segment for captures of selected processes.
    bool set_selected(bool selected);
    /// Gives a released, drained lane back to the process; of its memory the first ring's alone stays.
    /// @param state  the state word as it was read
    bool recycle(const LaneView& lane, schema::RingReader& reader, std::uint32_t state);
    /// Takes back the memory of a lane's rings [1, end): its thread has left them, and all in them is released.
    void take_back(const LaneView& lane, std::uint32_t end);
    /// Memory that the process made real for captures, as it says.
    std::uint64_t real_bytes();
    /// What was taken back since the last call.
    std::uint64_t collect_taken_back() { return std::exchange(taken_back_, 0); }

    /// Runs `work` on the mapping; see sigbus_guard.hpp for what it may hold.
    template <class Work>
    bool access(Work&& work) {
        if (broken_) return false;
        if (!guarded(base(), bytes(), work)) broken_ = true;
        return !broken_;
    }
    void count_violation() { ++violations_; }

private:
    MappedSegment(schema::SegmentId id, std::string name, MappedFile file);

    std::byte* base() const { return static_cast<std::byte*>(file_.region.get_address()); }
    std::size_t bytes() const { return file_.region.get_size(); }
    template <class T>
    T* at(std::uint64_t offset) const {
        return reinterpret_cast<T*>(base() + offset);
    }
    schema::SegmentHeader* header() const { return at<schema::SegmentHeader>(0); }
    std::uint64_t real_bytes_of(const schema::SegmentHeader& header) const;

    schema::SegmentId id_;
    std::string name_;
    MappedFile file_;
    bool broken_ = false;
    std::uint64_t violations_ = 0;
    std::uint32_t layout_ = schema::kSegmentLayout;
    std::uint64_t taken_back_ = 0;
};

}  // namespace ringside::agent
