#include "agent/settings.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

enum class Kind { kText, kNumber, kSize };

struct Setting {
    const char* name;
    const char* variable;
    Kind kind;
    bool read_elsewhere = false;  ///< the variable: shims and commands go by it, too
};

constexpr std::array kSettings = {
    Setting{"dir", "RINGSIDE_DIR", Kind::kText, true},
    Setting{"node", "RINGSIDE_NODE", Kind::kText, true},
    Setting{"key", "RINGSIDE_KEY", Kind::kText, true},
    Setting{"output", "RINGSIDE_OUTPUT", Kind::kText},
    Setting{"metrics", "RINGSIDE_METRICS", Kind::kText},
    Setting{"log-level", "RINGSIDE_LOG_LEVEL", Kind::kText},
    Setting{"audit", "RINGSIDE_AUDIT", Kind::kText},
    Setting{"first-lane-kib", "RINGSIDE_FIRST_LANE_KIB", Kind::kNumber},
    Setting{"most-lane-kib", "RINGSIDE_MOST_LANE_KIB", Kind::kNumber},
    Setting{"node-budget", "RINGSIDE_NODE_BUDGET", Kind::kSize},
    Setting{"process-budget", "RINGSIDE_PROCESS_BUDGET", Kind::kSize},
};

std::string variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value == nullptr ? "" : value;
}

Error wrong(const std::string& origin, const std::string& what) {
    return {ErrorCode::kUsage, "configuration, " + origin + ": " + what};
}

std::string all_names() {
    std::string names;
    for (const Setting& setting : kSettings)
        names += (names.empty() ? "" : ", ") + std::string(setting.name);
    return names;
}

std::string place(const std::string& file, const toml::source_region& source) {
    return file + ":" + std::to_string(source.begin.line);
}

/// The value as the command line would have it.
std::optional<std::string> text_of(const toml::node& node, Kind kind) {
    if (const auto* text = node.as_string(); text != nullptr && kind != Kind::kNumber)
        return text->get();
    if (const auto* number = node.as_integer(); number != nullptr && kind != Kind::kText)
        return std::to_string(number->get());
    return std::nullopt;
}

struct Found {
    std::string text;
    std::string origin;
};

schema::Result<std::map<std::string, Found>> read_file(const std::string& path) {
    std::map<std::string, Found> values;
    if (path.empty()) return values;
    const toml::parse_result parsed = toml::parse_file(path);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return wrong(place(path, error.source()), std::string(error.description()));
    }
    for (const auto& [key, node] : parsed.table()) {
        const std::string name(key.str());
        const auto* setting = std::find_if(kSettings.begin(), kSettings.end(),
                                           [&](const Setting& each) { return each.name == name; });
        const std::string origin = place(path, key.source());
        if (setting == kSettings.end())
            return wrong(origin, "'" + name + "' is no setting; there are " + all_names());
        const auto text = text_of(node, setting->kind);
        if (!text) {
            constexpr const char* kWanted[] = {"a string in quotes", "an integer",
                                               "an integer, or a string as \"2G\""};
            return wrong(origin, name + " wants " + kWanted[static_cast<int>(setting->kind)]);
        }
        values[name] = {*text, origin};
    }
    return values;
}

schema::Result<void> give(CLI::Option& option, const Found& value) {
    try {
        option.add_result(value.text);
        option.run_callback();
    } catch (const CLI::ParseError& error) {
        return wrong(value.origin, error.what());
    }
    return {};
}

}  // namespace

const std::string& SettingOrigins::at(const std::string& name) const {
    return std::find_if(of.begin(), of.end(), [&](const auto& each) { return each.first == name; })
        ->second;
}

std::string default_config() {
    const std::string base = variable("XDG_CONFIG_HOME");
    const std::string home = variable("HOME");
    const std::string own = !base.empty() ? base : (home.empty() ? "" : home + "/.config");
    for (const std::string& path :
         {own.empty() ? "" : own + "/ringside/agent.toml", std::string("/etc/ringside/agent.toml")})
        if (!path.empty() && ::access(path.c_str(), F_OK) == 0) return path;
    return "";
}

schema::Result<SettingOrigins> fill_settings(CLI::App& app, const std::string& file) {
    auto values = read_file(file);
    if (!values) return values.error();
    SettingOrigins origins{file, {}};
    for (const Setting& setting : kSettings) {
        CLI::Option* const option = app.get_option("--" + std::string(setting.name));
        std::string origin = "default";
        schema::Result<void> given;
        const std::string from_environment = variable(setting.variable);
        if (option->count() != 0) {
            origin = "command line";
        } else if (!from_environment.empty()) {
            origin = setting.variable;
            if (!setting.read_elsewhere) given = give(*option, {from_environment, origin});
        } else if (const auto found = values->find(setting.name); found != values->end()) {
            origin = found->second.origin;
            given = give(*option, found->second);
        }
        if (!given) return given.error();
        origins.of.emplace_back(setting.name, origin);
    }
    return origins;
}

}  // namespace ringside::agent
