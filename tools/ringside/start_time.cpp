// Instants as people and programs write them.
#include "tools/ringside/start_time.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>
#include <string>

#include "schema/units.hpp"

namespace ringside::tools {

using schema::Error;
using schema::ErrorCode;
using schema::kNsPerMillisecond;
using schema::kNsPerSecond;

namespace {

constexpr std::int64_t kFarthestNs = 3600 * kNsPerSecond;

Error wrong(std::string_view text, const std::string& why) {
    return {ErrorCode::kUsage, "--start-time: '" + std::string(text) + "' " + why};
}

/// The zone behind a time: "", "Z", "+02:00", "-0530". @return seconds east of UTC; nothing: none is given
/// @param bad  set where it is no zone
std::optional<long> zone_of(const std::string& text, bool& bad) {
    if (text.empty()) {
        return std::nullopt;
    }
    if (text == "Z" || text == "z") {
        return 0;
    }
    int hours = 0, minutes = 0, length = 0;
    const char* const digits = text.c_str() + 1;
    bad = (text[0] != '+' && text[0] != '-') ||
          !((std::sscanf(digits, "%2d:%2d%n", &hours, &minutes, &length) == 2 ||
             std::sscanf(digits, "%2d%2d%n", &hours, &minutes, &length) == 2) &&
            digits[length] == 0);
    const long seconds = hours * 3600L + minutes * 60L;
    return text[0] == '-' ? -seconds : seconds;
}

/// ".25" at the front of `text`, taken off it.
std::int64_t take_fraction(std::string& text) {
    if (text.empty() || text[0] != '.') {
        return 0;
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
    const double part = std::atof(("0" + text.substr(0, end)).c_str());
    text.erase(0, end);
    return std::llround(part * static_cast<double>(kNsPerSecond));
}

std::optional<std::int64_t> instant_of(const std::string& text, std::int64_t now_ns) {
    if (!text.empty() && std::all_of(text.begin(), text.end(),
                                     [](unsigned char c) { return std::isdigit(c) != 0; })) {
        constexpr long long kMostMs = std::numeric_limits<std::int64_t>::max() / kNsPerMillisecond;
        const long long ms = std::strtoll(text.c_str(), nullptr, 10);  // too much: the most
        return ms > kMostMs ? std::nullopt : std::optional(ms * kNsPerMillisecond);
    }
    const std::time_t now = now_ns / kNsPerSecond;
    std::tm fields{};
    ::localtime_r(&now, &fields);
    const char* rest = nullptr;
    for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%H:%M:%S"}) {
        std::tm read = fields;
        rest = ::strptime(text.c_str(), form, &read);
        if (rest != nullptr) {
            fields = read;
            break;
        }
    }
    if (rest == nullptr) {
        return std::nullopt;
    }
    std::string behind = rest;
    const std::int64_t fraction = take_fraction(behind);
    bool bad = false;
    const auto zone = zone_of(behind, bad);
    if (bad) {
        return std::nullopt;
    }
    fields.tm_isdst = -1;
    const std::time_t seconds = zone ? ::timegm(&fields) - *zone : ::mktime(&fields);
    return seconds * kNsPerSecond + fraction;
}

}  // namespace

schema::Result<std::int64_t> parse_start_time(std::string_view text, std::int64_t now_ns) {
    const auto instant = instant_of(std::string(text), now_ns);
    if (!instant) {
        return wrong(text,
                     "is no time; write 2026-03-01T12:00:00 (local, or with Z or +02:00), "
                     "12:00:00 (today) or milliseconds since the epoch");
    }
    if (*instant <= now_ns) {
        return wrong(text, "is past by " + std::to_string((now_ns - *instant) / kNsPerMillisecond) +
                               " ms; name a time to come, with its date or zone if it is not of "
                               "today or not local");
    }
    if (*instant - now_ns > kFarthestNs) {
        return wrong(text,
                     "is more than an hour ahead; start the command nearer to it (cron, at, "
                     "sleep)");
    }
    return *instant;
}

}  // namespace ringside::tools
