// `ringside table`: the job as torch prints its profile, RPCs and what they ran on other nodes included.
#include "viewer_export/out/table.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"

namespace ringside::tools {

namespace {

struct Options {
    JobInput input;
    viewer_export::TableOptions table;
    bool no_clock_correction = false;
    bool json = false;
};

std::string sort_keys() {
    std::string keys;
    for (const std::string_view key : viewer_export::table_sort_keys()) {
        keys += (keys.empty() ? "" : ", ") + std::string(key);
    }
    return keys;
}

int run_table(Options options) {
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) {
        return fail(job.error());
    }
    options.table.tell = shown_by(*progress);
    const auto text = options.json ? viewer_export::table_json(*job, options.table)
                                   : viewer_export::render_table(*job, options.table);
    if (!text) {
        return fail(text.error());
    }
    progress.reset();
    const auto printed = print(*text);
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_table(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("--sort-by", options->table.sort_by,
                    "one of " + sort_keys() +
                        " (torch's newer names too, with device for cuda); default: as they "
                        "first began")
        ->type_name("KEY");
    verb.add_option("--row-limit", options->table.row_limit, "rows at most, 0 for all; default 100")
        ->type_name("N");
    verb.add_flag("--full-names", options->table.full_names, "don't cut names to 55 characters");
    verb.add_flag("--internal", options->table.internal, "show torch's own messages too");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json,
                  "one JSON object: rows, totals, nodes; times in us, memory in bytes");
    verb.footer(
        "Examples:\n"
        "  ringside table ringside-default-4711\n"
        "  ringside table --sort-by cpu_time_total --row-limit 20 --full-names DIR\n"
        "  ringside table DIR/a.rsd DIR/b.rsd        (no index: joined on the spot)\n"
        "Exit status: 0 good, 2 usage, 6 input missing, unreadable or damaged (what is whole is "
        "printed)");
    return [options] { return run_table(*options); };
}

}  // namespace ringside::tools
