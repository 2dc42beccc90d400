// `ringside fetch`: brings dumps and job indexes from an agent's host; goes on with what an interrupted `trace` or `fetch` has left.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/ringside/agents.hpp"
#include "tools/ringside/bring_together.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/fetched_file.hpp"
#include "tools/ringside/output_dir.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/whole_file.hpp"

namespace ringside::tools {

namespace {

struct FetchOptions {
    AgentChoice agents;
    std::vector<std::string> paths;
    std::string output = ".";
    std::string as;
    bool force = false;
};

Result<Agents> one_agent(const FetchOptions& options) {
    auto agents = agents_of(options.agents);
    if (agents && agents->endpoints.size() != 1) {
        return Error{ErrorCode::kUsage,
                     "fetch: " + std::to_string(agents->endpoints.size()) +
                         " agents, and a file is on one host; name its agent with --hosts"};
    }
    if (agents) {
        // It waits long for one that falls silent, and not for one that has never been there.
        const auto client = agents->connect(agents->endpoints.front());
        if (!client) {
            return client.error();
        }
    }
    return agents;
}

int run_fetch(const FetchOptions& options) {
    if (!options.as.empty() &&
        (options.paths.size() != 1 || std::filesystem::path(options.as).filename() != options.as)) {
        return fail({ErrorCode::kUsage,
                     "fetch: --as names one file in the directory of -o, without a '/'"});
    }
    const auto agents = one_agent(options);
    if (!agents) {
        return fail(agents.error());
    }
    const auto output =
        OutputDir::open(options.output, ".",
                        options.force ? OutputDir::Found::kOverwrite : OutputDir::Found::kAddTo);
    if (!output) {
        return fail(output.error());
    }
    SignalGuard signals;
    int signal = 0;
    const std::function<bool()> go_on = [&] {
        while (const auto taken = signals.take()) {
            signal = taken->number == SIGCHLD ? signal : taken->number;
        }
        return signal == 0;
    };
    const std::string& endpoint = agents->endpoints.front();
    const agent::Key* const key = agents->key ? &*agents->key : nullptr;
    int status = kExitGood;
    Progress progress("fetching");
    for (const std::string& path : options.paths) {
        const std::string name =
            options.as.empty() ? std::filesystem::path(path).filename().string() : options.as;
        const auto fetched = fetch_into(*output, {endpoint, key, path}, name, progress, go_on);
        const auto whole = fetched ? check_whole(*fetched) : Result<void>(fetched.error());
        if (whole) {
            if (const auto printed = print(*fetched + "\n"); !printed) {
                return fail(printed.error());
            }
            continue;
        }
        status = fail(whole.error());
        if (signal != 0 || whole.error().code == ErrorCode::kNoAgent) {
            say("to go on: " +
                fetch_command(options.agents, endpoint, path, output->shown(), name));
        }
        if (signal != 0) {
            return kExitSignal + signal;
        }
    }
    return status;
}

}  // namespace

Action setup_fetch(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<FetchOptions>();
    add_agent_options(verb, options->agents);
    verb.add_option("PATH", options->paths,
                    "dumps (.rsd) and job indexes (.rsj), as `ringside trace` or the agent's log "
                    "names them, or relative to the agent's output root")
        ->required();
    verb.add_option("-o,--output", options->output, "where they go; default here")
        ->type_name("DIR");
    verb.add_option("--as", options->as, "what the file is called there")->type_name("NAME");
    verb.add_flag("--force", options->force, "write over files of the same name");
    verb.footer(
        "`ringside trace` fetches by itself what lies on hosts whose disks it can't see; this goes "
        "on where it could not.\n"
        "A file bears .partial until it is whole; what is there of it already is compared with the "
        "agent's and kept.\n"
        "A lost connection is made again, for a minute. The agent keeps its file.\n"
        "Examples:\n"
        "  ringside fetch --hosts node7:7411 /var/tmp/ringside-1000/trace-1f3a/node7.rsd -o DIR\n"
        "  ringside fetch --job 4242 --hosts node7:7411 trace-1f3a/node7.rsd trace-1f3a/job.rsj\n"
        "Exit status: 0 all are here and whole, 2 usage, 3 no such file there, 4 no agent there, "
        "or "
        "none any more, 5 refused, 6 damaged, 130 given up by Ctrl-C");
    return [options] { return run_fetch(*options); };
}

}  // namespace ringside::tools
