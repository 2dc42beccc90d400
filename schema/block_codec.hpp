// Records as bytes in a dump: each record against the one before it, as varints. Both ways; the exact bytes stand in
// schema/README.md, "the block". About 7 bytes a range. Used by the agent (encode) and the loader (decode).
//
//   record  := tag, [extras], name, time, words
//   tag     := kind (bits 0-4; 31: the kind follows as a varint), bit 5 extras, bit 6 last word of the first cell is not 0
//   extras  := flags u8, cells u8               only where flags or the kind's usual cells differ from the record before of its kind
//   name    := varint
//   time    := zigzag varint, word 1 minus word 1 of the record before (any kind; the block's base at first)
//   words   := word 2: Range and Operator varint of word 2 - word 1 (wrapping), others zigzag against the kind's record before;
//              word 3 if bit 6, zigzag against 0; words 4 ...: zigzag against the same word of the kind's record before
//   pad     := tag of kind 0, varint cells      what was left out, so that positions stay absolute
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "schema/record.hpp"

namespace ringside::schema {

inline constexpr std::uint32_t kMaxRecordWords = kMaxRecordCells * kCellWords;
/// A record never takes more: tag, kind, extras, name and 31 words of at most 10 bytes.
inline constexpr std::size_t kMaxEncodedRecordBytes = 1 + 3 + 2 + 5 + 31 * 10;
inline constexpr std::uint8_t kTagKindEscape = 31;
inline constexpr std::uint8_t kTagExtras = 1u << 5;
inline constexpr std::uint8_t kTagWord3 = 1u << 6;

constexpr std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

/// Writes a LEB128 varint, 1 to 10 bytes.
inline std::uint8_t* put_varint(std::uint8_t* out, std::uint64_t value) {
    while (value >= 0x80) {
        *out++ = static_cast<std::uint8_t>(value) | 0x80;
        value >>= 7;
    }
    *out++ = static_cast<std::uint8_t>(value);
    return out;
}

/// Two varints at once, without a branch: a loop would end where nobody foretells, twice a record.
/// @param first, second  below 2^28
/// @param out  room for 8 bytes: all of them are written, whatever the numbers' length
/// @return the byte after both
inline std::uint8_t* put_two_varints(std::uint8_t* out, std::uint32_t first, std::uint32_t second) {
    // Seven bits a byte by halves, both numbers side by side; then a mark on each byte but the last of each.
    std::uint64_t both = first | std::uint64_t{second} << 32;
    both = (both & 0x0000'3fff'0000'3fff) | (both & 0x0fff'c000'0fff'c000) << 2;
    both = (both & 0x007f'007f'007f'007f) | (both & 0x3f80'3f80'3f80'3f80) << 1;
    // floor(log2) / 7, of numbers below 28: 0 to 3, which the mask tells who checks the shifts.
    const auto sevens = [](std::uint32_t value) {
        return (31 - static_cast<std::uint32_t>(std::countl_zero(value | 1))) * 37 >> 8 & 3u;
    };
    const std::uint32_t more = sevens(first), more_second = sevens(second);
    static_assert(std::endian::native == std::endian::little);
    const std::uint32_t low =
        static_cast<std::uint32_t>(both) | (0x00808080u & ((1u << 8 * more) - 1));
    const std::uint32_t high =
        static_cast<std::uint32_t>(both >> 32) | (0x00808080u & ((1u << 8 * more_second) - 1));
    const std::uint64_t bytes = low | std::uint64_t{high} << 8 * (more + 1);
    std::memcpy(out, &bytes, sizeof bytes);
    return out + more + more_second + 2;
}

/// Reads a varint.
/// @return the byte after it, null where the input ends first or the number has more than 64 bits
inline const std::uint8_t* get_varint(const std::uint8_t* in, const std::uint8_t* end,
                                      std::uint64_t& value) {
    std::uint64_t result = 0;
    for (std::uint32_t shift = 0; shift < 70; shift += 7) {
        if (in == end) return nullptr;
        const std::uint8_t byte = *in++;
        if (shift == 63 && byte > 1) return nullptr;
        result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) {
            value = result;
            return in;
        }
    }
    return nullptr;
}

