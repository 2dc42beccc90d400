// Durations, endpoints, process ids and the command line of `run`.
#include "tools/ringside/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "agent/control/endpoint.hpp"
#include "schema/sources.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

using schema::Error;
using schema::ErrorCode;

namespace {

constexpr double kLongestMs = 24.0 * 3600 * 1000;
constexpr double kFewestBytes = 1 << 20, kMostBytes = 1e18;

Error usage(std::string message) {
    return {ErrorCode::kUsage, std::move(message)};
}

std::vector<std::string> split_commas(std::string_view text) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (std::size_t comma = text.find(','); comma != std::string_view::npos;
         comma = text.find(',', from)) {
        parts.emplace_back(text.substr(from, comma - from));
        from = comma + 1;
    }
    parts.emplace_back(text.substr(from));
    return parts;
}

Result<std::string> endpoint_of(const std::string& text) {
    const bool bare = text.find("://") == std::string::npos && text.find(':') != std::string::npos;
    std::string endpoint = bare ? "tcp://" + text : text;
    if (auto checked = agent::check_endpoint(endpoint); !checked) {
        return usage("--hosts: " + checked.error().message);
    }
    return endpoint;
}

Result<std::uint32_t> source_bit(const std::string& name) {
    for (const schema::SourceId source : schema::kSources) {
        const auto id = static_cast<std::uint8_t>(source);
        if (source_word(id) == name) {
            return std::uint32_t{1} << id;
        }
    }
    return usage("--sources: '" + name + "' is no source; name some of " + source_names());
}

/// @param what  that a part is not, and what to write
Result<std::vector<std::int32_t>> parse_numbers(const std::vector<std::string>& texts,
                                                std::int32_t least, const std::string& option,
                                                const std::string& what) {
    std::vector<std::int32_t> numbers;
    for (const std::string& text : texts) {
        for (const std::string& part : split_commas(text)) {
            std::int32_t number = 0;
            const char* const end = part.data() + part.size();
            const auto [rest, error] = std::from_chars(part.data(), end, number);
            if (error != std::errc() || rest != end || number < least) {
                std::string wrong = option;
                wrong += ": '";
                wrong += part;
                wrong += "' is no ";
                return usage(wrong += what);
            }
            numbers.push_back(number);
        }
    }
    return numbers;
}

}  // namespace

Result<std::uint32_t> parse_duration_ms(std::string_view text, std::string_view option) {
    const Error wrong =
        usage(std::string(option) + ": '" + std::string(text) +
              "' is no duration; write a number and its unit, as 500ms, 2s or 1.5m (1ms to 24h)");
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value)) {
        return wrong;
    }
    const std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
    double unit_ms = 0;
    if (unit == "ms") {
        unit_ms = 1;
    } else if (unit == "s") {
        unit_ms = 1000;
    } else if (unit == "m") {
        unit_ms = 60'000;
    } else if (unit == "h") {
        unit_ms = 3'600'000;
    } else {
        return wrong;
    }
    const double total_ms = value * unit_ms;
    if (total_ms < 1 || total_ms > kLongestMs) {
        return wrong;
    }
    return static_cast<std::uint32_t>(std::lround(total_ms));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
    const Error wrong = usage("--max-bytes: '" + std::string(text) +
                              "' is no size; write bytes, or 500M, 2G (1M or more)");
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value)) {
        return wrong;
    }
    std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
    constexpr std::string_view kPrefixes = "KMGT";
    const std::size_t prefix = unit.empty() ? std::string_view::npos : kPrefixes.find(unit.front());
    if (prefix != std::string_view::npos) {
        value *= std::pow(1024.0, static_cast<double>(prefix + 1));
        unit.remove_prefix(1);
    }
    const bool known =
        unit.empty() || unit == "B" || (unit == "iB" && prefix != std::string_view::npos);
    if (!known || value < kFewestBytes || value > kMostBytes) {
        return wrong;
    }
    return static_cast<std::uint64_t>(value);
}

Result<std::vector<std::string>> parse_hosts(std::string_view text) {
    std::vector<std::string> hosts;
    for (const std::string& part : split_commas(text)) {
        auto endpoint = endpoint_of(part);
        if (!endpoint) {
            return endpoint.error();
        }
        if (std::find(hosts.begin(), hosts.end(), *endpoint) != hosts.end()) {
            return usage("--hosts: " + *endpoint + " is named twice; name each node once");
        }
        hosts.push_back(*endpoint);
    }
    return hosts;
}

Result<std::uint32_t> parse_sources(std::string_view text) {
    if (text.empty()) {
        return std::uint32_t{0xffffffffu};
    }
    std::uint32_t mask = 0;
    for (const std::string& part : split_commas(text)) {
        const auto bit = source_bit(part);
        if (!bit) {
            return bit.error();
        }
        mask |= *bit;
    }
    return mask;
}

Result<std::vector<std::int32_t>> parse_pids(const std::vector<std::string>& texts) {
    return parse_numbers(texts, 1, "--pid", "process id; write a number above 0");
}

Result<std::vector<std::int32_t>> parse_ranks(const std::vector<std::string>& texts) {
    return parse_numbers(texts, 0, "--rank", "rank; write a number from 0 on");
}

Result<std::vector<std::string>> parse_names(const std::vector<std::string>& texts,
                                             std::string_view option) {
    std::vector<std::string> names;
    for (const std::string& text : texts) {
        for (std::string& part : split_commas(text)) {
            if (part.empty()) {
                return usage(std::string(option) + ": '" + text + "' has an empty name in it");
            }
            names.push_back(std::move(part));
        }
    }
    return names;
}

SplitArguments split_command(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& takes_value) {
    SplitArguments split;
    std::size_t at = 0;
    while (at < arguments.size()) {
        const std::string& word = arguments[at];
        if (word == "--") {
            ++at;
            break;
        }
        if (word.size() < 2 || word[0] != '-') {
            break;
        }
        split.own.push_back(word);
        ++at;
        if (std::find(takes_value.begin(), takes_value.end(), word) != takes_value.end() &&
            at < arguments.size()) {
            split.own.push_back(arguments[at++]);
        }
    }
    split.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
    return split;
}

}  // namespace ringside::tools
