// What a dump is called where it is brought to: `--name-pattern`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

/// What is known of a node's dump.
struct NameFacts {
    std::string host;
    std::string node;
    std::string job;
    std::vector<std::int32_t> ranks;  ///< of its processes; those that have none count for nothing
    std::vector<std::int32_t> pids;
};

inline constexpr const char* kDefaultNamePattern = "%n";

/// `%h` host, `%n` node, `%j` job, `%r` ranks (0-3+7), `%p` process ids, `%%` a percent sign; the rest as it is, and .rsd behind it.
/// @errors Usage: another letter behind '%', or the name would be none: with a '/', empty, beginning with '.' or '-'
Result<std::string> dump_name(const std::string& pattern, const NameFacts& facts);

/// Numbers as ranges, `0-3+7`; where that is long, the first and how many more: `0+96more`; of none: `none`.
std::string numbers_text(std::vector<std::int32_t> numbers);

}  // namespace ringside::tools
