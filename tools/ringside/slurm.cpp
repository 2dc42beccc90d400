#include "tools/ringside/slurm.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

namespace ringside::tools {

namespace {

/// What goes into a shell's command line as it is.
bool has_only(std::string_view text, std::string_view more) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= '0' && c <= '9') || more.find(c) != std::string_view::npos ||
               (more.find('a') != std::string_view::npos &&
                ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')));
    });
}

/// @return the lines that a command prints; what it says of errors is dropped
std::vector<std::string> lines_of(const std::string& command) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
        ::popen((command + " 2>/dev/null </dev/null").c_str(), "re"), &::pclose);
    std::string text;
    std::array<char, 4096> part{};
    while (pipe) {
        const std::size_t size = std::fread(part.data(), 1, part.size(), pipe.get());
        if (size == 0) {
            break;
        }
        text.append(part.data(), size);
    }
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// The value of ` Key=` in a line of `scontrol -o`.
std::string value_of(const std::string& line, const std::string& key) {
    const std::string mark = key + "=";
    std::size_t at = line.find(mark);
    while (at != std::string::npos && at != 0 && line[at - 1] != ' ') {
        at = line.find(mark, at + 1);
    }
    if (at == std::string::npos) {
        return "";
    }
    at += mark.size();
    return line.substr(at, line.find(' ', at) - at);
}

}  // namespace

std::vector<SlurmNode> slurm_nodes(const std::string& job) {
    if (!has_only(job, "_+")) {
        return {};
    }
    std::vector<SlurmNode> nodes;
    for (const std::string& line : lines_of("squeue -h -t RUNNING -o '%i %N' -j '" + job + "'")) {
        const std::size_t space = line.find(' ');
        if (space == std::string::npos || !has_only(line.substr(space + 1), "a[],-._")) {
            continue;
        }
        // Asked for a component, squeue names them all.
        const bool of_one = job.find_first_of("_+") != std::string::npos;
        if (of_one && line.substr(0, space) != job) {
            continue;
        }
        const std::string list = line.substr(space + 1);
        for (const std::string& node : lines_of("scontrol show node -o '" + list + "'")) {
            const std::string name = value_of(node, "NodeName");
            const std::string address = value_of(node, "NodeAddr");
            if (!name.empty()) {
                nodes.push_back({line.substr(0, space), name, address.empty() ? name : address});
            }
        }
    }
    return nodes;
}

}  // namespace ringside::tools
