// `ringside run`: one command traced from its first to its last instruction, by an agent that nobody had to start.
//
//   agent up (capture on) -> command, preloaded -> its end -> captures ended, joined -> table -> the command's own status
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/control/client.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/recovery.hpp"
#include "schema/frame.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/index_beside.hpp"
#include "tools/ringside/job_input.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/output_dir.hpp"
#include "tools/ringside/own_agent.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/trace_report.hpp"
#include "tools/ringside/traceable.hpp"
#include "tools/ringside/traced_command.hpp"
#include "tools/ringside/words.hpp"
#include "viewer_export/out/table.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;

namespace {

constexpr int kOwnFailure = static_cast<int>(ErrorCode::kInternal);

struct Options {
    std::string output;
    std::string table;
    std::string node;
    std::string max_bytes;
    bool compress = false;
    bool json = false;
    bool record_shapes = false;
    bool profile_memory = false;
};

/// Our own failure is 125 here, whatever it was: the other codes are the command's.
int own_failure(const Error& error) {
    fail(error);
    return kOwnFailure;
}

/// The folder in which the agent writes while the command runs, so that nothing unfinished bears a final name. Gone with its owner
/// unless files that could not be brought to their place are in it.
class Workshop {
public:
    explicit Workshop(const OutputDir& output)
        : name_("unfinished-" + std::to_string(::getpid())),
          path_(output.absolute() + "/" + name_) {}
    ~Workshop() { ::rmdir(path_.c_str()); }
    Workshop(const Workshop&) = delete;
    Workshop& operator=(const Workshop&) = delete;

    const std::string& name() const { return name_; }
    /// The dump that an agent has ended there; empty: none.
    std::string dump() const {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(path_, error)) {
            if (entry.path().extension() == schema::kDumpExtension) return entry.path().string();
        }
        return "";
    }

private:
    std::string name_;
    std::string path_;
};

/// Starts the command, waits for it, hands it the signals that come.
/// @return its status as a shell tells it; 126 or 127 where it could not be started
int run_command(const ChildOptions& command, SignalGuard& signals) {
    int exec_errno = 0;
    const auto child = start_process(command, signals, &exec_errno);
    if (!child) {
        fail(child.error());
        if (exec_errno == 0) {
            return kOwnFailure;
        }
        return exec_errno == ENOENT ? kExitNotFound : kExitCannotRun;
    }
    return status_of(wait_forwarding(*child, signals));
}

/// Ends the captures and brings dump and index into the output directory.
Result<fbs::TraceReplyT> finish(const std::string& endpoint, const OutputDir& output) {
    const Progress progress("writing the trace");
    auto client = agent::Client::connect(endpoint);
    if (!client) {
        return client.error();
    }
    fbs::TraceRequestT request;
    request.finish = true;
    auto reply = (*client)->trace(request, {});
    if (!reply) {
        return reply;
    }
    for (auto& node : reply->nodes) {
        if (node->path.empty()) {
            return Error{ErrorCode::kInternal,
                         "write the dump of node " + node->name + ": " + node->error};
        }
        if (!node->error.empty()) {
            say(node->error);
        }
        const auto path = output.take(node->path, false);
        if (!path) {
            return path.error();
        }
        node->path = *path;
    }
    // None: the disk is full, and its node has said so. Whoever reads the dump joins it.
    if (reply->job_index.empty()) {
        return reply;
    }
    const auto index = output.take(reply->job_index, false);
    if (!index) {
        return index.error();
    }
    reply->job_index = *index;
    return reply;
}

std::string summary(const fbs::TraceReplyT& reply, const OutputDir& output) {
    std::uint64_t records = 0;
    std::uint64_t lost = 0;
    for (const auto& node : reply.nodes) {
        records += node->records;
        lost += node->lost;
    }
    return grouped(reply.verdicts.size()) +
           (reply.verdicts.size() == 1 ? " process, " : " processes, ") + grouped(records) +
           " records, " + grouped(lost) + " lost; " + calls_line(reply) + "; the trace is in " +
           output.shown();
}

