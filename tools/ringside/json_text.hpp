// JSON as every verb prints it: indented, valid whatever bytes a job put into its names and arguments.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringside::tools {

/// Ends with a newline. Bytes that are no UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::json& value) {
    return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ringside::tools
