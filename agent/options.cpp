#include "agent/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "agent/control/endpoint.hpp"
#include "agent/control/rendezvous.hpp"
#include "agent/metrics/text_endpoint.hpp"
#include "agent/places.hpp"
#include "agent/settings.hpp"

#ifndef RINGSIDE_VERSION
#error "meson defines RINGSIDE_VERSION"
#endif

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

void declare(CLI::App& app, AgentOptions& options) {
    EngineOptions& engine = options.engine;
    app.set_version_flag("--version", std::string("ringside-agent ") + RINGSIDE_VERSION);
    app.add_option("--dir", engine.root,
                   "root of the job directories (RINGSIDE_DIR, else /dev/shm/ringside-<uid>)");
    app.add_option("--job", engine.job,
                   "job: a directory beneath it (RINGSIDE_JOB, else SLURM_JOB_ID, else 'default')");
    app.add_option("--node", engine.node,
                   "this node's name in dumps and views (RINGSIDE_NODE, else the hostname)");
    app.add_option("--endpoint", options.endpoint,
                   "ipc:///path or tcp://HOST:PORT to listen on (default: agent.sock in the job "
                   "directory); tcp needs a key");
    app.add_option("--key", options.key_file,
                   "key file for tcp, from `ringside keygen` (RINGSIDE_KEY, else ~/.ringside/key)");
    app.add_option("--rendezvous", options.rendezvous,
                   "listen for other hosts too, on RINGSIDE_ADDRESS or this host's address, and "
                   "note it in ~/.ringside/jobs, where `ringside --job` looks; a job's id, "
                   "ARRAY_TASK or HET+COMPONENT (default: --job, or Slurm's). Makes the key where "
                   "there is none")
        ->expected(0, 1)
        ->default_str("");
    app.add_option("--output", engine.output_root,
                   "dumps are written beneath it only (default /var/tmp/ringside-<uid>)");
    app.add_flag("--capture-from-start", options.capture_from_start,
                 "capture at once and until the agent ends or a trace request finishes it");
    app.add_option("--name", options.name,
                   "with --capture-from-start: the dump's folder beneath --output");
    app.add_option("--max-bytes", options.max_bytes,
                   "with --capture-from-start: bound of the dump's size, 0: none")
        ->check(CLI::NonNegativeNumber);
    app.add_flag("--compress", options.compress,
                 "with --capture-from-start: compress the dump with zstd");
    app.add_flag("--record-shapes", options.record_shapes,
                 "with --capture-from-start: operators with their input shapes");
    app.add_flag("--profile-memory", options.profile_memory,
                 "with --capture-from-start: memory that tensors take and give back");
    app.add_flag("--standby", engine.standby,
                 "where another agent holds the job directory: wait, and take over when it ends");
    app.add_flag("--all", options.all,
                 "the user's resident agent: starts an agent for each job directory beneath --dir "
                 "that has processes or tasks of `ringside wrap` in it and that nobody holds, and "
                 "for each that comes; one a user and node. Those agents end with it, and with "
                 "their jobs");
    app.add_option("--while-locked", options.while_locked,
                   "end when nobody holds a lock on this file any more, and by no signal before "
                   "(`ringside wrap`: the tasks of its step)");
    app.add_option("--ready-fd", options.ready_fd,
                   "descriptor to write 'ready' to once everything is in place")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--log-level", options.log_level,
                   "trace, debug, info, warn, error, critical or off")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "critical", "off"}));
    app.add_option("--audit", options.audit,
                   "a line for each request that changes something, gives a file away or fails, "
                   "and counts of the others. on: into the log, whatever its level; file: into "
                   "agent.log in the job directory; off: as far as --log-level info shows it")
        ->check(CLI::IsMember({"on", "file", "off"}));
    app.add_option("--metrics", options.metrics,
                   "serve Prometheus' text at http://127.0.0.1:PORT/metrics; loopback addresses "
                   "alone, without a key: any user of this host may read it");
    app.add_option(
        "--config", options.config,
        "TOML with settings of a node: dir, node, key, output, metrics, log-level, audit, "
        "first-lane-kib, most-lane-kib, node-budget, process-budget; the environment "
        "(RINGSIDE_METRICS, ...) and the command line count for more. "
        "RINGSIDE_CONFIG, else ~/.config/ringside/agent.toml, else "
        "/etc/ringside/agent.toml; '': none. SIGHUP reads again what was named, "
        "and with --all");
    app.add_flag(
        "--check-config", options.check_config,
        "print what is set and where it comes from, say what can't be written, and end: 0, or "
        "2 and what is wrong");
    app.add_flag("--json", options.json, "with --check-config: as JSON")
        ->needs(app.get_option("--check-config"));
    app.add_option("--first-lane-kib", engine.memory.first_lane_kib,
                   "size of a thread's first ring")
        ->check(CLI::Range(4u, 65536u));
    app.add_option(
           "--most-lane-kib", engine.memory.most_lane_kib,
           "how large a thread's ring may grow, each time twice as large, where we are late; "
           "not below --first-lane-kib")
        ->check(CLI::Range(4u, 32768u));
    app.add_option(
           "--node-budget", engine.memory.node_budget_bytes,
           "bytes of memory that all processes of the job may have here for captures; 0: 1/8 of "
           "the file system, at most half of what is free")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--process-budget", engine.memory.process_budget_bytes,
                   "and each process of them; 0: as the node")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--skew-offset-ns", engine.skew_offset_ns,
                   "tests only: put this node's clock ahead");
    app.add_option("--skew-drift-ppb", engine.skew_drift_ppb, "tests only: let it run fast");
    app.add_option("--lease-ms", options.lease_ms,
                   "tests only: end a capture whose leader has been silent for so long")
        ->check(CLI::Range(100u, 3'600'000u));
    for (const char* one_jobs : {"--job", "--endpoint", "--rendezvous", "--capture-from-start",
                                 "--standby", "--while-locked"})
        app.get_option("--all")->excludes(one_jobs);
}

