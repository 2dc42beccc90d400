#include "tools/ringside/bring_together.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/control/endpoint.hpp"
#include "schema/frame.hpp"
#include "schema/units.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/dump_names.hpp"
#include "tools/ringside/fetched_file.hpp"
#include "tools/ringside/movable.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/whole_file.hpp"

namespace ringside::tools {

namespace {

/// Behind the name of a dump that its agent could not write to its end.
constexpr const char* kPartial = ".partial";

/// A file where an agent wrote it.
struct Source {
    std::string endpoint;
    std::string path;
};

/// In single quotes where a shell would take it apart.
std::string shell_word(const std::string& word) {
    const std::string plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+-@";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
        return word;
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return quoted + "'";
}

class Bringer {
public:
    Bringer(const OutputDir& output, const BringOptions& options)
        : output_(output), options_(options) {}

    bool all_whole() const { return whole_; }

    /// @param path    the reply's; then where it is
    /// @param origin  what it must be of
    Result<void> bring(std::string& path, const std::string& endpoint, const Origin& origin,
                       const std::string& name) {
        const Source source{endpoint, std::exchange(path, "")};
        if (source.path.empty()) {
            return {};
        }
        if (const auto free = output_.check_free(name); !free) {
            return free.error();
        }
        const bool here = !options_.fetch && is_here(source, origin);
        if (!here && source.path.ends_with(kPartial)) {
            say("the dump of " + source.endpoint + " is not whole, and agents give whole ones: " +
                source.path + " on its host has what it could write; copy it by hand");
            whole_ = false;
            return {};
        }
        const auto taken = here ? output_.take(source.path, false, name) : fetch(source, name);
        if (!taken && here) {
            return taken.error();
        }
        if (!taken) {
            say(taken.error().message + "; it is missing here. To go on with it: " +
                fetch_command(options_.choice, source.endpoint, source.path, output_.shown(),
                              name));
            whole_ = false;
            return {};
        }
        if (here) {
            // The capture's own folder in the agent's output: with its last file it goes, too.
            ::rmdir(std::filesystem::path(source.path).parent_path().c_str());
        }
        progress_.tell("checking the dumps");
        if (const auto checked = check_whole(*taken); !checked) {
            say(checked.error().message);
            whole_ = false;
            return {};
        }
        path = *taken;
        return {};
    }

private:
    /// Whether the file of that path here is the one that is meant, and is ours to move. Whatever is not proven is fetched: two hosts may have
    /// files of one path, and an agent that means ill may name any.
    bool is_here(const Source& source, const Origin& origin) const {
        const auto ours = check_movable(source.path, origin);
        if (!ours || !agent::is_tcp(source.endpoint)) {
            return static_cast<bool>(ours);
        }
        const auto client = options_.agents.connect(source.endpoint);
        fbs::FetchRequestT facts;
        facts.path = source.path;
        facts.most = 0;
        const auto there = client ? (*client)->ask<fbs::FetchReplyT>(facts)
                                  : Result<fbs::FetchReplyT>(client.error());
        // It has gone with its node (a job's time limit), or another has its place, which knows nothing of the trace: that the file says it is this trace's of
        // that node is proof enough.
        if (!there) {
            return origin.capture_id.has_value();
        }
        return !there->busy && there->inode == ours->st_ino &&
               there->size == static_cast<std::uint64_t>(ours->st_size) &&
               there->changed_ns ==
                   ours->st_mtim.tv_sec * schema::kNsPerSecond + ours->st_mtim.tv_nsec;
    }

    Result<std::string> fetch(const Source& source, const std::string& name) {
        if (!options_.go_on()) {
            return Error{ErrorCode::kRefused, "fetch " + source.path + ": given up"};
        }
        const auto& key = options_.agents.key;
        return fetch_into(output_, {source.endpoint, key ? &*key : nullptr, source.path}, name,
                          progress_, options_.go_on);
    }

    const OutputDir& output_;
    const BringOptions& options_;
    Progress progress_{"gathering the dumps"};
    bool whole_ = true;
};

/// By the user's word, else by the leader's.
std::string job_of(const BringOptions& options) {
    if (!options.choice.job.empty() || options.name_pattern.find("%j") == std::string::npos) {
        return options.choice.job;
    }
    auto client = options.agents.connect(options.agents.endpoints.front());
    const auto status = client ? (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{})
                               : Result<fbs::StatusReplyT>(client.error());
    return status ? status->job : agent::default_job();
}

NameFacts facts_of(const fbs::TraceReplyT& reply, std::size_t node, const std::string& job) {
    NameFacts facts{reply.nodes[node]->host, reply.nodes[node]->name, job, {}, {}};
    for (const auto& process : reply.verdicts) {
        if (process->node == node && process->events > 0) {
            facts.ranks.push_back(process->rank);
            facts.pids.push_back(process->pid);
        }
    }
    return facts;
}

}  // namespace

std::string fetch_command(const AgentChoice& choice, const std::string& endpoint,
                          const std::string& path, const std::string& directory,
                          const std::string& name) {
    std::string command = "ringside fetch";
    if (!choice.job.empty()) {
        command += " --job " + shell_word(choice.job);
    }
    if (!choice.key_file.empty()) {
        command += " --key " + shell_word(choice.key_file);
    }
    command += " --hosts " + shell_word(endpoint) + " " + shell_word(path) + " -o " +
               shell_word(directory);
    if (name != std::filesystem::path(path).filename()) {
        command += " --as " + shell_word(name);
    }
    return command;
}

Result<bool> bring_together(fbs::TraceReplyT& reply, const OutputDir& output,
                            const BringOptions& options) {
    const std::vector<std::string>& asked = options.agents.endpoints;
    const std::string job = job_of(options);
    const std::optional<std::uint64_t> capture = reply.capture_id;
    std::set<std::string> names;
    Bringer bringer(output, options);
    for (std::size_t n = 0; n < reply.nodes.size(); ++n) {
        fbs::TraceNodeT& node = *reply.nodes[n];
        if (node.path.empty()) {
            continue;
        }
        auto name = dump_name(options.name_pattern, facts_of(reply, n, job));
        if (name && !names.insert(*name).second) {
            // Nodes have names of their own.
            name = dump_name(options.name_pattern + "-%n", facts_of(reply, n, job));
            names.insert(name ? *name : "");
        }
        if (!name) {
            return name.error();
        }
        if (node.path.ends_with(kPartial)) {
            *name += kPartial;
        }
        // The leader calls itself by what its own host calls it.
        const bool peer = std::find(asked.begin(), asked.end(), node.endpoint) != asked.end();
        if (const auto brought =
                bringer.bring(node.path, peer ? node.endpoint : asked.front(),
                              {options.captures_differ ? std::nullopt : capture, node.name}, *name);
            !brought) {
            return brought.error();
        }
    }
    if (const auto brought =
            bringer.bring(reply.job_index, asked.front(), {capture, ""}, schema::kJobFileName);
        !brought) {
        return brought.error();
    }
    return bringer.all_whole();
}

}  // namespace ringside::tools