/// What went wrong with single processes: the table does not say it.
void say_bad_verdicts(const fbs::TraceReplyT& reply) {
    for (const auto& process : reply.verdicts) {
        if (!is_good(process->verdict, process->reason)) {
            say("pid " + std::to_string(process->pid) + ": " + verdict_word(process->verdict) +
                (process->reason.empty() ? "" : " (" + process->reason + ")"));
        }
    }
}

/// Ends what an agent that did not live to do so has left, and brings it into the output directory.
Result<fbs::TraceReplyT> finish_without_agent(const std::string& root, const std::string& job,
                                              const OutputDir& output, const Workshop& workshop) {
    auto recovery = agent::recover_directory(root, job, output.absolute());
    if (!recovery) {
        return recovery.error();
    }
    // One that was slow has ended in order after all.
    if (const std::string whole = workshop.dump(); !whole.empty() && whole != recovery->dump) {
        recovery->dump = whole;
        recovery->capture.reset();
    }
    if (recovery->dump.empty()) {
        return Error{ErrorCode::kInternal,
                     "recover the trace: " + (recovery->found.empty()
                                                  ? "nothing was left in " + recovery->directory
                                                  : recovery->found)};
    }
    // An agent that had just ended its capture has told nobody what is in it: the table will.
    const agent::CaptureReport capture = recovery->capture.value_or(agent::CaptureReport{});
    const auto index = index_beside(recovery->dump);
    if (!index) {
        return index.error();
    }
    const auto dump_path = output.take(recovery->dump, false);
    const auto index_path =
        dump_path ? output.take(*index, false) : Result<std::string>(dump_path.error());
    if (!index_path) {
        return index_path.error();
    }
    say("the agent did not end the trace: it was recovered from its dump and from what the "
        "command's processes left");
    fbs::TraceReplyT reply;
    auto node = std::make_unique<fbs::TraceNodeT>();
    node->path = *dump_path;
    node->records = capture.records;
    node->lost = capture.lost;
    node->bytes = capture.bytes;
    node->error = capture.error;
    reply.nodes.push_back(std::move(node));
    for (const agent::ProcessReport& process : capture.processes) {
        auto verdict = std::make_unique<fbs::ProcessVerdictT>();
        verdict->pid = process.pid;
        verdict->verdict = static_cast<fbs::Verdict>(process.verdict);
        verdict->reason = process.reason;
        reply.verdicts.push_back(std::move(verdict));
    }
    reply.job_index = *index_path;
    return reply;
}

void say_if_empty(const fbs::TraceReplyT& reply) {
    const bool something =
        std::any_of(reply.nodes.begin(), reply.nodes.end(),
                    [](const auto& node) { return node->records != 0 || node->lost != 0; });
    if (!something) {
        say("nothing was recorded: no process did anything that ringside traces (PyTorch, NVTX, "
            "ITT, its own API); is it the Python that has your PyTorch?");
    }
}

Result<void> show(const Options& options, const fbs::TraceReplyT& reply) {
    // The files by name: a dump that could not be finished is one of them, under its partial name.
    std::vector<std::string> files;
    for (const auto& node : reply.nodes) {
        files.push_back(node->path);
    }
    if (!reply.job_index.empty()) {
        files.push_back(reply.job_index);
    }
    std::optional<Progress> progress("reading dumps");
    const auto job = load_input({files, true}, *progress);
    if (!job) {
        return job.error();
    }
    const viewer_export::TableOptions how{.tell = shown_by(*progress)};
    const auto text = options.json ? viewer_export::table_json(*job, how)
                                   : viewer_export::render_table(*job, how);
    progress.reset();
    if (!text) {
        return text.error();
    }
    if (options.table.empty()) {
        print_to_stderr(*text);
        return {};
    }
    return write_file(options.table, *text);
}

