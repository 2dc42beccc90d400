#include "tools/ringside/iteration_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>

#include "tools/ringside/command.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

using schema::Error;
using schema::ErrorCode;

namespace {

Result<std::uint32_t> parse_count(const std::string& text, const char* option) {
    std::uint32_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, count);
    if (error != std::errc() || rest != end || count == 0 || count > agent::kMostIterations) {
        return Error{ErrorCode::kUsage, std::string(option) + ": '" + text +
                                            "' is no such number; write one from 1 to " +
                                            std::to_string(agent::kMostIterations)};
    }
    return count;
}

}  // namespace

CLI::Option* add_iteration_options(CLI::App& verb, IterationOptions& options) {
    CLI::Option* const count =
        verb.add_option("--iterations", options.count,
                        "capture so many iterations of each process, no more and no fewer, instead "
                        "of a time: between optimizer steps, or API iterations")
            ->type_name("N");
    verb.add_option("--iterations-of", options.of,
                    "boundaries of this name, or ranges of this name (NVTX, API, torch); default "
                    "the boundary that each process has first")
        ->type_name("NAME")
        ->needs(count);
    verb.add_option(
            "--start-iteration-roundup", options.roundup,
            "begin at a boundary whose number is a multiple of this; each process counts its "
            "own, while it is traced; default 1")
        ->type_name("R")
        ->needs(count);
    verb.add_option("--timeout", options.timeout,
                    "end after this at the latest, whoever misses iterations then; default 60s")
        ->type_name("TIME")
        ->needs(count);
    return count;
}

Result<void> put_iterations(const IterationOptions& options, fbs::TraceRequestT& request) {
    if (!options.given()) {
        return {};
    }
    const auto count = parse_count(options.count, "--iterations");
    if (!count) {
        return count.error();
    }
    request.iterations = *count;
    request.iterations_of = options.of;
    if (!options.roundup.empty()) {
        const auto roundup = parse_count(options.roundup, "--start-iteration-roundup");
        if (!roundup) {
            return roundup.error();
        }
        request.start_roundup = *roundup;
    }
    if (!options.timeout.empty()) {
        const auto timeout = parse_duration_ms(options.timeout, "--timeout");
        if (!timeout) {
            return timeout.error();
        }
        request.timeout_ms = *timeout;
    }
    return {};
}

Result<void> check_leader(const fbs::TraceRequestT& request, agent::Client& leader) {
    if (request.iterations == 0 && request.ranks.empty() && request.executables.empty() &&
        request.limit == 0 && request.start_time_ns == 0) {
        return {};
    }
    const auto status = leader.ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
    if (!status) {
        return status.error();
    }
    if (status->counts_iterations) {
        return {};
    }
    return Error{ErrorCode::kRefused,
                 "trace by --iterations, --rank, --exe, --limit or --start-time: the agent at " +
                     leader.endpoint() + " (version " + status->version +
                     ") is older and would pass over it; install the same version there, or ask by "
                     "--duration and --pid"};
}

bool lacks_all_iterations(const IterationOptions& options, const fbs::TraceReplyT& reply) {
    const bool some =
        std::any_of(reply.verdicts.begin(), reply.verdicts.end(), [](const auto& process) {
            return process->iterations != nullptr && process->iterations->count != 0;
        });
    if (!options.given() || some) {
        return false;
    }
    say("no process had an iteration" + (options.of.empty() ? "" : " of " + options.of) +
        "; is there an optimizer, an NVTX range or API iteration? name one with --iterations-of, "
        "or give more --timeout");
    return true;
}

bool has_its_iterations(const fbs::ProcessVerdictT& process) {
    return process.iterations == nullptr || process.iterations->beside ||
           process.iterations->count >= process.iterations->asked;
}

std::string iterations_text(const fbs::ProcessVerdictT& process) {
    if (process.iterations == nullptr) {
        return "";
    }
    const fbs::IterationsT& had = *process.iterations;
    if (had.name.empty()) {
        return had.beside ? "none of its own iterations" : "no iterations";
    }
    return grouped(had.count) + (had.count == 1 ? " iteration of " : " iterations of ") +
           one_line(had.name) + " from boundary " + grouped(had.first);
}

}  // namespace ringside::tools
