// `ringside trace`: asks one agent to lead a capture of its node and others, and brings the dumps together.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/endpoint.hpp"
#include "schema/control_page.hpp"
#include "schema/ticks.hpp"
#include "tools/ringside/agents.hpp"
#include "tools/ringside/await_free.hpp"
#include "tools/ringside/bring_together.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/dump_names.hpp"
#include "tools/ringside/foreign_options.hpp"
#include "tools/ringside/iteration_options.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/output_dir.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/start_time.hpp"
#include "tools/ringside/trace_choice.hpp"
#include "tools/ringside/trace_report.hpp"
#include "tools/ringside/waits_report.hpp"

namespace ringside::tools {

namespace {

using Wish = agent::TraceHooks::Wish;

struct Options {
    AgentChoice agents;
    std::string duration = "500ms";
    TraceChoice choice;
    ForeignOptions foreign;
    std::string start_time;
    bool wait = false;
    std::string output;
    std::string name_pattern = kDefaultNamePattern;
    bool fetch = false;
    bool force = false;
    std::string max_bytes;
    bool compress = false;
    std::string history;
    IterationOptions iterations;
    bool finish = false;
    bool json = false;
    bool record_shapes = false;
    bool profile_memory = false;
};

/// What the user wants of a running trace, by the signals that have come: the first ends it early, the second throws it away.
class Wishes {
public:
    explicit Wishes(SignalGuard& signals) : signals_(signals) {}

