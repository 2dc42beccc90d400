// `ringside rpc`: calls by edge, what each process served at once, the slowest requests, collectives; or one request with all that it caused, or one collective.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"
#include "viewer_export/out/collectives_view.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/waits_view.hpp"

namespace ringside::tools {

namespace {

struct Options {
    JobInput input;
    viewer_export::RpcOptions rpc;
    std::string request;
    std::string collective;
    bool no_clock_correction = false;
    bool json = false;
};

Result<std::string> text_of(const viewer_export::model::Job& job, const Options& options) {
    using namespace viewer_export;
    if (!options.collective.empty())
        return options.json ? collective_json(job, options.collective)
                            : render_collective(job, options.collective);
    if (!options.request.empty())
        return options.json ? request_json(job, options.request, options.rpc)
                            : render_request(job, options.request, options.rpc);
    return options.json ? rpc_json(job, options.rpc) : render_rpc(job, options.rpc);
}

std::string waits_text(const viewer_export::model::Job& job) {
    return viewer_export::render_waits(job, viewer_export::model::waits_of(job));
}

int run_rpc(Options options) {
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) return fail(job.error());
    options.rpc.tell = shown_by(*progress);
    const auto text = text_of(*job, options);
    if (!text) return fail(text.error());
    progress.reset();
    const bool alone = options.json || !options.request.empty();
    const auto printed = print(alone ? *text : *text + waits_text(*job));
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_rpc(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    std::string keys;
    for (const std::string_view key : viewer_export::rpc_sort_keys())
        keys += (keys.empty() ? "" : ", ") + std::string(key);
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("--sort-by", options->rpc.sort_by, "one of " + keys + "; default: total")
        ->type_name("KEY");
    verb.add_option("--row-limit", options->rpc.row_limit,
                    "edges at most, with --request rows under each call, 0 for all; default 100")
        ->type_name("N");
    verb.add_option("--slowest", options->rpc.slowest,
                    "the slowest requests as trees, 0 for none; default 3")
        ->type_name("N");
    verb.add_option("--request", options->request,
                    "what this request caused on every node: its trace id (the whole tree) or a "
                    "span id (that call), or how it begins")
        ->type_name("ID");
    verb.add_option("--collective", options->collective,
                    "when each member of this collective arrived, and who came last")
        ->type_name("GROUP:SEQ");
    verb.add_flag("--full-names", options->rpc.full_names, "don't cut names to 55 characters");
    verb.add_flag("--internal", options->rpc.internal, "show torch's own messages too");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json,
                  "one JSON object; times in us; with --request each event, too");
    verb.footer(
        "Total, p50, p95, p99 are at the caller; percentiles are of the nearest rank. Service: "
        "from when a thread of the callee took the request\n"
        "to its answer. Queued: from its arrival until then. Rest: at the caller less service. "
        "None of them compares two clocks; Request and Reply,\n"
        "one way, do, and are right within +-. Served at once: a character a sixtieth of the "
        "time, the most in it (. none, + more than 9).\n"
        "Messages (MPI) are edges between ranks; nobody answers them: at the caller is the call "
        "that sends, and Request ends where the receive was\n"
        "seen to complete.\n"
        "Examples:\n"
        "  ringside rpc ringside-default-4711\n"
        "  ringside rpc --sort-by rest_p95 --slowest 10 DIR\n"
        "  ringside rpc --request 5fe3ab DIR\n"
        "  ringside rpc --collective world:12 DIR\n"
        "Exit status: 0 good, 2 usage (an ID that several begin with, too), 3 no such request or "
        "collective, 6 input missing, unreadable or\n"
        "damaged (what is whole is shown)");
    return [options] { return run_rpc(*options); };
}

}  // namespace ringside::tools