std::string variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value == nullptr ? "" : value;
}

void set_defaults(AgentOptions& options) {
    EngineOptions& engine = options.engine;
    if (options.rendezvous && options.rendezvous->empty() && engine.job.empty() &&
        variable("RINGSIDE_JOB").empty())
        options.rendezvous = slurm_member(variable);
    if (engine.root.empty()) engine.root = default_root();
    if (engine.job.empty()) engine.job = default_job();
    if (options.rendezvous && options.rendezvous->empty()) options.rendezvous = engine.job;
    if (engine.node.empty()) engine.node = default_node();
    if (engine.output_root.empty()) engine.output_root = default_output_root();
    if (options.endpoint.empty()) options.endpoint = default_endpoint(engine.root, engine.job);
}

schema::Result<void> check(const AgentOptions& options) {
    const EngineOptions& engine = options.engine;
    if (auto checked = check_endpoint(options.endpoint); !checked) return checked;
    if (auto checked = check_name("--job", engine.job); !checked) return checked;
    if (auto checked = check_name("--node", engine.node); !checked) return checked;
    if (options.rendezvous) {
        if (auto checked = check_member("--rendezvous", *options.rendezvous); !checked)
            return checked;
        if (is_tcp(options.endpoint)) {
            return Error{ErrorCode::kUsage,
                         "--rendezvous with " + options.endpoint +
                             ": it gives an ipc endpoint a second one; leave --endpoint out"};
        }
    }
    if (!options.name.empty()) {
        if (auto checked = check_name("--name", options.name); !checked) return checked;
    }
    for (const std::string& directory : {engine.root, engine.output_root}) {
        if (directory.front() != '/') {
            return Error{ErrorCode::kUsage,
                         "directory '" + directory +
                             "' is relative; give an absolute path to --dir and --output"};
        }
    }
    return options.metrics.empty() ? schema::Result<void>() : TextEndpoint::check(options.metrics);
}

