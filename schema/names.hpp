// Interned names: a hash table and a byte area in the segment, written by any thread of the process without a lock, read by the agent.
//
//   entry, 16 B   hash u32 | offset u32 | length u16, flags u16 | attribute u16, state u16
//
// A name's id is its entry's index + 1. Filling an entry: claim (Free -> Filling), bytes, fields, Ready last. A process killed in
// between leaves it Filling for ever, which no reader takes. A name is (bytes, attribute): equal texts of two domains are two names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::schema {

enum class NameState : std::uint16_t { kFree = 0, kFilling = 1, kReady = 2 };

/// Bits of a name's flags: control of one name without touching the job's code.
inline constexpr std::uint16_t kNameMuted = 1;
inline constexpr std::uint16_t kNameScheduled = 2;

struct NameEntry {
    std::atomic<std::uint32_t> hash;
    std::atomic<std::uint32_t> offset;  ///< into the byte area
    std::atomic<std::uint16_t>
        length;  ///< bytes, without a NUL; a NUL follows in the byte area all the same
    std::atomic<std::uint16_t> flags;
    std::atomic<std::uint16_t> attribute;  ///< AttributeId
    std::atomic<std::uint16_t> state;  ///< SYNC(name): Ready is stored with release after all else
};
static_assert(sizeof(NameEntry) == 16);

/// Extras of a name, interned too.
struct AttributeEntry {
    std::atomic<std::uint32_t> domain;    ///< NameId of the domain's name; 0: none
    std::atomic<std::uint32_t> category;  ///< NameId of the category's name; 0: none
    std::atomic<std::uint32_t> colour;    ///< ARGB; 0: none
    std::atomic<std::uint16_t> payload;   ///< PayloadType
    std::atomic<std::uint16_t> state;     ///< NameState; SYNC(name)
    std::uint64_t reserved[2];
};
static_assert(sizeof(AttributeEntry) == 32);

/// What the argument of a record with this name is.
enum class PayloadType : std::uint16_t { kNone = 0, kUnsigned = 1, kSigned = 2, kDouble = 3 };

inline constexpr std::uint32_t kNameEntries = 8192;
inline constexpr std::uint32_t kNameBytes = 384 * 1024;
inline constexpr std::uint32_t kAttributeEntries = 1024;
inline constexpr std::uint32_t kMaxNameLength = 1024;
/// Linear probing looks at this many entries before the table counts as full.
inline constexpr std::uint32_t kNameProbes = 64;

}  // namespace ringside::schema
