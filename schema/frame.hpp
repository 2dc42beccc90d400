// The frame around each chunk of a dump and around a job index: 16 bytes, then a FlatBuffer, then zeros up to a multiple of 8.
//
//   0 magic u32   4 length u32 (of the FlatBuffer, without padding)   8 checksum u64 (XXH3-64, seed 0, of the FlatBuffer)
//
// A file is a sequence of frames and nothing else; it is readable up to its last whole frame.
#pragma once

#include <cstdint>

namespace ringside::schema {

struct FrameHeader {
    std::uint32_t magic;
    std::uint32_t length;
    std::uint64_t checksum;
};
static_assert(sizeof(FrameHeader) == 16);

inline constexpr std::uint32_t kDumpFrameMagic = 0x46445352u;  // "RSDF"
inline constexpr std::uint32_t kJobFrameMagic = 0x464a5352u;   // "RSJF"
/// No writer makes a larger chunk, no reader takes one.
inline constexpr std::uint32_t kMaxFrameBytes = 64u << 20;
inline constexpr std::uint32_t kDumpVersion = 2;
/// What a dump without Packed chunks needs.
inline constexpr std::uint32_t kPlainDumpVersion = 1;
inline constexpr std::uint32_t kJobVersion = 2;
/// What an index without calls needs.
inline constexpr std::uint32_t kPlainJobVersion = 1;
inline constexpr std::uint32_t kProtocolVersion = 1;

constexpr std::uint32_t frame_padding(std::uint32_t length) {
    return (8 - (length & 7)) & 7;
}

inline constexpr const char* kDumpExtension = ".rsd";
inline constexpr const char* kJobExtension = ".rsj";
inline constexpr const char* kJobFileName = "job.rsj";

}  // namespace ringside::schema
