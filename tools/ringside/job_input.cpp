// Loads, joins where needed, tells what is damaged.
#include "tools/ringside/job_input.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/ringside/command.hpp"
#include "tools/ringside/offline_join.hpp"
#include "viewer_export/load/job_loader.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;
using viewer_export::load_job;
using viewer_export::LoadRequest;
using viewer_export::model::Job;

namespace {

/// Whether the join has anything to do: halves, and dumps to take them from.
bool needs_join(const Job& job) {
    return !job.has_index && !job.halves.empty();
}

}  // namespace

Result<Job> load_input(const JobInput& input, Progress& progress) {
    LoadRequest request;
    request.corrected = input.corrected;
    for (const std::string& path : input.paths) {
        std::error_code error;
        if (!fs::exists(path, error)) {
            return Error{
                ErrorCode::kInput,
                "read " + path + ": " + (error ? error.message() : "no such file or directory") +
                    "; name the directory that `ringside trace` or `ringside run` printed"};
        }
        request.inputs.emplace_back(path);
    }
    request.tell = shown_by(progress);
    auto job = load_job(request);
    if (!job) {
        return job;
    }
    for (const auto& damage : job->damage) {
        say(damage.text);
    }
    if (!needs_join(*job)) {
        return job;
    }
    progress.tell("joining the nodes' calls");
    const auto dumps = viewer_export::dumps_among(request.inputs);
    if (!dumps) {
        return dumps.error();
    }
    agent::IndexWriter writer;
    if (const auto joined = join_offline(*dumps, input.corrected, writer); !joined) {
        return joined.error();
    }
    say("no job index beside the dumps: joined offline, clocks from the calls themselves");
    const std::vector<std::uint8_t> index = writer.take_bytes();
    request.index = index;
    return load_job(request);
}

viewer_export::model::Tell shown_by(Progress& progress) {
    return [&progress](const char* what, std::uint64_t done, std::uint64_t total) {
        progress.tell(what, done, total);
    };
}

int damage_status(const Job& job) {
    return job.damage.empty() ? kExitGood : static_cast<int>(ErrorCode::kInput);
}

}  // namespace ringside::tools
