#include "tools/ringside/dump_names.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "schema/frame.hpp"

namespace ringside::tools {

namespace {

using schema::Error;
using schema::ErrorCode;

Error wrong(const std::string& pattern, const std::string& cause) {
    return {ErrorCode::kUsage, "--name-pattern '" + pattern + "': " + cause};
}

/// A host or a job may be called anything.
std::string plain(std::string text) {
    std::replace_if(
        text.begin(), text.end(),
        [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; },
        '_');
    return text;
}

std::optional<std::string> value_of(char letter, const NameFacts& facts) {
    switch (letter) {
        case 'h':
            return plain(facts.host);
        case 'n':
            return plain(facts.node);
        case 'j':
            return plain(facts.job);
        case 'r':
            return numbers_text(facts.ranks);
        case 'p':
            return numbers_text(facts.pids);
        case '%':
            return "%";
        default:
            return std::nullopt;
    }
}

}  // namespace

std::string numbers_text(std::vector<std::int32_t> numbers) {
    constexpr std::size_t kLong = 40;
    std::erase_if(numbers, [](std::int32_t number) { return number < 0; });
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (numbers.empty()) {
        return "none";
    }
    std::string text;
    for (std::size_t first = 0; first < numbers.size();) {
        std::size_t last = first;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
            ++last;
        }
        text += (first == 0 ? "" : "+") + std::to_string(numbers[first]);
        if (last > first) {
            text += "-" + std::to_string(numbers[last]);
        }
        first = last + 1;
    }
    return text.size() <= kLong
               ? text
               : std::to_string(numbers[0]) + "+" + std::to_string(numbers.size() - 1) + "more";
}

Result<std::string> dump_name(const std::string& pattern, const NameFacts& facts) {
    std::string name;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            name += pattern[at];
            continue;
        }
        const char letter = at + 1 < pattern.size() ? pattern[++at] : ' ';
        const auto value = value_of(letter, facts);
        if (!value) {
            return wrong(pattern, std::string("no '%") + letter +
                                      "'; %h host, %n node, %j job, %r ranks, %p process ids, %% a "
                                      "percent sign");
        }
        name += *value;
    }
    if (!name.ends_with(schema::kDumpExtension)) {
        name += schema::kDumpExtension;
    }
    constexpr std::size_t kLongest = 200;  // with .partial behind it still a name
    const bool odd = std::any_of(name.begin(), name.end(),
                                 [](unsigned char c) { return std::iscntrl(c) != 0 || c == '/'; });
    if (odd || name[0] == '.' || name[0] == '-' || name.size() > kLongest) {
        return wrong(pattern,
                     "it makes no file's name (a '/', a control character, '.' or '-' "
                     "first, nothing at all, or too much); -o DIR names the directory");
    }
    return name;
}

}  // namespace ringside::tools
