// `ringside steps`: what each GPU did in each iteration: computing, communicating, copying, nothing.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"
#include "viewer_export/out/steps_view.hpp"

namespace ringside::tools {

namespace {

struct Options {
    JobInput input;
    viewer_export::StepsOptions steps;
    bool no_clock_correction = false;
    bool json = false;
};

int run_steps(Options options) {
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) return fail(job.error());
    options.steps.tell = shown_by(*progress);
    const std::string text = options.json ? viewer_export::steps_json(*job, options.steps)
                                          : viewer_export::render_steps(*job, options.steps);
    progress.reset();
    const auto printed = print(text);
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_steps(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("--row-limit", options->steps.row_limit,
                    "rows of iterations at most, 0 for all; default 100")
        ->type_name("N");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json,
                  "one JSON object: devices, their iterations, who is slowest");
    verb.footer(
        "Compute: some kernel runs that is no communication's (nccl...Kernel). Exposed: "
        "communication beside no computation. Copies: copies\n"
        "and memsets beside neither. Compute + exposed + copies + idle = the iteration, or, in the "
        "rows \"trace\", the time from the first\n"
        "work to the last: HolisticTraceAnalysis' temporal breakdown. Work that crosses a boundary "
        "is cut there.\n"
        "Examples:\n"
        "  ringside steps ringside-default-4711\n"
        "  ringside steps --row-limit 0 --json DIR\n"
        "Exit status: 0 good, 2 usage, 6 input missing, unreadable or damaged (what is whole is "
        "added up)");
    return [options] { return run_steps(*options); };
}

}  // namespace ringside::tools
