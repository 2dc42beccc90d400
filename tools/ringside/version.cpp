// `ringside version`: this command's version, and those of what it reads and speaks.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "config.hpp"
#include "schema/control_page.hpp"
#include "schema/frame.hpp"
#include "schema/segment.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

std::string as_text() {
    return columns({
        {"ringside", kVersion},
        {"dump", std::to_string(schema::kDumpVersion)},
        {"job index", std::to_string(schema::kJobVersion)},
        {"protocol", std::to_string(schema::kProtocolVersion)},
        {"segment layout", std::to_string(schema::kSegmentLayout)},
        {"control page", std::to_string(schema::kControlLayout)},
    });
}

nlohmann::json as_json() {
    return {
        {"ringside", kVersion},
        {"dump", schema::kDumpVersion},
        {"job_index", schema::kJobVersion},
        {"protocol", schema::kProtocolVersion},
        {"segment_layout", schema::kSegmentLayout},
        {"control_page", schema::kControlLayout},
    };
}

int run_version(bool json) {
    const auto printed = print(json ? json_text(as_json()) : as_text());
    return printed ? kExitGood : fail(printed.error());
}

}  // namespace

Action setup_version(CLI::App& verb, const Words&) {
    const auto json = std::make_shared<bool>(false);
    verb.add_flag("--json", *json, "one JSON object");
    verb.footer(
        "Examples:\n"
        "  ringside version --json\n"
        "Exit status: 0 good, 2 usage");
    return [json] { return run_version(*json); };
}

}  // namespace ringside::tools
