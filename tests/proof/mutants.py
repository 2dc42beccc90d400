"""The planted mutants of the ring: each is the shipped source with one expression replaced.

    mutants.py SCHEMA_FOLDER OUT.hpp       writes a copy of the ring's headers for each mutant, in a namespace of its name

A mutant's text is looked for in the source without comments and line breaks, and must be there exactly once: when the ring changes,
its mutants have to follow. Those with tags weaken the order of those SYNC(tag) comments; tests/lint/sync.py demands one for each.
"""
import collections
import os
import re
import sys

kFiles = ("ring_reader.hpp", "ring_writer.hpp", "lane_life.hpp")

Mutant = collections.namedtuple("Mutant", "name tags file old new")


def weakened(name, tags, file, old, order):
    """`old` with its `order` relaxed."""
    return Mutant(name, tags.split(), file, old, old.replace("std::memory_order_" + order, "std::memory_order_relaxed"))


def fault(name, file, old, new):
    return Mutant(name, [], file, old, new)


kMutants = [
    # Each order of the ring, weakened.
    weakened("commit_release", "commit", "ring_writer.hpp", "header->committed.store(end, std::memory_order_release)", "release"),
    weakened("commit_acquire", "commit", "ring_reader.hpp", "header_->committed.load(std::memory_order_acquire)", "acquire"),
    weakened("free_release", "free tail", "ring_reader.hpp", "header_->tail.store(tail_, std::memory_order_release)", "release"),
    weakened("free_acquire", "free", "ring_writer.hpp", "tail = header_->tail.load(std::memory_order_acquire)", "acquire"),
    weakened("tail_acquire", "tail", "ring_reader.hpp", "tail_(header->tail.load(std::memory_order_acquire))", "acquire"),
    weakened("drop_release", "drop", "ring_writer.hpp", "header_->dropped.store(dropped + records, std::memory_order_release)", "release"),
    weakened("drop_acquire", "drop", "ring_reader.hpp", "drops.count = header.dropped.load(std::memory_order_acquire)", "acquire"),
    weakened("look_drop_acquire", "drop", "lane_life.hpp", "look.dropped = header.dropped.load(std::memory_order_acquire)", "acquire"),
    weakened("lane_released_release", "lane", "lane_life.hpp", "pack_lane_state(LaneState::kReleased, generation), std::memory_order_release", "release"),
    weakened("lane_released_acquire", "lane", "lane_life.hpp", "look.state = header.state.load(std::memory_order_acquire)", "acquire"),
    weakened("lane_free_release", "lane", "lane_life.hpp", "pack_lane_state(LaneState::kFree, lane_generation(state)), std::memory_order_release", "release"),
    weakened("lane_free_acquire", "lane", "lane_life.hpp", "compare_exchange_strong(state, used, std::memory_order_acquire,", "acquire"),
    weakened("ring_release", "ring", "ring_writer.hpp", "header_->ring.store(next, std::memory_order_release)", "release"),
    weakened("ring_acquire", "ring", "ring_reader.hpp", "newest = header_->ring.load(std::memory_order_acquire)", "acquire"),
    weakened("next_agents_ring_acquire", "ring", "ring_reader.hpp", "std::uint32_t ring = header_->ring.load(std::memory_order_acquire)", "acquire"),
    # Published too early, or too late.
    fault("commit_before_the_fill", "ring_writer.hpp", "return cells_ + offset;",
          "header_->committed.store(position_ + count, std::memory_order_release); return cells_ + offset;"),
    fault("free_before_the_copy", "ring_reader.hpp", "const std::uint64_t offset = position_ & mask;",
          "const std::uint64_t offset = position_ & mask; header_->tail.store(committed, std::memory_order_release);"),
    fault("count_before_the_interval", "ring_writer.hpp", "const std::uint64_t dropped = header_->dropped.load(std::memory_order_relaxed);",
          "const std::uint64_t dropped = header_->dropped.load(std::memory_order_relaxed);"
          " header_->dropped.store(dropped + records, std::memory_order_release);"),
    # The checks for room, off by one.
    fault("full_check_off_by_one", "ring_writer.hpp", "if (position_ + needed > free_end_) [[unlikely]]",
          "if (position_ + needed > free_end_ + 1) [[unlikely]]"),
    fault("second_full_check_off_by_one", "ring_writer.hpp", "if (position_ + needed - tail > mask_ + 1 || tail > position_)",
          "if (position_ + needed - tail > mask_ + 2 || tail > position_)"),
    fault("full_check_too_strict", "ring_writer.hpp", "if (position_ + needed - tail > mask_ + 1 || tail > position_)",
          "if (position_ + needed - tail > mask_ || tail > position_)"),
    fault("pad_not_counted", "ring_writer.hpp", "count <= to_end ? count : to_end + count", "count"),
    fault("tail_never_read_again", "ring_writer.hpp", "tail = header_->tail.load(std::memory_order_acquire);", "tail = 0;"),
    fault("free_end_one_too_far", "ring_writer.hpp", "free_end_ = tail + mask_ + 1;", "free_end_ = tail + mask_ + 2;"),
    fault("corrupt_when_full", "ring_reader.hpp", "available > mask + 1 - held)", "available > mask - held)"),
    # The wrap.
    fault("wrap_without_pad", "ring_writer.hpp", "if (count > to_end) [[unlikely]]", "if (count > to_end + count)"),
    fault("pad_not_written", "ring_writer.hpp", "cells_[offset].words[0] =", "static_cast<void>("
          "cells_[offset]); [[maybe_unused]] const std::uint64_t unwritten ="),
    fault("pad_not_skipped", "ring_writer.hpp", "position_ += to_end;", ""),
    fault("pad_of_one_cell_more", "ring_writer.hpp", "static_cast<std::uint8_t>(to_end), 0, kNoName", "static_cast<std::uint8_t>(to_end + 1), 0, kNoName"),
    fault("span_beyond_the_end", "ring_reader.hpp", "available < to_end ? available : to_end", "available <= to_end ? available : to_end + 1"),
    # Growing.
    fault("ring_told_before_its_beginning", "ring_writer.hpp",
          "room.rings[next].from.store(position_, std::memory_order_relaxed); header_->ring.store(next, std::memory_order_release);",
          "header_->ring.store(next, std::memory_order_release); room.rings[next].from.store(position_, std::memory_order_relaxed);"),
    fault("ring_not_told", "ring_writer.hpp", "header_->ring.store(next, std::memory_order_release);", ""),
    fault("ring_begins_one_late", "ring_writer.hpp", "from.store(position_,", "from.store(position_ + 1,"),
    fault("ring_in_the_old_one_s_place", "ring_writer.hpp", "cells_ = room.cells + ring_offset(room.first_cells, next);", ""),
    fault("ring_s_end_passed_over", "ring_reader.hpp", "if (available > left) available = left;", "if (left == 0) available = left;"),
    fault("ring_left_too_early", "ring_reader.hpp", "if (left != 0) {", "if (left > 1) {"),
    fault("ring_held_cells_forgotten", "ring_reader.hpp", "available > mask + 1 - held)", "available > mask + 1 - 2 * held)"),
    fault("next_agent_in_the_newest_ring", "ring_reader.hpp",
          "while (ring > 0 && room_.rings[ring].from.load(std::memory_order_relaxed) > position) --ring;",
          "while (ring > 0 && position == ~0ull) --ring;"),
    fault("next_thread_in_the_last_one_s_ring", "ring_reader.hpp", "header_->ring.store(0, std::memory_order_relaxed);", ""),
    # Accounts and hand-over.
    fault("frees_one_too_many", "ring_reader.hpp", "tail_ = position;", "tail_ = position + 1;"),
    fault("frees_late", "ring_reader.hpp", "tail_ = position; header_->tail.store(tail_, std::memory_order_release);",
          "header_->tail.store(tail_, std::memory_order_release); tail_ = position;"),
    fault("drop_not_counted", "ring_writer.hpp", "header_->dropped.store(dropped + records,", "header_->dropped.store(dropped + (dropped != 0 ? 0 : records),"),
    fault("drop_interval_starts_anew", "ring_writer.hpp", "if (dropped == 0) header_", "header_"),
    fault("record_not_counted", "ring_writer.hpp", "header->records.load(std::memory_order_relaxed) + records", "header_->records.load(std::memory_order_relaxed) + records - records"),
    fault("writer_starts_anew", "ring_writer.hpp", "position_(header->committed.load(std::memory_order_relaxed))", "position_(0)"),
    fault("reader_starts_at_the_head", "ring_reader.hpp", "tail_(header->tail.load(std::memory_order_acquire))",
          "tail_(header->committed.load(std::memory_order_acquire))"),
    fault("claims_what_is_not_free", "lane_life.hpp", "if (lane_state(state) != LaneState::kFree) return false;", ""),
    fault("claim_keeps_the_generation", "lane_life.hpp", "lane_generation(state) + 1", "lane_generation(state)"),
    fault("change_of_hands_unseen", "lane_life.hpp", "return lane_generation(header.state.load(std::memory_order_relaxed)) != lane_generation(look.state);",
          "return lane_generation(look.state) == ~0u && header.state.load(std::memory_order_relaxed) == 0;"),
    fault("drops_looked_at_before_the_state", "lane_life.hpp",
          "look.state = header.state.load(std::memory_order_acquire); look.dropped = header.dropped.load(std::memory_order_acquire);",
          "look.dropped = header.dropped.load(std::memory_order_acquire); look.state = header.state.load(std::memory_order_acquire);"),
    fault("cells_looked_at_before_the_state", "lane_life.hpp",
          "look.state = header.state.load(std::memory_order_acquire); look.dropped = header.dropped.load(std::memory_order_acquire); look.span = reader.poll();",
          "look.span = reader.poll(); look.state = header.state.load(std::memory_order_acquire); look.dropped = header.dropped.load(std::memory_order_acquire);"),
]


