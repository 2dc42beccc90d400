// The memory that CUPTI writes its records into: a bounded pool of buffers, handed out when it asks and taken back when it gives them to us.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::cupti {

inline constexpr std::size_t kBufferBytes = 256 << 10;
/// So many at most. CUPTI before 12.9 must not be refused one: there more are there to bridge the time until recording has been stopped.
inline constexpr std::uint32_t kBuffers = 64;
inline constexpr std::uint32_t kBuffersOfOld = 256;

/// Makes the address room; the memory comes as CUPTI writes.
/// @return false: there is none
bool prepare_buffers();

/// @param limit  kBuffers or kBuffersOfOld
/// @return null: all are out
/// @thread thread-safe
std::uint8_t* take_buffer(std::uint32_t limit);

/// @return false: it is none of ours
/// @thread thread-safe
bool give_back_buffer(const std::uint8_t* buffer);

/// How many are out.
std::uint32_t buffers_out();

/// Gives the memory back to the system where no buffer is out; CUPTI records nothing at that time.
void trim_buffers();

}  // namespace ringside::inject::cupti