    Wish now() {
        while (const auto signal = signals_.take()) {
            if (signal->number == SIGCHLD) {
                continue;
            }
            last_signal_ = signal->number;
            if (wish_ == Wish::kGoOn) {
                wish_ = Wish::kCancelAndKeep;
                say("ending the capture now and writing what there is; once more to give it up");
            } else {
                wish_ = Wish::kCancel;
            }
        }
        return wish_;
    }
    /// A signal came before there was anything to end.
    void give_up(int signal) {
        wish_ = Wish::kCancel;
        last_signal_ = signal;
    }
    /// Whether a second one has come: of what is done with the capture that has ended.
    bool again() {
        while (const auto signal = signals_.take()) {
            if (signal->number != SIGCHLD) {
                again_ = true;
                last_signal_ = signal->number;
            }
        }
        return again_ || wish_ == Wish::kCancel;
    }
    bool any() const { return wish_ != Wish::kGoOn; }
    int last_signal() const { return last_signal_; }

private:
    SignalGuard& signals_;
    Wish wish_ = Wish::kGoOn;
    int last_signal_ = 0;
    bool again_ = false;
};

Result<fbs::TraceRequestT> request_of(const Options& options,
                                      const std::vector<std::string>& endpoints) {
    const auto duration = parse_duration_ms(options.duration);
    if (!duration) {
        return duration.error();
    }
    fbs::TraceRequestT request;
    request.relay_beyond = agent::kMostDirectPeers;
    if (const auto put = put_choice(options.choice, request); !put) {
        return put.error();
    }
    if (!options.start_time.empty()) {
        const auto start =
            parse_start_time(options.start_time, schema::read_clock(CLOCK_REALTIME).value);
        if (!start) {
            return start.error();
        }
        request.start_time_ns = *start;
    }
    if (!options.max_bytes.empty()) {
        const auto max_bytes = parse_bytes(options.max_bytes);
        if (!max_bytes) {
            return max_bytes.error();
        }
        request.max_bytes = *max_bytes;
    }
    if (!options.history.empty()) {
        const auto history = parse_duration_ms(options.history, "--history");
        if (!history) {
            return history.error();
        }
        request.history_ms = *history;
    }
    if (auto put = put_iterations(options.iterations, request); !put) {
        return put.error();
    }
    request.peers.assign(endpoints.begin() + 1, endpoints.end());
    request.duration_ms = *duration;
    request.asker = "pid " + std::to_string(::getpid()) + " on " + host_name();
    request.finish = options.finish;
    request.compress = options.compress;
    request.options = schema::capture_options(options.record_shapes, options.profile_memory);
    return request;
}

void show(Progress& progress, const fbs::ProgressT& told) {
    const bool timed = told.phase == fbs::Phase::Capturing || told.phase == fbs::Phase::Waiting;
    progress.tell(told.text, timed ? told.elapsed_ms : 0, timed ? told.total_ms : 0,
                  told.elapsed_ms >= 1000 || told.total_ms >= 1000);
}

/// The trace; with --wait, as soon as no other one runs.
Result<fbs::TraceReplyT> trace(const Options& options, const Agents& agents, agent::Client& client,
                               const fbs::TraceRequestT& request, SignalGuard& signals,
                               Wishes& wishes) {
    // The other one may be at its very begin, or its end, where no agent captures yet or any more.
    constexpr int kMostRefusals = 5;
    constexpr int kBetweenMs = 200;
    Progress progress("");
    for (int refusals = 0;; ++refusals) {
        // Later ones are of a trace that was let in: what ends it then is no other capture.
        fbs::Phase phase = fbs::Phase::Measuring;
        const Awaited other = options.wait ? await_free(agents, signals, progress) : Awaited();
        if (other.signal != 0) {
            wishes.give_up(other.signal);
            return Error{ErrorCode::kRefused, "trace: given up before it began"};
        }
        auto reply = client.trace(request, {[&](const fbs::ProgressT& told) {
                                                phase = told.phase;
                                                show(progress, told);
                                            },
                                            [&] { return wishes.now(); }});
        refusals = other.waited ? 0 : refusals;
        const bool busy = !reply && reply.error().code == ErrorCode::kRefused && options.wait &&
                          phase <= fbs::Phase::Attaching && !wishes.any() &&
                          refusals < kMostRefusals;
        if (!busy) {
            return reply;
        }
        ::poll(nullptr, 0, kBetweenMs);
    }
}

int run_trace(const Options& options) {
    if (const auto ours = check_foreign_options(options.foreign); !ours) {
        return fail(ours.error());
    }
    if (const auto named = dump_name(options.name_pattern, {"host", "node", "job", {}, {}});
        !named) {
        return fail(named.error());
    }
    auto chosen = agents_of(options.agents);
    const auto agents = chosen ? agents_on(options.choice.hosts, std::move(*chosen)) : chosen;
    if (!agents) {
        return fail(agents.error());
    }
    const auto request = request_of(options, agents->endpoints);
    if (!request) {
        return fail(request.error());
    }
    auto client = agents->connect(agents->endpoints.front());
    if (!client) {
        return fail(client.error());
    }
    if (auto checked = check_leader(*request, **client); !checked) {
        return fail(checked.error());
    }
    const auto output = OutputDir::open(
        options.output,
        "ringside-" + (options.agents.job.empty() ? agent::default_job() : options.agents.job) +
            "-" + std::to_string(::getpid()),
        options.force ? OutputDir::Found::kOverwrite : OutputDir::Found::kRefuse);
    if (!output) {
        return fail(output.error());
    }
    SignalGuard signals;
    Wishes wishes(signals);
    auto reply = trace(options, *agents, **client, *request, signals, wishes);
    if (!reply) {
        const int status = fail(reply.error());
        if (reply.error().code == ErrorCode::kNoAgent) {
            say("what the agents had captured by then they end and write where they run; that of "
                "one that has died `ringside recover` there has");
        }
        return wishes.any() ? kExitSignal + wishes.last_signal() : status;
    }
    const std::function<bool()> go_on = [&] { return !wishes.again(); };
    const auto whole = bring_together(
        *reply, *output,
        {options.agents, *agents, options.name_pattern, options.fetch, options.finish, go_on});
    if (!whole) {
        return fail(whole.error());
    }
    const std::string waiting = waits_in(*reply, options.json);
    const auto printed =
        print(options.json ? trace_json(*reply, waiting)
                           : trace_text(*reply, waiting) + "read on: ringside table " +
                                 output->shown() + "\n");
    if (!printed) {
        return fail(printed.error());
    }
    if (reply->verdicts.empty() && trace_status(*reply) == kExitGood) {
        return fail({ErrorCode::kNothingMatched,
                     "no process matched: none with the preload runs in the job directory; "
                     "`ringside ps` shows what the agent sees, LD_PRELOAD must name "
                     "libringside_inject.so"});
    }
    if (!go_on()) {
        return kExitSignal + wishes.last_signal();
    }
    return lacks_all_iterations(options.iterations, *reply) || !*whole ? kExitNotAllGood
                                                                       : trace_status(*reply);
}

}  // namespace

Action setup_trace(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<Options>();
    add_agent_options(verb, options->agents);
    CLI::Option* const duration =
        verb.add_option("--duration", options->duration,
                        "how long to capture: 500ms, 2s, 1.5m; default 500ms")
            ->type_name("TIME");
    const auto chosen = add_choice_options(verb, options->choice);
    CLI::Option* const shapes =
        verb.add_flag("--record-shapes", options->record_shapes,
                      "operators with their input shapes; costs a microsecond each");
    CLI::Option* const memory =
        verb.add_flag("--profile-memory", options->profile_memory,
                      "memory that tensors take and give back, the CPU's and CUDA's");
    CLI::Option* const bound =
        verb.add_option("--max-bytes", options->max_bytes,
                        "end each node's dump at this size: 500M, 2G; default none")
            ->type_name("SIZE");
    CLI::Option* const compress =
        verb.add_flag("--compress", options->compress,
                      "dumps with zstd: smaller, for more of the agents' processor time");
    CLI::Option* const history =
        verb.add_option("--history", options->history,
                        "begin so long before now, out of the windows that `ringside arm` keeps")
            ->type_name("TIME");
    CLI::Option* const iterations = add_iteration_options(verb, options->iterations);
    iterations->excludes(duration)->excludes(history);
    CLI::Option* const start =
        verb.add_option("--start-time", options->start_time,
                        "begin then, on all nodes: 12:00:00, 2026-03-01T12:00:00Z or milliseconds "
                        "since the epoch; within the next hour")
            ->type_name("TIME");
    CLI::Option* const wait = verb.add_flag(
        "--wait", options->wait, "where another capture runs: wait for its end, and say for whose");
    CLI::Option* const finish =
        verb.add_flag(
                "--finish", options->finish,
                "end the captures that run from the start (ringside-agent --capture-from-start)")
            ->excludes(duration)
            ->excludes(start)
            ->excludes(wait)
            ->excludes(shapes)
            ->excludes(memory)
            ->excludes(bound)
            ->excludes(compress)
            ->excludes(history)
            ->excludes(iterations);
    for (CLI::Option* option : chosen) {
        if (!option->check_lname("host")) {
            finish->excludes(option);
        }
    }
    add_foreign_options(verb, options->foreign);
    verb.add_option("-o,--output", options->output,
                    "where dumps and index go; default ringside-<job>-<pid>")
        ->type_name("DIR");
    verb.add_option("--name-pattern", options->name_pattern,
                    "what each node's dump is called there: %h host, %n node, %j job, %r ranks "
                    "(0-3+7), %p process ids, %% a percent sign; default %n")
        ->type_name("NAME");
    verb.add_flag("--force", options->force,
                  "also into a directory that holds a trace, over files of the same name");
    verb.add_flag("--fetch", options->fetch,
                  "copy the dumps through the agents even where they can be seen from here; they "
                  "stay there, too");
    verb.add_flag("--json", options->json,
                  "one JSON object: nodes, processes, calls, clocks, paths");
    verb.footer(
        "Examples:\n"
        "  ringside trace --duration 2s\n"
        "  ringside trace --job 4242 -o DIR     (a Slurm job whose tasks ringside-wrap started)\n"
        "  ringside trace --job 4242 --peers-of node7 -o DIR     (where neither Slurm nor the "
        "job's "
        "home is: node7's agent knows the others)\n"
        "  ringside trace --job 4242 --iterations 5 -o DIR     (5 whole iterations of each rank)\n"
        "  ringside trace --hosts ipc:///tmp/a.sock,ipc:///tmp/b.sock -o DIR\n"
        "  ringside trace --history 5s --duration 1s     (after `ringside arm`)\n"
        "  ringside trace --job 4242 --rank 0,7 --sources torch --wait\n"
        "--pid, --rank, --exe, --host and --limit combine by AND. Who comes later and is meant is "
        "taken in, its first moments may be missing;\n"
        "with --limit while there is a place.\n"
        "Ctrl-C ends the capture early and writes what there is; a second one gives it up.\n"
        "With --iterations the table and every export show those alone; the dumps hold what was "
        "recorded around them, too.\n"
        "Exit status: 0 all verdicts good and nothing lost, 1 not so (killed, hung, refused, "
        "unreachable, records lost, iterations missing, ...), 2 "
        "usage,\n"
        "3 nothing matched, 4 no agent there, 5 refused (--history where nothing is armed, ...), "
        "130 given up by Ctrl-C\n"
        "`ringside cancel` ends a trace from elsewhere.");
    return [options] { return run_trace(*options); };
}

}  // namespace ringside::tools
