// What the threads of a scenario do: writers that put records and drop them where there is no room, readers that look, copy and release
// as the agent's drainer does, and what must hold at each step and at the end. Over any ring of the shipped one's face (`Ring`: the
// shipped one or a mutant of it, made by mutants.py).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "model.hpp"

namespace ringside::proof {

inline constexpr std::uint32_t kMostCells = 6;  ///< of all rings of a lane
inline constexpr std::uint32_t kRings = 2;
inline constexpr std::uint32_t kMostRecords = 8;
inline constexpr std::uint32_t kGenerations = 3;

/// Cells of the records that one writer tries to put, 0 at the end.
using Sizes = std::array<std::uint32_t, kMostRecords>;

/// Whether a scenario is small enough to be searched whole.
enum class Whole : std::uint8_t { kNo, kLong, kAlways };

/// A scenario: who does how much, on how small a ring.
struct Plan {
    const char* name;
    std::uint32_t capacity;
    Sizes first;           ///< of the lane's first thread; none: it has gone, and the lane is free
    std::uint32_t passes;  ///< of the first agent
    Sizes second = {};     ///< of the thread that claims the lane once it is given back
    std::uint32_t take_over =
        0;  ///< the tail at which the first agent dies and the next takes over
    std::uint32_t next_passes = 0;     ///< of the next agent
    std::uint32_t batch = kMostCells;  ///< cells copied in one pass
    std::uint32_t rings =
        1;              ///< of `capacity`, and of twice as many: gone on in where the first is full
    bool late = false;  ///< cells are freed a pass after they were taken
    Whole whole = Whole::kNo;

    bool starts_free() const { return first[0] == 0; }
    std::uint32_t threads() const {
        return 2 + (second[0] != 0 && !starts_free() ? 1 : 0) + (take_over != 0 ? 1 : 0);
    }
};

class ScenarioBase {
public:
    virtual ~ScenarioBase() = default;
    virtual void thread(unsigned index) = 0;
    virtual void after() = 0;
};

template <class Ring>
class Scenario final : public ScenarioBase {
public:
    explicit Scenario(const Plan& plan) : plan_(plan) {
        for (auto* word : {&header_.committed, &header_.dropped, &header_.first_drop_ticks,
                           &header_.last_drop_ticks, &header_.records, &header_.tail})
            word->open();
        header_.ring.open();
        for (auto& ring : rings_) ring.from.open();
        header_.state.open();
        header_.state.store(
            schema::pack_lane_state(
                plan_.starts_free() ? schema::LaneState::kFree : schema::LaneState::kUsed, 1),
            std::memory_order_relaxed);
    }

    void thread(unsigned index) override {
        if (index == 0) return plan_.starts_free() ? second_thread() : first_thread();
        if (index == 1) return first_agent();
        if (index == 2 && plan_.second[0] != 0) return second_thread();
        next_agent();
    }

    /// All threads have ended, killed agents too: the next agent finds the rest, and the account is exact.
    void after() override {
        typename Ring::Reader reader(&header_, reader_room());
        while (pass(reader)) {
        }
        check(delivered_ == written_, "a committed record never arrived");
        check(header_.records.load(std::memory_order_relaxed) == written_,
              "the lane's count of records is not what was committed");
        check(dropped_seen_ == drops_, "a drop was not counted");
        for (std::uint32_t i = 0; i < kGenerations; ++i) {
            check(kept_[i] + lost_[i] == tried_[i], "written is not kept + lost");
            check(lost_[i] == dropped_[i], "another thread's drops were counted");
        }
        check_room(reader);
    }

private:
    static constexpr std::uint64_t kTicksApart = 10;
    schema::BasicLaneRoom<Atomic, ModelCell> room() {
        return {cells_, plan_.capacity, plan_.rings, rings_};
    }
    schema::BasicLaneRoom<Atomic, const ModelCell> reader_room() {
        return {cells_, plan_.capacity, plan_.rings, rings_};
    }
    std::uint32_t all_cells() const { return plan_.capacity * (plan_.rings == 1 ? 1 : 3); }

    static constexpr int kTries = 4;  ///< at what another thread may not be done with

    // --- the job's side ---

