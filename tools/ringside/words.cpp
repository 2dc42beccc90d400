// Verdicts, levels and numbers as text.
#include "tools/ringside/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "schema/sources.hpp"

namespace ringside::tools {

namespace {

std::string with_unit(double value, const char* unit, int decimals) {
    std::array<char, 64> text{};
    const int length = std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, unit);
    return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

std::string one_line(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
            c = '?';
        }
    }
    return text;
}

std::string command_text(const fbs::ProcessT& process) {
    std::string text;
    for (const std::string& argument : process.command_line) {
        text += (text.empty() ? "" : " ") + argument;
    }
    return one_line(text.empty() ? process.executable : text);
}

std::string verdict_word(fbs::Verdict verdict) {
    switch (verdict) {
        case fbs::Verdict::Captured:
            return "captured";
        case fbs::Verdict::NothingRecorded:
            return "nothing recorded";
        case fbs::Verdict::Exited:
            return "exited";
        case fbs::Verdict::Killed:
            return "killed";
        case fbs::Verdict::Hung:
            return "hung";
        case fbs::Verdict::Refused:
            return "refused";
        case fbs::Verdict::Unreachable:
            return "unreachable";
        case fbs::Verdict::NotInjected:
            return "not injected";
    }
    return "unknown verdict " + std::to_string(static_cast<int>(verdict));
}

bool is_good(fbs::Verdict verdict, const std::string& reason) {
    switch (verdict) {
        case fbs::Verdict::Captured:
        case fbs::Verdict::Exited:
            return true;
        case fbs::Verdict::NothingRecorded:
            return reason.rfind("no framework", 0) == 0;
        default:
            return false;
    }
}

std::string level_word(fbs::SourceLevel level) {
    switch (level) {
        case fbs::SourceLevel::Absent:
            return "absent";
        case fbs::SourceLevel::Off:
            return "off";
        case fbs::SourceLevel::Full:
            return "full";
        case fbs::SourceLevel::Degraded:
            return "degraded";
        case fbs::SourceLevel::NotInstrumented:
            return "not instrumented";
    }
    return "unknown level " + std::to_string(static_cast<int>(level));
}

std::string source_word(std::uint8_t source) {
    constexpr std::array kNames = {"none",  "torch", "nvtx", "grpc", "mpi",
                                   "cupti", "api",   "itt",  "nccl"};
    static_assert(kNames.size() == schema::kSources.size() + 1);
    return source < kNames.size() ? kNames.at(source) : "source " + std::to_string(source);
}

std::string source_names() {
    std::string names;
    for (const schema::SourceId source : schema::kSources) {
        names += (names.empty() ? "" : ", ") + source_word(static_cast<std::uint8_t>(source));
    }
    return names;
}

std::string sources_text(const SourceTables& sources, bool with_reasons) {
    std::string text;
    for (const auto& source : sources) {
        if (source->level == fbs::SourceLevel::Absent) {
            continue;
        }
        text +=
            (text.empty() ? "" : ", ") + source_word(source->id) + " " + level_word(source->level);
        text += source->reason.empty() || !with_reasons ? "" : " (" + source->reason + ")";
    }
    return text.empty() ? "none" : text;
}

std::string grouped(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3; at -= 3) {
        digits.insert(at - 3, ",");
    }
    return digits;
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1024) {
        return std::to_string(bytes) + " B";
    }
    constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return with_unit(value, kUnits.at(unit), 1);
}

std::string time_text(std::int64_t ns) {
    const double value = static_cast<double>(ns);
    const double size = std::abs(value);
    if (size < 1e3) {
        return std::to_string(ns) + " ns";
    }
    if (size < 1e6) {
        return with_unit(value / 1e3, "us", 1);
    }
    return size < 1e9 ? with_unit(value / 1e6, "ms", 3) : with_unit(value / 1e9, "s", 3);
}

std::string columns(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            line.append(i + 1 < row.size() ? widths[i] - row[i].size() + 2 : 0, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace ringside::tools
