// `--start-time`: the instant at which all nodes begin.
#pragma once

#include <cstdint>
#include <string_view>

#include "schema/result.hpp"

namespace ringside::tools {

/// `2026-03-01T12:00:00` (local; or with `Z`, `+02:00`), `12:00:00` (local, today), both with parts of a second or none, or milliseconds
/// since the epoch, as dyno takes them.
/// @return nanoseconds since the epoch, in the hour that follows `now_ns`
/// @errors Usage: what is none, past, or farther ahead
schema::Result<std::int64_t> parse_start_time(std::string_view text, std::int64_t now_ns);

}  // namespace ringside::tools