def squeezed(source):
    """Without comments, preprocessor lines and line breaks, one blank where there were any."""
    code = re.sub(r"//[^\n]*", "", source)
    return re.sub(r"\s+", " ", re.sub(r"^\s*#[^\n]*", "", code, flags=re.M)).strip()


def read_ring(schema):
    """@return {file: squeezed source}"""
    ring = {}
    for name in kFiles:
        with open(os.path.join(schema, name)) as text:
            ring[name] = squeezed(text.read())
    return ring


def mutate(ring, mutant):
    """@return the ring with this mutant planted"""
    count = ring[mutant.file].count(mutant.old)
    if count != 1 or mutant.old == mutant.new:
        raise SystemExit("mutant %s: %d times in %s (once is wanted): %s" % (mutant.name, count, mutant.file, mutant.old))
    return dict(ring, **{mutant.file: ring[mutant.file].replace(mutant.old, mutant.new)})


kShipped = "namespace ringside::schema {"

kRing = """
struct %(name)s {
    static constexpr char kName[] = "%(name)s";
    using Writer = %(space)s::BasicRingWriter<Atomic, ModelCell>;
    using Reader = %(space)s::BasicRingReader<Atomic, ModelCell>;
    static bool claim_lane(Header& header) { return %(space)s::claim_lane(header); }
    static void release_lane(Header& header) { %(space)s::release_lane(header); }
    static void recycle_lane(Header& header, Reader& reader, std::uint32_t state) { %(space)s::recycle_lane(header, reader, state); }
    static auto look_at_lane(const Header& header, Reader& reader) { return %(space)s::look_at_lane(header, reader); }
    template <class Look>
    static bool changed_hands(const Header& header, const Look& look) { return %(space)s::changed_hands(header, look); }
    static auto load_drops(const Header& header) { return %(space)s::load_drops(header); }
};
"""


def mutated_space(name, ring):
    parts = []
    for file in kFiles:
        body = ring[file]
        if not body.startswith(kShipped) or not body.endswith("}"):
            raise SystemExit("%s is not one namespace ringside::schema" % file)
        parts.append(body[len(kShipped):-1])
    return "namespace ringside::schema::mutants::%s {\n%s\n}\n" % (name, "\n".join(parts))


def generate(schema):
    ring = read_ring(schema)
    out = ["// Made by tests/proof/mutants.py.", "#pragma once"]
    out += ['#include "schema/%s"' % name for name in kFiles]
    out += [mutated_space(mutant.name, mutate(ring, mutant)) for mutant in kMutants]
    out.append("namespace ringside::proof {")
    out.append(kRing % {"name": "shipped", "space": "schema"})
    for mutant in kMutants:
        out.append(kRing % {"name": mutant.name, "space": "schema::mutants::" + mutant.name})
    out.append("template <class... Rings> struct RingList {};")
    out.append("using Mutants = RingList<%s>;" % ", ".join(mutant.name for mutant in kMutants))
    out.append("}")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w") as generated:
        generated.write(generate(sys.argv[1]))
