// A small lane in one shared mapping, records whose every word is known from their number, and the checking of what comes out: what both
// stress programs share.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include "schema/lane_life.hpp"
#include "schema/ring_reader.hpp"
#include "schema/ring_writer.hpp"

namespace ringside::stress {

/// As small as the shipped writer may have it, so that it wraps, is full and is empty all the time.
inline constexpr std::uint32_t kCells = 2 * schema::kMaxRecordCells;
/// It grows now and then, as far as this many rings.
inline constexpr std::uint32_t kRings = 3;
inline constexpr std::uint32_t kAllCells = schema::ring_offset(kCells, kRings);

[[noreturn]] inline void fail(const char* what, std::uint64_t is, std::uint64_t wanted) {
    std::fprintf(stderr, "FAILED: %s: %llu, and %llu is wanted\n", what,
                 static_cast<unsigned long long>(is), static_cast<unsigned long long>(wanted));
    std::_Exit(1);
}

inline void equal(const char* what, std::uint64_t is, std::uint64_t wanted) {
    if (is != wanted) fail(what, is, wanted);
}

/// Zeroed memory that forked children share.
template <class T>
T* make_shared_memory() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("mmap");
        std::exit(1);
    }
    return ::new (memory) T();
}

struct Lane {
    schema::LaneHeader header;
    schema::Cell cells[kAllCells];

    schema::BasicLaneRoom<std::atomic, schema::Cell> room() {
        return {cells, kCells, kRings, header.rings};
    }
    schema::RingReader::Room reader_room() { return {cells, kCells, kRings, header.rings}; }
};

constexpr std::uint64_t word_of(std::uint64_t number, std::uint32_t at) {
    return number * 0x9e3779b97f4a7c15ull ^ at;
}

/// Puts record `number`, or drops it where there is no room; one in sixteen of those that find none has the lane grow.
inline void put(Lane& lane, schema::RingWriter& writer, std::uint64_t number, std::uint32_t cells) {
    schema::Cell* out = writer.reserve(cells);
    if (out == nullptr && number % 16 == 0 &&
        lane.header.ring.load(std::memory_order_relaxed) + 1 < kRings) {
        writer.grow(lane.room());
        out = writer.reserve(cells);
    }
    if (out == nullptr) return writer.drop({number});
    out[0].words[0] = schema::RecordHeader{schema::RecordKind::kMark,
                                           static_cast<std::uint8_t>(cells), 0, schema::kNoName}
                          .pack();
    out[0].words[1] = number;
    for (std::uint32_t i = 2; i < cells * schema::kCellWords; ++i)
        out[i / schema::kCellWords].words[i % schema::kCellWords] = word_of(number, i);
    writer.commit(cells);
}

/// Gives every record's number in `cells` to `take`, and checks that each is whole.
template <class Take>
void read_records(const schema::Cell* cells, std::uint32_t count, std::uint64_t position,
                  Take take) {
    for (std::uint32_t at = 0; at < count;) {
        const schema::RecordHeader header = schema::RecordHeader::unpack(cells[at].words[0]);
        if (header.cells == 0 || header.cells > count - at)
            fail("cells of a record", header.cells, count - at);
        if (header.kind == schema::RecordKind::kMark) {
            const std::uint64_t number = cells[at].words[1];
            for (std::uint32_t i = 2; i < header.cells * schema::kCellWords; ++i)
                equal("a record's word",
                      cells[at + i / schema::kCellWords].words[i % schema::kCellWords],
                      word_of(number, i));
            take(number, position + at);
        }
        at += header.cells;
    }
}

/// One look at the lane: copies first, as the agent does, and says whether the copy counts.
struct Look {
    schema::LaneLook look;
    bool changed_hands = false;
    schema::Cell copy[kAllCells];
};

inline void look_at(const Lane& lane, schema::RingReader& reader, Look& out) {
    out.look = schema::look_at_lane(lane.header, reader);
    if (out.look.span.corrupt) fail("a good lane looks corrupt at", reader.tail(), 0);
    std::memcpy(static_cast<void*>(out.copy), out.look.span.cells,
                std::size_t{out.look.span.count} * schema::kCellBytes);
    out.changed_hands = schema::changed_hands(lane.header, out.look);
}

/// Seconds, and the seed that it prints.
struct Arguments {
    double seconds = 3;
    std::uint64_t seed = std::random_device()();

    Arguments(int argc, char** argv) {
        if (argc > 1) seconds = std::atof(argv[1]);
        if (argc > 2) seed = std::strtoull(argv[2], nullptr, 10);
        std::printf("%.0f s, seed %llu\n", seconds, static_cast<unsigned long long>(seed));
        std::fflush(stdout);
    }
};

}  // namespace ringside::stress
