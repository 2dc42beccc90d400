// `ringside ranges`: ranges as the GPU ran them, which nsys calls projected.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"
#include "viewer_export/out/ranges_view.hpp"

namespace ringside::tools {

namespace {

struct Options {
    JobInput input;
    viewer_export::RangesOptions ranges;
    bool no_clock_correction = false;
    bool json = false;
};

int run_ranges(Options options) {
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) return fail(job.error());
    options.ranges.tell = shown_by(*progress);
    const auto text = options.json ? viewer_export::ranges_json(*job, options.ranges)
                                   : viewer_export::render_ranges(*job, options.ranges);
    if (!text) return fail(text.error());
    progress.reset();
    const auto printed = print(*text);
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_ranges(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    std::string keys;
    for (const std::string_view key : viewer_export::ranges_sort_keys())
        keys += (keys.empty() ? "" : ", ") + std::string(key);
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("--sort-by", options->ranges.sort_by,
                    "one of " + keys + "; default: gpu_time_total")
        ->type_name("KEY");
    verb.add_option("--row-limit", options->ranges.row_limit,
                    "rows at most, 0 for all; default 100")
        ->type_name("N");
    verb.add_flag("--full-names", options->ranges.full_names, "don't cut names to 55 characters");
    verb.add_flag("--annotations", options->ranges.annotations,
                  "users' ranges alone, without frameworks' operators");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json, "one JSON object: the rows, times in us");
    verb.footer(
        "A range's GPU time reaches from the begin of the first kernel, copy or memset that it "
        "launched on a stream to the end of the last\n"
        "(nsys: NVTX GPU Projection Summary). What its inner ranges launched counts; what other "
        "threads did meanwhile does not.\n"
        "Examples:\n"
        "  ringside ranges ringside-default-4711\n"
        "  ringside ranges --annotations --sort-by gpu_time_max DIR\n"
        "Exit status: 0 good, 2 usage, 6 input missing, unreadable or damaged (what is whole is "
        "added up)");
    return [options] { return run_ranges(*options); };
}

}  // namespace ringside::tools
