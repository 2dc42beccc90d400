// What a framework said of an event beside its name (NVTX's and ITT's domains, categories, colours, payloads), as arguments.
#include <bit>
#include <cmath>
#include <cstdio>

#include "viewer_export/out/chrome_events.hpp"

namespace ringside::viewer_export::chrome {

using model::Index;
using model::kNone;
using schema::PayloadType;

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

}  // namespace ringside::viewer_export::chrome