/// Everything after the command has ended. Its status is what counts: a failure of ours is said and no more.
void conclude(const Options& options, OwnAgent& agent, const OutputDir& output,
              const Workshop& workshop) {
    auto reply = finish(agent.endpoint(), output);
    // One that hangs is ended, whatever it takes: what it has not written still lies in the segments.
    if (!reply && (agent.is_gone() || reply.error().code == ErrorCode::kNoAgent)) {
        agent.end();
        reply = finish_without_agent(agent.root(), agent.job(), output, workshop);
        if (!reply) {
            agent.keep_directory();
            say("what there is of the trace stays in " + agent.root() + "/" + agent.job() +
                "; `ringside recover --dir " + agent.root() + " --job " + agent.job() +
                "` tries again");
        }
    }
    if (!reply) {
        fail(reply.error());
        return;
    }
    say_bad_verdicts(*reply);
    if (const auto shown = show(options, *reply); !shown) {
        fail(shown.error());
    }
    say_if_empty(*reply);
    say(summary(*reply, output));
}

int run_traced(const Options& options, const Words& words) {
    if (words.empty()) {
        return fail({ErrorCode::kUsage, "run: no command given; see `ringside run --help`"});
    }
    std::uint64_t max_bytes = 0;
    if (!options.max_bytes.empty()) {
        const auto parsed = parse_bytes(options.max_bytes);
        if (!parsed) {
            return fail(parsed.error());
        }
        max_bytes = *parsed;
    }
    const FoundProgram found = find_program(words[0], variable("PATH"));
    if (found.exit_code != 0) {
        say(found.reason);
        return found.exit_code;
    }
    const auto paths = own_install_paths();
    if (!paths) {
        return own_failure(paths.error());
    }
    if (const auto table = check_target(options.table); !options.table.empty() && !table) {
        return own_failure(table.error());
    }
    const std::string pid = std::to_string(::getpid());
    const auto output = OutputDir::open(
        options.output, "ringside-" + fs::path(words[0]).filename().string() + "-" + pid);
    if (!output) {
        return own_failure(output.error());
    }
    SignalGuard signals;
    const Workshop workshop(*output);
    const std::string root = agent::default_root();
    const std::string job = "run-" + pid;
    const ChildOptions command = traced_command(found.path, words, paths->shim, root, job).child;
    const auto agent = OwnAgent::start(
        {paths->agent, root, job, output->absolute(), workshop.name(), options.node,
         options.record_shapes, options.profile_memory, max_bytes, options.compress},
        signals);
    if (!agent) {
        return own_failure(agent.error());
    }
    const int status = run_command(command, signals);
    conclude(options, **agent, *output, workshop);
    return status;
}

}  // namespace

Action setup_run(CLI::App& verb, const Words& rest) {
    const auto options = std::make_shared<Options>();
    verb.add_option("-o,--output", options->output,
                    "where dump and index go; default ringside-<CMD>-<pid>")
        ->type_name("DIR");
    CLI::Option* const table =
        verb.add_option("--table", options->table,
                        "write the table to this file instead of stderr, which is CMD's, too")
            ->type_name("FILE");
    verb.add_option("--node", options->node,
                    "this node's name; default RINGSIDE_NODE, else the host's name")
        ->type_name("NAME");
    verb.add_option("--max-bytes", options->max_bytes,
                    "end the dump at this size: 500M, 2G; default none")
        ->type_name("SIZE");
    verb.add_flag("--compress", options->compress,
                  "dump with zstd: smaller, for more of the agent's processor time");
    verb.add_flag("--json", options->json, "the table as one JSON object, in --table's FILE")
        ->needs(table);
    verb.add_flag("--record-shapes", options->record_shapes,
                  "operators with their input shapes; costs a microsecond each");
    verb.add_flag("--profile-memory", options->profile_memory,
                  "memory that tensors take and give back, the CPU's and CUDA's");
    verb.footer(
        "Examples:\n"
        "  ringside run -- /usr/bin/python3 train.py --epochs 1\n"
        "  ringside run -o DIR --table table.txt ./a.out\n"
        "stdin and stdout are CMD's. Signals go to CMD.\n"
        "Exit status: CMD's own, 128+N when it died of signal N, 125 ringside's own failure, 126 "
        "CMD is not executable,\n"
        "127 no such command, 2 usage");
    return [options, &rest] { return run_traced(*options, rest); };
}

}  // namespace ringside::tools
