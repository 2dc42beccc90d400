#include "tools/ringside/window_report.hpp"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "schema/control_page.hpp"
#include "schema/ids.hpp"
#include "schema/units.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

/// 10 s, 7.8 s, 0.25 s: as long as a window is, milliseconds say nothing.
std::string seconds_text(std::int64_t ns) {
    std::array<char, 32> text{};
    const double seconds = static_cast<double>(ns) / 1e9;
    std::snprintf(text.data(), text.size(), seconds < 100 ? "%.3g s" : "%.0f s", seconds);
    return text.data();
}

std::string sources_of(std::uint32_t mask) {
    std::string names;
    for (std::uint8_t id = 1; id <= static_cast<std::uint8_t>(schema::SourceId::kItt); ++id) {
        if ((mask & 1u << id) != 0) {
            names += (names.empty() ? "" : ", ") + source_word(id);
        }
    }
    return names;
}

bool has(const fbs::WindowStatusT& window, schema::CaptureOption option) {
    return (window.options & static_cast<std::uint32_t>(option)) != 0;
}

}  // namespace

std::string window_text(const fbs::WindowStatusT& window) {
    std::string text = "keeps " + seconds_text(window.keep_ms * schema::kNsPerMillisecond) + " / " +
                       bytes_text(window.max_bytes) + ", holds " + seconds_text(window.holds_ns) +
                       ", " + bytes_text(window.bytes) + ", " + grouped(window.records) +
                       " records";
    if (window.aged_records != 0) {
        text += "; aged out " + grouped(window.aged_records) + " records";
    }
    if (window.lost != 0) {
        text += "; " + grouped(window.lost) + " lost";
    }
    if (!window.pids.empty()) {
        text += "; " + std::to_string(window.pids.size()) + " chosen processes";
    }
    if (window.source_mask != 0xffffffffu) {
        text += "; " + sources_of(window.source_mask);
    }
    if (has(window, schema::CaptureOption::kRecordShapes)) {
        text += "; with shapes";
    }
    if (has(window, schema::CaptureOption::kProfileMemory)) {
        text += "; with memory";
    }
    return text + (window.error.empty() ? "" : "; " + window.error);
}

nlohmann::json window_json(const fbs::WindowStatusT& window) {
    return {
        {"keep_ms", window.keep_ms},
        {"max_bytes", window.max_bytes},
        {"pids", window.pids},
        {"source_mask", window.source_mask},
        {"record_shapes", has(window, schema::CaptureOption::kRecordShapes)},
        {"profile_memory", has(window, schema::CaptureOption::kProfileMemory)},
        {"armed_ns", window.armed_ns},
        {"holds_ns", window.holds_ns},
        {"bytes", window.bytes},
        {"records", window.records},
        {"pieces", window.pieces},
        {"aged_records", window.aged_records},
        {"aged_until_ns", window.aged_until_ns},
        {"lost", window.lost},
        {"error", window.error},
    };
}

std::string left_text(std::uint32_t pieces, std::uint64_t bytes) {
    if (pieces == 0) {
        return "";
    }
    return std::to_string(pieces) + " pieces, " + bytes_text(bytes) +
           ", left by an agent that died; `ringside recover`, once no agent is here, makes a dump "
           "of "
           "them, `ringside disarm` removes them";
}

}  // namespace ringside::tools