/// Whether word 2 is a second time, coded against word 1.
constexpr bool record_has_end(RecordKind kind) {
    // Not of the GPU's: an agent of before there were any has coded theirs as it codes what it does not know.
    return kind == RecordKind::kRange || kind == RecordKind::kOperator;
}

/// What both directions remember: the last time and, for each kind below 32, its last record.
class BlockState {
public:
    explicit BlockState(std::uint64_t base_ticks) : time_(base_ticks) {
        for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
            const std::uint32_t cells = record_cells(static_cast<RecordKind>(kind));
            previous_[kind] = {};
            previous_[kind].cells = static_cast<std::uint8_t>(cells);
        }
    }

protected:
    static constexpr std::uint32_t kKinds = 32;
    struct Previous {
        std::uint64_t words[kMaxRecordWords] = {};
        std::uint8_t flags = 0;
        std::uint8_t cells = 0;
    };
    /// Kinds from 31 on share one memory: their words are stored all the same, coded against whichever came last.
    Previous& previous(RecordKind kind) {
        const auto value = static_cast<std::uint32_t>(kind);
        return previous_[value < kTagKindEscape ? value : kTagKindEscape];
    }

    std::uint64_t time_;
    Previous previous_[kKinds];
};

class BlockEncoder : BlockState {
public:
    /// @param base_ticks  the block's base_ticks field
    explicit BlockEncoder(std::uint64_t base_ticks) : BlockState(base_ticks) {}

    /// Appends one record that is not a pad.
    /// @param words  cells * 4 of them, checked by the caller: 1 <= cells <= kMaxRecordCells
    /// @param out    room for kMaxEncodedRecordBytes
    /// @return the byte after it
    [[gnu::always_inline]] std::uint8_t* record(const std::uint64_t* words, std::uint8_t* out) {
        return is_easy(words) ? easy_range(words, out) : any_record(words, out);
    }

    /// Appends a gap: `cells` cells that are not in this dump (a lane's pad, records outside the capture).
    /// @param out  room for 11 bytes
    static std::uint8_t* pad(std::uint64_t cells, std::uint8_t* out) {
        *out++ = static_cast<std::uint8_t>(RecordKind::kPad);
        return put_varint(out, cells);
    }

private:
    /// A range without an argument, as the range before it, with small numbers: nearly all are.
    bool is_easy(const std::uint64_t* words) const {
        constexpr std::uint64_t kSmall = 1u << 28, kSmallName = 1u << 14;
        const Previous& last = previous_[static_cast<std::uint32_t>(RecordKind::kRange)];
        const std::uint64_t as_before = RecordHeader{RecordKind::kRange, 1, last.flags, {}}.pack();
        const std::uint64_t name = words[0] ^ as_before;
        return (name & 0xffffffff) == 0 && last.cells == 1 && name >> 32 < kSmallName &&
               words[3] == 0 && zigzag(static_cast<std::int64_t>(words[1] - time_)) < kSmall &&
               words[2] - words[1] < kSmall;
    }

    std::uint8_t* easy_range(const std::uint64_t* words, std::uint8_t* out) {
        const auto name = static_cast<std::uint32_t>(words[0] >> 32);
        const std::uint32_t long_name = name >= 0x80 ? 1 : 0;
        const std::uint32_t bytes = static_cast<std::uint32_t>(RecordKind::kRange) |
                                    ((name & 0x7f) | long_name << 7) << 8 | name >> 7 << 16;
        std::memcpy(out, &bytes, sizeof bytes);
        const auto time = zigzag(static_cast<std::int64_t>(words[1] - time_));
        time_ = words[1];
        return put_two_varints(out + 2 + long_name, static_cast<std::uint32_t>(time),
                               static_cast<std::uint32_t>(words[2] - words[1]));
    }