    void first_thread() {
        typename Ring::Writer writer(&header_, room());
        write(writer, plan_.first, 1);
        if (plan_.second[0] != 0) Ring::release_lane(header_);
    }

    void second_thread() {
        bool claimed = false;
        for (int i = 0; i < kTries && !claimed; ++i) {
            claimed = Ring::claim_lane(header_);
            if (!claimed) rl::yield(1, $);
        }
        if (!claimed) return;
        typename Ring::Writer writer(&header_, room());
        check(writer.position() == position_, "the next thread goes on at another position");
        write(writer, plan_.second, 2);
    }

    void write(typename Ring::Writer& writer, const Sizes& sizes, std::uint32_t generation) {
        for (const std::uint32_t size : sizes) {
            if (size != 0) put(writer, size, generation);
        }
        position_ = writer.position();
    }

    void put(typename Ring::Writer& writer, std::uint32_t size, std::uint32_t generation) {
        ++tried_[generation];
        // As the shim's hot path does: it asks only where the cell is not known to be free.
        ModelCell* out = size == 1 && writer.position() < writer.free_end() ? writer.next_cell()
                                                                            : writer.reserve(size);
        if (out == nullptr && header_.ring.load(std::memory_order_relaxed) + 1 < plan_.rings) {
            writer.grow(room());
            out = writer.reserve(size);
            check(out != nullptr || size != 1, "a lane that has grown refuses");
        }
        if (out == nullptr) {
            ++dropped_[generation];
            ++drops_;
            writer.drop({drops_ * kTicksApart});
            return;
        }
        check(out >= cells_ && out + size <= cells_ + all_cells(), "a record leaves the ring");
        const std::uint64_t value = written_ + 1;
        for (std::uint32_t i = 0; i < size; ++i) {
            for (std::uint32_t j = 0; j < schema::kCellWords; ++j)
                out[i].words[j] = value * 100 + i * 10 + j;
        }
        out[0].words[0] = schema::RecordHeader{
            schema::RecordKind::kMark,
            static_cast<std::uint8_t>(size),
            0,
            {}}.pack();
        generation_of_[written_++] = generation;
        writer.commit(size);
    }

    // --- the agent's side ---

    void first_agent() {
        typename Ring::Reader reader(&header_, reader_room());
        for (std::uint32_t i = 0; i < plan_.passes; ++i) {
            if (plan_.take_over != 0 && reader.tail() >= plan_.take_over) return;
            if (!pass(reader)) rl::yield(1, $);
        }
        if (plan_.late) reader.release_to(reader.position());
    }

    /// Nothing but the tail tells this one that the agent before has died.
    void next_agent() {
        for (int i = 0; i < kTries; ++i) {
            typename Ring::Reader reader(&header_, reader_room());
            if (reader.tail() < plan_.take_over) {
                rl::yield(1, $);
                continue;
            }
            for (std::uint32_t j = 0; j < plan_.next_passes; ++j) pass(reader);
            return;
        }
    }

    /// One look, as LaneDrainer::drain does it.
    /// @return whether there may be more
    bool pass(typename Ring::Reader& reader) {
        const auto look = Ring::look_at_lane(header_, reader);
        check(!look.span.corrupt, "a good lane looks corrupt");
        const std::uint32_t count = std::min(look.span.count, plan_.batch);
        if (count != 0) {
            check(look.span.position == reader.position(),
                  "the span is not where it was asked for");
            check(look.span.cells >= cells_ &&
                      look.span.cells + look.span.count <= cells_ + all_cells(),
                  "the span leaves the ring");
        }
        std::uint64_t copy[kMostCells][schema::kCellWords];
        for (std::uint32_t i = 0; i < count; ++i) {
            for (std::uint32_t j = 0; j < schema::kCellWords; ++j)
                copy[i][j] = look.span.cells[i].words[j];
        }
        if (Ring::changed_hands(header_, look)) return true;
        generation_ = schema::lane_generation(look.state);
        check(generation_ < kGenerations, "a generation that nobody began");
        if (look.dropped != dropped_seen_) note_drops(look.dropped);
        if (count == 0) {
            if (reader.tail() != reader.position()) reader.release_to(reader.position());
            if (schema::lane_state(look.state) == schema::LaneState::kReleased)
                finish(reader, look.state);
            return false;
        }
        const std::uint32_t taken = take(copy, count, count < look.span.count);
        reader.take(taken);
        if (!plan_.late) held_ = reader.position();
        reader.release_to(held_);
        held_ = reader.position();
        return true;
    }

