// `ringside recover`: ends what agents that died have left, of one job directory or of all.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "agent/control/endpoint.hpp"
#include "agent/control/recovery.hpp"
#include "schema/control_page.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/index_beside.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/output_dir.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;

namespace {

struct RecoverOptions {
    std::string root;
    std::string job;
    std::string output;
    bool all = false;
    bool json = false;
};

/// One directory's outcome, its files where the user finds them.
struct Outcome {
    agent::Recovery recovery;
    std::string dump;
    std::string index;
    bool directory_gone = false;
};

fbs::Verdict verdict_of(const agent::ProcessReport& process) {
    return static_cast<fbs::Verdict>(process.verdict);
}

/// Job directories beneath the root: those that an agent or a shim has made.
std::vector<std::string> jobs_beneath(const std::string& root) {
    std::vector<std::string> jobs;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        if (fs::is_directory(entry.symlink_status()) &&
            fs::exists(entry.path() / schema::kControlFileName, error)) {
            jobs.push_back(entry.path().filename().string());
        }
    }
    std::sort(jobs.begin(), jobs.end());
    return jobs;
}

/// The directory of a `ringside run` is its own: where that has gone and nobody of its job lives, nobody comes for it any more.
bool remove_run_directory(const agent::Recovery& recovery) {
    constexpr std::string_view kPrefix = "run-";
    const std::string& job = recovery.job;
    if (recovery.living != 0 || job.rfind(kPrefix, 0) != 0) {
        return false;
    }
    int pid = 0;
    const auto [end, bad] =
        std::from_chars(job.data() + kPrefix.size(), job.data() + job.size(), pid);
    if (bad != std::errc() || end != job.data() + job.size() || pid <= 0 || ::kill(pid, 0) == 0 ||
        errno != ESRCH) {
        return false;
    }
    std::error_code error;
    fs::remove_all(recovery.directory, error);  // does not follow links
    return !error;
}

/// Brings dump and index where they belong.
Result<void> place(const RecoverOptions& options, Outcome& outcome) {
    const std::string& dump = outcome.recovery.dump;
    const auto index = index_beside(dump);
    if (!index) {
        return index.error();
    }
    outcome.dump = dump;
    outcome.index = *index;
    if (options.output.empty()) {
        return {};
    }
    const std::string where =
        options.all ? options.output + "/" + outcome.recovery.job : options.output;
    const auto output = OutputDir::open(where, "");
    if (!output) {
        return output.error();
    }
    for (std::string* path : {&outcome.dump, &outcome.index}) {
        const auto taken = output->take(*path, true);
        if (!taken) {
            return taken.error();
        }
        *path = *taken;
    }
    return {};
}

int status_of_outcome(const Outcome& outcome) {
    const auto& capture = outcome.recovery.capture;
    if (!capture) {
        return kExitGood;
    }
    const bool good =
        capture->complete && capture->lost == 0 &&
        std::all_of(capture->processes.begin(), capture->processes.end(), [](const auto& process) {
            return is_good(verdict_of(process), process.reason);
        });
    return good ? kExitGood : kExitNotAllGood;
}

std::string as_text(const Outcome& outcome) {
    const agent::Recovery& recovery = outcome.recovery;
    std::string text = "job " + recovery.job + ": ";
    if (recovery.capture) {
        text += grouped(recovery.capture->records) + " records, " +
                grouped(recovery.capture->lost) + " lost, " + bytes_text(recovery.capture->bytes);
    } else {
        text += recovery.found.empty() ? "no capture, no records" : "found " + recovery.found;
        if (!outcome.dump.empty()) text += " (" + outcome.dump + ", " + outcome.index + ")";
    }
    text += "; " + grouped(recovery.removed) + (recovery.removed == 1 ? " segment" : " segments") +
            " of dead processes removed, " + grouped(recovery.living) +
            (recovery.living == 1 ? " process lives" : " processes live") +
            (outcome.directory_gone ? "; its directory is removed" : "") + "\n";
    if (!recovery.capture) {
        return text;
    }
    for (const agent::ProcessReport& process : recovery.capture->processes) {
        text += "  pid " + std::to_string(process.pid) +
                (process.rank < 0 ? "" : " rank " + std::to_string(process.rank)) + ": " +
                verdict_word(verdict_of(process)) +
                (process.reason.empty() ? "" : " (" + process.reason + ")") + ", " +
                grouped(process.events) + " events, " + grouped(process.lost) +
                " lost: " + one_line(process.executable) + "\n";
    }
    return text + outcome.dump + "\n" + outcome.index + "\n";
}

