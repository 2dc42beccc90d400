#include "agent/capture/words.hpp"

#include <cstdio>

namespace ringside::agent {

std::string joined(const std::vector<int>& pids) {
    std::string text;
    for (const int pid : pids) text += (text.empty() ? "" : ", ") + std::to_string(pid);
    return text;
}

std::string capture_text(std::uint64_t id) {
    char text[17] = {};
    schema::write_hex(text, id, 16);
    return std::string("capture ") + text;
}

std::string holder_text(const CaptureRequest& running) {
    return capture_text(running.id) +
           (running.asker.empty() ? "" : " (asked for by " + running.asker + ")");
}

std::string seconds_text(std::int64_t ns) {
    char text[32];
    const double seconds = static_cast<double>(ns) / 1e9;
    std::snprintf(text, sizeof text, seconds < 100 ? "%.3g s" : "%.0f s", seconds);
    return text;
}

schema::Error no_such_capture(std::uint64_t id, const std::string& node) {
    return {schema::ErrorCode::kNothingMatched,
            capture_text(id) + ": it does not run on node " + node + "; start one first"};
}

Half told_half(const RawHalf& raw, std::uint32_t process, const NameBook& names) {
    Half half;
    half.process = process;
    half.lane = raw.lane;
    half.position = raw.position;
    half.server = raw.server;
    half.id = raw.id;
    half.key = raw.key;
    half.parent_key = raw.parent_key;
    half.begin_ticks = raw.begin_ticks;
    half.end_ticks = raw.end_ticks;
    half.ended = raw.ended;
    half.status = raw.status;
    half.self = names.text(raw.self);
    half.peer = names.text(raw.peer);
    half.wire_type = raw.wire_type;
    half.wire_id = raw.wire_id;
    return half;
}

}  // namespace ringside::agent