    std::uint32_t take(const std::uint64_t (*copy)[schema::kCellWords], std::uint32_t count,
                       bool more) {
        std::uint32_t at = 0;
        while (at < count) {
            const schema::RecordHeader header = schema::RecordHeader::unpack(copy[at][0]);
            check(header.cells != 0, "a cell that nobody wrote was delivered");
            if (header.cells > count - at && more && at != 0) break;
            check(header.cells <= count - at, "a record is not whole");
            if (header.kind != schema::RecordKind::kPad) deliver(copy + at, header.cells);
            at += header.cells;
        }
        return at;
    }

    void deliver(const std::uint64_t (*copy)[schema::kCellWords], std::uint32_t cells) {
        check(delivered_ < written_, "a record was delivered that is not committed");
        const std::uint64_t value = delivered_ + 1;
        for (std::uint32_t i = 0; i < cells; ++i) {
            for (std::uint32_t j = i == 0 ? 1 : 0; j < schema::kCellWords; ++j)
                check(copy[i][j] == value * 100 + i * 10 + j,
                      "a record is not the next one, or not whole");
        }
        check(generation_of_[delivered_] == generation_,
              "a record went to another thread's account");
        ++kept_[generation_];
        ++delivered_;
    }

    void note_drops(std::uint64_t dropped) {
        const auto drops = Ring::load_drops(header_);
        check(dropped > dropped_seen_ && drops.count >= dropped, "the count of drops went back");
        check(drops.count <= drops_, "more drops than there were");
        check(drops.first_ticks == kTicksApart,
              "the first drop's time is not there before the count");
        check(drops.last_ticks >= drops.count * kTicksApart,
              "the last drop's time is not there before the count");
        lost_[generation_] += dropped - dropped_seen_;
        dropped_seen_ = dropped;
    }

    /// The thread has ended and its lane is empty: the totals are taken, another may have it.
    void finish(typename Ring::Reader& reader, std::uint32_t state) {
        check(header_.records.load(std::memory_order_relaxed) == delivered_,
              "a released lane was taken for drained");
        check(lost_[generation_] == dropped_[generation_],
              "a released lane's drops are not all seen");
        check(kept_[generation_] + lost_[generation_] == tried_[generation_],
              "written is not kept + lost");
        Ring::recycle_lane(header_, reader, state);
    }

    /// The empty ring takes as much as it holds and not one more, and one more once one has been freed.
    void check_room(typename Ring::Reader& reader) {
        typename Ring::Writer writer(&header_, room());
        const std::uint32_t capacity = plan_.capacity
                                       << header_.ring.load(std::memory_order_relaxed);
        for (std::uint32_t i = 0; i < capacity; ++i) {
            check(writer.reserve(1) != nullptr, "a lane with room refuses");
            writer.commit(1, 0);
        }
        check(writer.reserve(1) == nullptr, "a full lane takes more");
        check(!reader.poll().corrupt, "a full lane looks corrupt");
        reader.release(1);
        check(writer.reserve(1) != nullptr, "a lane with room refuses");
    }

    Plan plan_;
    Header header_;
    proof::Ring rings_[kRings];
    ModelCell cells_[kMostCells];

    // What really happened. One OS thread runs all fibers, so plain words do; the model does not see them.
    std::uint64_t position_ = 0;
    std::uint32_t written_ = 0;
    std::uint32_t drops_ = 0;
    std::uint32_t generation_of_[2 * kMostRecords] = {};
    std::uint32_t tried_[kGenerations] = {};
    std::uint32_t dropped_[kGenerations] = {};

    // What the agents made of it.
    std::uint32_t delivered_ = 0;
    std::uint32_t generation_ = 0;
    std::uint64_t held_ = 0;  ///< taken, and free with the next pass where that is late
    std::uint64_t dropped_seen_ = 0;
    std::uint64_t kept_[kGenerations] = {};
    std::uint64_t lost_[kGenerations] = {};
};

}  // namespace ringside::proof
