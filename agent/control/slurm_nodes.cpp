#include "agent/control/slurm_nodes.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

namespace ringside::agent {

namespace {

/// What goes into a shell's command line as it is.
bool has_only(std::string_view text, std::string_view more) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= '0' && c <= '9') || more.find(c) != std::string_view::npos ||
               (more.find('a') != std::string_view::npos &&
                ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')));
    });
}

/// @return the lines that a command prints; what it says of errors is dropped. A controller that is silent is not waited for; KILL, for we may have all other
/// signals blocked.
std::vector<std::string> lines_of(const std::string& command) {
    const std::string whole =
        "timeout --foreground -s KILL 5 " + command + " 2>/dev/null </dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(whole.c_str(), "re"),
                                                               &::pclose);
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

/// "n[1-3],n7" -> n1, n2, n3, n7.
std::vector<std::string> names_in(const std::string& list) {
    return list.find_first_of("[,") == std::string::npos
               ? std::vector<std::string>{list}
               : lines_of("scontrol show hostnames '" + list + "'");
}

/// By name; of those that Slurm knows.
std::map<std::string, std::string> addresses_of(const std::set<std::string>& names) {
    std::string list;
    for (const std::string& name : names) {
        list += (list.empty() ? "" : ",") + name;
    }
    std::map<std::string, std::string> addresses;
    for (const std::string& node : lines_of("scontrol show node -o '" + list + "'")) {
        addresses[value_of(node, "NodeName")] = value_of(node, "NodeAddr");
    }
    return addresses;
}

}  // namespace

std::vector<SlurmNode> slurm_nodes(const std::string& job) {
    if (!has_only(job, "_+")) {
        return {};
    }
    // Asked for a component, squeue names them all.
    const bool of_one = job.find_first_of("_+") != std::string::npos;
    std::vector<SlurmNode> nodes;
    std::set<std::string> names;
    for (const std::string& line :
         lines_of("squeue -h -t RUNNING -o '%i %A %N' -j '" + job + "'")) {
        std::string member, id, list;
        std::istringstream(line) >> member >> id >> list;
        if (!has_only(list, "a[],-._") || (of_one && member != job)) {
            continue;
        }
        for (const std::string& name : names_in(list)) {
            names.insert(name);
            nodes.push_back({member, id, name, ""});
        }
    }
    // All at once: an array has as many lines as it has tasks.
    const auto addresses =
        names.empty() ? std::map<std::string, std::string>() : addresses_of(names);
    std::erase_if(nodes, [&](const SlurmNode& node) { return !addresses.contains(node.name); });
    for (SlurmNode& node : nodes) {
        const std::string& address = addresses.at(node.name);
        node.address = address.empty() ? node.name : address;
    }
    return nodes;
}

}  // namespace ringside::agent