nlohmann::json as_json(const Outcome& outcome) {
    const agent::Recovery& recovery = outcome.recovery;
    nlohmann::json json = {{"job", recovery.job},
                           {"directory", recovery.directory},
                           {"found", recovery.found},
                           {"removed_segments", recovery.removed},
                           {"living", recovery.living},
                           {"directory_removed", outcome.directory_gone},
                           {"dump", outcome.dump},
                           {"index", outcome.index},
                           {"processes", nlohmann::json::array()}};
    if (!recovery.capture) {
        return json;
    }
    json["records"] = recovery.capture->records;
    json["lost"] = recovery.capture->lost;
    json["complete"] = recovery.capture->complete;
    json["error"] = recovery.capture->error;
    for (const agent::ProcessReport& process : recovery.capture->processes) {
        json["processes"].push_back({{"pid", process.pid},
                                     {"rank", process.rank},
                                     {"verdict", verdict_word(verdict_of(process))},
                                     {"reason", process.reason},
                                     {"events", process.events},
                                     {"lost", process.lost},
                                     {"executable", process.executable}});
    }
    return json;
}

Result<Outcome> recover_one(const RecoverOptions& options, const std::string& job) {
    const Progress progress("ending what has died in job " + job);
    auto recovery = agent::recover_directory(options.root, job, agent::default_output_root());
    if (!recovery) {
        return recovery.error();
    }
    Outcome outcome;
    outcome.recovery = std::move(*recovery);
    if (!outcome.recovery.dump.empty()) {
        if (const auto placed = place(options, outcome); !placed) {
            return placed.error();
        }
    }
    outcome.directory_gone = remove_run_directory(outcome.recovery);
    return outcome;
}

int run_recover(RecoverOptions options) {
    if (options.all && !options.job.empty()) {
        return fail({ErrorCode::kUsage, "recover: --job and --all say different things"});
    }
    if (options.root.empty()) options.root = agent::default_root();
    if (options.job.empty()) options.job = agent::default_job();
    const std::vector<std::string> jobs =
        options.all ? jobs_beneath(options.root) : std::vector<std::string>{options.job};
    std::error_code error;
    if (jobs.empty() || !fs::exists(options.root + "/" + jobs[0], error)) {
        return fail({ErrorCode::kNothingMatched,
                     "recover: no job directory " + (options.all ? "in " : options.job + " in ") +
                         options.root + "; give another --dir" + (options.all ? "" : " or --job")});
    }
    int status = kExitGood;
    bool anything = false;
    nlohmann::json list = nlohmann::json::array();
    std::string text;
    for (const std::string& job : jobs) {
        const auto outcome = recover_one(options, job);
        if (!outcome) {
            // With --all a living agent's directory is none of ours.
            const bool skipped = options.all && outcome.error().code == ErrorCode::kRefused;
            const int code = fail(outcome.error());
            if (!skipped && status <= kExitNotAllGood) status = code;
            continue;
        }
        anything |= outcome->recovery.capture.has_value() || outcome->recovery.removed != 0 ||
                    !outcome->recovery.found.empty() || outcome->directory_gone;
        if (status == kExitGood) status = status_of_outcome(*outcome);
        list.push_back(as_json(*outcome));
        text += as_text(*outcome);
    }
    if (const auto printed = print(options.json ? json_text(list) : text); !printed) {
        return fail(printed.error());
    }
    return status == kExitGood && !anything ? static_cast<int>(ErrorCode::kNothingMatched) : status;
}

}  // namespace

Action setup_recover(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<RecoverOptions>();
    verb.add_option("--dir", options->root,
                    "root of the job directories; default RINGSIDE_DIR, else "
                    "/dev/shm/ringside-<uid>")
        ->type_name("ROOT");
    verb.add_option("--job", options->job,
                    "job; default RINGSIDE_JOB, else SLURM_JOB_ID, else 'default'")
        ->type_name("JOB");
    verb.add_flag("--all", options->all, "every job beneath the root that no agent holds");
    verb.add_option("-o,--output", options->output,
                    "link or copy dump and index there; default: they stay where the dump was "
                    "begun")
        ->type_name("DIR");
    verb.add_flag("--json", options->json, "one JSON array, an object a job");
    verb.footer(
        "Examples:\n"
        "  ringside recover\n"
        "  ringside recover --all --json\n"
        "Exit status: 0 all verdicts good, 1 some not or records lost, 2 usage, 3 nothing to "
        "recover,\n"
        "5 refused: an agent lives there");
    return [options] { return run_recover(*options); };
}

}  // namespace ringside::tools
