// Where the name lies in WorkerInfo {vptr, reference counts, std::string name_, std::int16_t id_}: 24 in torch 1.13, 16 in 2.5 to 2.15.
// Found by the string's shape in either ABI, confirmed at the first call: send()'s destination must be named as the pipe it is written to.
// Called by rpc_calls; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside::inject::torch {

inline constexpr std::size_t kMaxWorkerName = 128;  ///< torch's own limit, WorkerInfo::MAX_NAME_LEN

/// How a std::string looks at an address.
enum class StringShape : std::uint8_t { kNone, kNewAbi, kOldAbi };

/// Tells whether a std::string of 1 to kMaxWorkerName characters lies at `at`.
/// Reads 24 bytes there and, where its first word looks like an address, 24 bytes before that and up to kMaxWorkerName after.
StringShape string_shape(const char* at);

/// The name's and id's place.
struct WorkerLayout {
    std::uint16_t name_offset = 0;  ///< 0: not found
    std::uint16_t id_offset = 0;
};

/// Finds the layout of `info` by shape.
/// @param skip  an offset that has proved wrong, or 0
WorkerLayout find_worker_layout(const char* info, std::uint16_t skip = 0);

/// The name in `info`; empty where the layout is unknown.
std::string_view worker_name(const char* info, WorkerLayout layout);

/// The id in `info`, -1 where unknown.
std::int16_t worker_id(const char* info, WorkerLayout layout);

/// Text at the address in a std::string's first word, which is NUL-terminated in both ABIs.
/// @return at most kMaxWorkerName characters
std::string_view string_text(const char* const* string);

}  // namespace ringside::inject::torch
