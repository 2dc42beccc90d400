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

void EventWriter::attribute_args(Index attributes, std::uint64_t argument) {
    const bool known = attributes < job_.attributes.size();
    const PayloadType payload = known ? job_.attributes[attributes].payload : PayloadType::kNone;
    if (known) json_.text(set_args(attributes));
    switch (payload) {
        case PayloadType::kUnsigned:
            json_.text(",\"Payload\":");
            return json_.number(argument);
        case PayloadType::kSigned:
            json_.text(",\"Payload\":");
            return json_.number(static_cast<std::int64_t>(argument));
        case PayloadType::kDouble: {
            // JSON has no word for what is not finite.
            const auto value = std::bit_cast<double>(argument);
            char text[40];
            const int length = std::snprintf(
                text, sizeof text,
                std::isfinite(value) ? ",\"Payload\":%.17g" : ",\"Payload\":\"%g\"", value);
            return json_.text({text, static_cast<std::size_t>(length)});
        }
        default:
            break;
    }
    if (argument == 0) return;
    json_.text(",\"Argument\":");
    json_.number(static_cast<std::int64_t>(argument));
}

}  // namespace ringside::viewer_export::chrome
