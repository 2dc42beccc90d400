// What `ringside top` shows of one look at the agents and the look before: rates, a table, JSON. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schema/control_generated.h"

namespace ringside::tools {

/// An agent's answers; without them, why.
struct AgentLook {
    std::string endpoint;
    std::optional<fbs::StatusReplyT> status;
    std::optional<fbs::ProcessesReplyT> processes;
    std::string error;
};

using Looks = std::vector<AgentLook>;

/// A line a node and below it one a process. What is not known, since nothing is recorded or there was no look before, is "-".
std::vector<std::vector<std::string>> top_rows(const Looks& now, const Looks& before);

/// An array, an object a node; what is not known is null.
nlohmann::json top_json(const Looks& now, const Looks& before);

/// "3 nodes, 1 silent, 9 processes".
std::string top_summary(const Looks& now);

/// As many lines of `text`, from the `first` on, as a screen has, none wider than it.
/// @param first  put back to where the last line is the screen's last
std::string fit_screen(const std::string& text, std::size_t lines, std::size_t columns,
                       std::size_t& first);

}  // namespace ringside::tools
