// What the engine's messages say of captures, processes and halves: one place for its files.
#pragma once

#include <string>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/drain/half_book.hpp"
#include "agent/drain/name_book.hpp"

namespace ringside::agent {

/// "12, 13".
std::string joined(const std::vector<int>& pids);
/// "capture 00000000c0ffee00".
std::string capture_text(std::uint64_t id);
/// "capture 00000000c0ffee00 (asked for by pid 12 on host)": one that is in another's way.
std::string holder_text(const CaptureRequest& running);
/// "0.03 s", "2 s", "120 s".
std::string seconds_text(std::int64_t ns);
schema::Error no_such_capture(std::uint64_t id, const std::string& node);
/// A half with its names, as the join wants it.
Half told_half(const RawHalf& raw, std::uint32_t process, const NameBook& names);

}  // namespace ringside::agent
