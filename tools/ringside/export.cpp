// `ringside export`: the job as a file for others' viewers.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/words.hpp"
#include "viewer_export/out/chrome.hpp"

namespace ringside::tools {

namespace {

struct Options {
    JobInput input;
    std::string output;
    bool no_clock_correction = false;
    bool json = false;
};

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string as_json(const std::string& path, const viewer_export::ChromeCounts& counts) {
    return json_text(nlohmann::json{
        {"path", path},
        {"bytes", counts.bytes},
        {"slices", counts.slices},
        {"ranges", counts.ranges},
        {"asyncs", counts.asyncs},
        {"rpc_halves", counts.rpc_halves},
        {"iterations", counts.iterations},
        {"instants", counts.instants},
        {"counters", counts.counters},
        {"rpc_requests", counts.rpc_requests},
        {"rpc_replies", counts.rpc_replies},
        {"fwdbwd", counts.fwdbwd},
        {"lost", counts.lost},
    });
}

std::string as_text(const std::string& path, const viewer_export::ChromeCounts& counts) {
    return path + ": " + grouped(counts.slices) + " slices, " + grouped(counts.rpc_requests) +
           " requests and " + grouped(counts.rpc_replies) + " replies as arrows, " +
           grouped(counts.lost) + " events lost, " + bytes_text(counts.bytes) +
           "; open it in https://ui.perfetto.dev or chrome://tracing\n";
}

int run_export(Options options) {
    if (!ends_with(options.output, ".json")) {
        return fail(
            {ErrorCode::kUsage, "export to " + options.output +
                                    ": this version writes .json (Chrome's format in Kineto's "
                                    "layout) only; name a file that ends in .json"});
    }
    if (const auto target = check_target(options.output); !target) {
        return fail(target.error());
    }
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) {
        return fail(job.error());
    }
    const auto counts =
        viewer_export::write_chrome(*job, options.output, {.tell = shown_by(*progress)});
    progress.reset();
    if (!counts) {
        return fail(counts.error());
    }
    const auto printed =
        print(options.json ? as_json(options.output, *counts) : as_text(options.output, *counts));
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_export(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("-o,--output", options->output, "the file to write; .json")
        ->required()
        ->type_name("FILE");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json, "tell what was written as one JSON object");
    verb.footer(
        "Examples:\n"
        "  ringside export ringside-default-4711 -o trace.json\n"
        "Exit status: 0 good, 2 usage, 6 input missing, unreadable or damaged (what is whole is "
        "exported)");
    return [options] { return run_export(*options); };
}

}  // namespace ringside::tools