/// @return the file; empty: none
std::string config_file(const CLI::App& app, AgentOptions& options) {
    if (app.count("--config") == 0 && ::secure_getenv("RINGSIDE_CONFIG") == nullptr)
        return default_config();
    if (app.count("--config") == 0) options.config = variable("RINGSIDE_CONFIG");
    return options.config;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return out + '"';
}

void print_settings(const AgentOptions& options, const SettingOrigins& origins) {
    const EngineOptions& engine = options.engine;
    const MemoryOptions& memory = engine.memory;
    const std::pair<const char*, std::string> values[] = {
        {"dir", quoted(engine.root)},
        {"node", quoted(engine.node)},
        {"key", quoted(options.key_file.empty() ? variable("RINGSIDE_KEY") : options.key_file)},
        {"output", quoted(engine.output_root)},
        {"metrics", quoted(options.metrics)},
        {"log-level", quoted(options.log_level)},
        {"audit", quoted(options.audit)},
        {"first-lane-kib", std::to_string(memory.first_lane_kib)},
        {"most-lane-kib", std::to_string(memory.most_lane_kib)},
        {"node-budget", std::to_string(memory.node_budget_bytes)},
        {"process-budget", std::to_string(memory.process_budget_bytes)}};
    std::string text = options.json ? "{\"file\": " + quoted(origins.file) + ", \"settings\": ["
                                    : "# " + (origins.file.empty() ? "no file" : origins.file);
    const char* between = "\n  ";
    for (const auto& [name, value] : values) {
        const std::string& origin = origins.at(name);
        if (options.json) {
            text += between + ("{\"name\": " + quoted(name)) + ", \"value\": " + value +
                    ", \"from\": " + quoted(origin) + "}";
            between = ",\n  ";
        } else {
            text.append("\n").append(name).append(" = ").append(value);
            text.append("  # ").append(origin);
        }
    }
    std::string warnings;
    for (const std::string& each : unwritable_places(options)) {
        if (options.json)
            warnings += (warnings.empty() ? "" : ", ") + quoted(each);
        else
            std::fprintf(stderr, "ringside-agent: %s\n", each.c_str());
    }
    std::printf("%s\n",
                (text + (options.json ? "\n], \"warnings\": [" + warnings + "]}" : "")).c_str());
}

}  // namespace

std::optional<AgentOptions> parse_options(int argc, char** argv, int& exit_code) {
    CLI::App app(
        "Ringside's sidecar: drains the rings of one job directory on this node, captures when "
        "asked. With --all: of every job directory of this user.",
        "ringside-agent");
    AgentOptions options;
    declare(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            exit_code = app.exit(error);
            return std::nullopt;
        }
        std::fprintf(stderr, "ringside-agent: %s; see `ringside agent --help`\n", error.what());
        exit_code = static_cast<int>(ErrorCode::kUsage);
        return std::nullopt;
    }
    const auto origins = fill_settings(app, config_file(app, options));
    if (!origins) {
        std::fprintf(stderr, "ringside-agent: %s\n", origins.error().message.c_str());
        exit_code = static_cast<int>(origins.error().code);
        return std::nullopt;
    }
    set_defaults(options);
    auto key = find_key(options.key_file);
    if (key) options.key = std::move(*key);
    // Who is on this host is served without one.
    const bool needs_key = is_tcp(options.endpoint) || !options.key_file.empty();
    if (!key && !needs_key)
        std::fprintf(stderr, "ringside-agent: %s\n", key.error().message.c_str());
    if (auto checked = key || !needs_key ? check(options) : schema::Result<void>(key.error());
        !checked) {
        std::fprintf(stderr, "ringside-agent: %s\n", checked.error().message.c_str());
        exit_code = static_cast<int>(checked.error().code);
        return std::nullopt;
    }
    if (options.check_config) {
        print_settings(options, *origins);
        exit_code = 0;
        return std::nullopt;
    }
    return options;
}

}  // namespace ringside::agent
