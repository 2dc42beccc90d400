// `ringside export`: the job as a file for others' viewers.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/ringside/command.hpp"
#include "tools/ringside/job_input.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/words.hpp"
#include "viewer_export/out/rank_files.hpp"
#include "viewer_export/out/trace.hpp"

namespace ringside::tools {

namespace {

using viewer_export::TraceCounts;

struct Options {
    JobInput input;
    std::string output;
    bool per_rank = false;
    bool gzip = false;
    bool cuda_sync = false;
    bool no_clock_correction = false;
    bool json = false;
};

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

using Write = decltype(&viewer_export::write_chrome);

/// The format that a file's name asks for; null: none.
Write format_of(const std::string& path) {
    if (ends_with(path, ".pftrace")) return &viewer_export::write_perfetto;
    return ends_with(path, ".json") || ends_with(path, ".json.gz") ? &viewer_export::write_chrome
                                                                   : nullptr;
}

nlohmann::json as_json(const std::string& path, const TraceCounts& counts) {
    return {
        {"path", path},
        {"bytes", counts.bytes},
        {"slices", counts.slices},
        {"ranges", counts.ranges},
        {"asyncs", counts.asyncs},
        {"rpc_halves", counts.rpc_halves},
        {"iterations", counts.iterations},
        {"gpu_calls", counts.gpu_calls},
        {"gpu_work", counts.gpu_work},
        {"gpu_annotations", counts.gpu_annotations},
        {"instants", counts.instants},
        {"counters", counts.counters},
        {"derived", counts.derived},
        {"rpc_requests", counts.rpc_requests},
        {"rpc_replies", counts.rpc_replies},
        {"fwdbwd", counts.fwdbwd},
        {"launches", counts.launches},
        {"collectives", counts.collectives},
        {"left_out", counts.left_out},
        {"lost", counts.lost},
    };
}

std::string as_text(const std::string& path, const TraceCounts& counts) {
    std::string text = path + ": " + grouped(counts.slices) + " slices, ";
    if (counts.gpu_work > 0) text += grouped(counts.gpu_work) + " of them a GPU's, ";
    return text + grouped(counts.rpc_requests) + " requests and " + grouped(counts.rpc_replies) +
           " replies as arrows, " + grouped(counts.lost) + " events lost, " +
           (counts.left_out > 0 ? grouped(counts.left_out) +
                                      " waits and CUDA events left out (--cuda-sync has them), "
                                : std::string()) +
           bytes_text(counts.bytes);
}

/// What to write: files, and which processes each shows.
Result<std::vector<viewer_export::RankFile>> files_of(const viewer_export::model::Job& job,
                                                      const Options& options) {
    if (!options.per_rank) return std::vector<viewer_export::RankFile>{{options.output, {}}};
    auto files = viewer_export::rank_files(job);
    std::error_code code;
    std::filesystem::create_directories(options.output, code);
    if (code) {
        return Error{ErrorCode::kInput, "make the directory " + options.output + ": " +
                                            code.message() + "; name one that you may write to"};
    }
    for (viewer_export::RankFile& file : files)
        file.name = options.output + "/" + file.name + (options.gzip ? ".gz" : "");
    return files;
}

Result<void> check(const Options& options) {
    if (options.per_rank) return {};
    if (options.cuda_sync) {
        return Error{ErrorCode::kUsage,
                     "--cuda-sync is for --per-rank: one file for all has waits and CUDA events "
                     "always; leave it out"};
    }
    if (options.gzip) {
        return Error{ErrorCode::kUsage,
                     "--gzip is for --per-rank: name a file that ends in .json.gz instead of " +
                         options.output};
    }
    if (format_of(options.output) == nullptr) {
        return Error{ErrorCode::kUsage,
                     "export to " + options.output +
                         ": no format is known by that name; end it in .json or .json.gz (Chrome's "
                         "format in Kineto's layout) or .pftrace (Perfetto's)"};
    }
    return check_target(options.output);
}

int run_export(Options options) {
    if (const auto good = check(options); !good) return fail(good.error());
    options.input.corrected = !options.no_clock_correction;
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input(options.input, *progress);
    if (!job) return fail(job.error());
    const auto files = files_of(*job, options);
    if (!files) return fail(files.error());
    nlohmann::json told = nlohmann::json::array();
    std::string text;
    for (const viewer_export::RankFile& file : *files) {
        const Write write = options.per_rank ? &viewer_export::write_chrome : format_of(file.name);
        const auto counts = write(*job, file.name,
                                  {.trace_name = {},
                                   .tell = shown_by(*progress),
                                   .processes = file.processes,
                                   .cuda_sync = options.cuda_sync || !options.per_rank});
        if (!counts) return fail(counts.error());
        told.push_back(as_json(file.name, *counts));
        text += as_text(file.name, *counts) +
                (options.per_rank ? "\n"
                                  : "; open it in https://ui.perfetto.dev or chrome://tracing\n");
    }
    progress.reset();
    if (options.per_rank && files->empty()) text = "nothing was recorded: no file\n";
    const nlohmann::json whole = options.per_rank ? nlohmann::json{{"files", told}} : told.at(0);
    const auto printed = print(options.json ? json_text(whole) : text);
    return printed ? damage_status(*job) : fail(printed.error());
}

}  // namespace

Action setup_export(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    verb.add_option("input", options->input.paths, "a directory with dumps, or .rsd and .rsj files")
        ->required()
        ->type_name("DIR|FILE...");
    verb.add_option("-o,--output", options->output,
                    "the file to write, its format by its end: .json, .json.gz, .pftrace")
        ->required()
        ->type_name("FILE|DIR");
    verb.add_flag("--per-rank", options->per_rank,
                  "one file a rank into the directory that -o names, as TensorBoard and "
                  "HolisticTraceAnalysis want them: <host>_<pid>.<n>.pt.trace.json");
    verb.add_flag("--gzip", options->gzip, "with --per-rank: .pt.trace.json.gz");
    verb.add_flag(
        "--cuda-sync", options->cuda_sync,
        "with --per-rank: waits and CUDA events, too, as torch.profiler with "
        "enable_cuda_sync_events; HolisticTraceAnalysis wants them for its critical path, "
        "and takes waits for a stream for work elsewhere. One file for all has them "
        "always");
    verb.add_flag("--no-clock-correction", options->no_clock_correction,
                  "each node by its own clock");
    verb.add_flag("--json", options->json, "tell what was written as one JSON object");
    verb.footer(
        "Examples:\n"
        "  ringside export ringside-default-4711 -o trace.pftrace\n"
        "  ringside export ringside-default-4711 --per-rank -o logdir    then: tensorboard "
        "--logdir logdir\n"
        "Exit status: 0 good, 2 usage, 6 input missing, unreadable or damaged (what is whole is "
        "exported)");
    return [options] { return run_export(*options); };
}

}  // namespace ringside::tools
