// What a framework said of an event beside its name (NVTX's and ITT's domains, categories, colours, payloads), as arguments.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "viewer_export/out/chrome_events.hpp"

namespace ringside::viewer_export::chrome {

using model::Index;
using model::kNone;
using schema::PayloadType;

namespace {

/// Takes `prefix` off the front of `text`.
bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// `[5, 8]`, `[]`.
bool take_list(std::string_view& text) {
    if (!take(text, "[")) return false;
    if (take(text, "]")) return true;
    do {
        take(text, "-");
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        if (digits == 0 || (digits > 1 && text.front() == '0')) return false;
        text.remove_prefix(digits);
    } while (take(text, ", "));
    return take(text, "]");
}

/// `[[5, 8], [], [16]]`, `[]`: valid JSON as it is.
bool is_list_of_lists(std::string_view text) {
    if (!take(text, "[")) return false;
    if (take(text, "]")) return text.empty();
    do {
        if (!take_list(text)) return false;
    } while (take(text, ", "));
    return take(text, "]") && text.empty();
}

}  // namespace

/// Of a set, without the payload: `,"Domain":"d","Category":"c","Colour":"#aarrggbb"`.
const std::string& EventWriter::set_args(Index attributes) {
    if (sets_.empty()) sets_.resize(job_.attributes.size());
    std::string& args = sets_[attributes];
    if (!args.empty()) return args;
    const model::Attributes& set = job_.attributes[attributes];
    const auto add = [&](const char* key, Index name) {
        if (name == kNone) return;
        args.append(",\"").append(key).append("\":\"");
        append_json_escaped(job_.names[name], args);
        args += '"';
    };
    add("Domain", set.domain);
    add("Category", set.category);
    if (set.colour != 0) {
        char hex[8];
        schema::write_hex(hex, set.colour, 8);
        args.append(",\"Colour\":\"#").append(hex, 8).append("\"");
    }
    return args;
}

/// The payload as its kind says.
/// @return false: it is none
bool EventWriter::payload(Index attributes, std::uint64_t argument) {
    if (attributes >= job_.attributes.size()) return false;
    switch (job_.attributes[attributes].payload) {
        case PayloadType::kUnsigned:
            json_.number(argument);
            return true;
        case PayloadType::kSigned:
            json_.number(static_cast<std::int64_t>(argument));
            return true;
        case PayloadType::kDouble: {
            // JSON has no word for what is not finite.
            const auto value = std::bit_cast<double>(argument);
            char text[40];
            const int length =
                std::snprintf(text, sizeof text, std::isfinite(value) ? "%.17g" : "\"%g\"", value);
            json_.text({text, static_cast<std::size_t>(length)});
            return true;
        }
        default:
            return false;
    }
}

void EventWriter::attribute_args(Index attributes, std::uint64_t argument) {
    const bool known = attributes < job_.attributes.size();
    if (known) json_.text(set_args(attributes));
    if (known && job_.attributes[attributes].payload != PayloadType::kNone) {
        json_.text(",\"Payload\":");
        if (!payload(attributes, argument)) json_.number(argument);
    } else if (argument != 0) {
        json_.text(",\"Argument\":");
        json_.number(static_cast<std::int64_t>(argument));
    }
}

/// As Kineto's `[memory]` instants.
void EventWriter::memory_args(const model::Value& value) {
    json_.text("\"Bytes\":");
    json_.number(static_cast<std::int64_t>(value.argument));
    json_.text(",\"Addr\":");
    json_.number(value.value);
    json_.text(",\"Device Type\":0,\"Device Id\":-1");
}

/// As Kineto's: lists where the text is one of lists of numbers; it comes from the job, and may be anything.
void EventWriter::shapes_args(Index shapes) {
    const std::string& text = job_.names[shapes];
    json_.text(",\"Input Dims\":");
    if (is_list_of_lists(text)) {
        json_.text(text);
    } else {
        json_.quoted(text);
    }
}

}  // namespace ringside::viewer_export::chrome