    std::uint8_t* any_record(const std::uint64_t* words, std::uint8_t* out) {
        const RecordHeader header = RecordHeader::unpack(words[0]);
        Previous& last = previous(header.kind);
        const auto kind = static_cast<std::uint32_t>(header.kind);
        const bool extras = header.flags != last.flags || header.cells != last.cells;
        *out++ = static_cast<std::uint8_t>((kind < kTagKindEscape ? kind : kTagKindEscape) |
                                           (extras ? kTagExtras : 0u) |
                                           (words[3] != 0 ? kTagWord3 : 0u));
        if (kind >= kTagKindEscape) out = put_varint(out, kind);
        if (extras) {
            *out++ = last.flags = header.flags;
            *out++ = last.cells = header.cells;
        }
        out = put_varint(out, header.name.value);
        out = put_varint(out, zigzag(static_cast<std::int64_t>(words[1] - time_)));
        time_ = words[1];
        if (record_has_end(header.kind)) {
            out = put_varint(out, words[2] - words[1]);
        } else {
            out = put_varint(out, zigzag(static_cast<std::int64_t>(words[2] - last.words[2])));
            last.words[2] = words[2];
        }
        if (words[3] != 0) out = put_varint(out, zigzag(static_cast<std::int64_t>(words[3])));
        for (std::uint32_t i = kCellWords; i < header.cells * kCellWords; ++i) {
            out = put_varint(out, zigzag(static_cast<std::int64_t>(words[i] - last.words[i])));
            last.words[i] = words[i];
        }
        return out;
    }
};

/// One decoded record, or a gap (kind kPad: only `cells` counts).
struct DecodedRecord {
    std::uint64_t words[kMaxRecordWords];
    std::uint64_t cells = 0;

    RecordHeader header() const { return RecordHeader::unpack(words[0]); }
};

class BlockDecoder : BlockState {
public:
    /// @param data, size   a block's `data`
    /// @param base_ticks   its base_ticks
    BlockDecoder(const std::uint8_t* data, std::size_t size, std::uint64_t base_ticks)
        : BlockState(base_ticks), in_(data), end_(data + size) {}

    /// Reads the next record.
    /// @return false at the end of the block, or where it is damaged: damaged() tells
    bool next(DecodedRecord& record) {
        if (in_ == end_ || damaged_) return false;
        damaged_ = !read(record);
        return !damaged_;
    }
    bool damaged() const { return damaged_; }

private:
    bool varint(std::uint64_t& value) {
        in_ = get_varint(in_, end_, value);
        return in_ != nullptr;
    }

    bool read(DecodedRecord& record) {
        const std::uint8_t tag = *in_++;
        std::uint64_t value = 0;
        std::uint64_t kind = tag & 31;
        if (kind == 0) {
            record.words[0] = RecordHeader{}.pack();
            return tag == 0 && varint(record.cells);
        }
        if (kind == kTagKindEscape && (!varint(kind) || kind < kTagKindEscape || kind > 0xffff))
            return false;
        Previous& last = previous(static_cast<RecordKind>(kind));
        if ((tag & kTagExtras) != 0) {
            if (end_ - in_ < 2) return false;
            last.flags = *in_++;
            last.cells = *in_++;
        }
        if (last.cells == 0 || last.cells > kMaxRecordCells || (tag & 0x80) != 0) return false;
        if (!varint(value) || value > 0xffffffffu) return false;
        std::uint64_t* words = record.words;
        record.cells = last.cells;
        words[0] = RecordHeader{static_cast<RecordKind>(kind), last.cells, last.flags,
                                NameId{static_cast<std::uint32_t>(value)}}
                       .pack();
        if (!varint(value)) return false;
        words[1] = time_ += static_cast<std::uint64_t>(unzigzag(value));
        if (!varint(value)) return false;
        if (record_has_end(static_cast<RecordKind>(kind))) {
            words[2] = words[1] + value;
        } else {
            words[2] = last.words[2] += static_cast<std::uint64_t>(unzigzag(value));
        }
        words[3] = 0;
        if ((tag & kTagWord3) != 0) {
            if (!varint(value)) return false;
            words[3] = static_cast<std::uint64_t>(unzigzag(value));
        }
        for (std::uint32_t i = kCellWords; i < last.cells * kCellWords; ++i) {
            if (!varint(value)) return false;
            words[i] = last.words[i] += static_cast<std::uint64_t>(unzigzag(value));
        }
        return true;
    }

    const std::uint8_t* in_;
    const std::uint8_t* end_;
    bool damaged_ = false;
};

}  // namespace ringside::schema
