// The `ringside` command: finds the verb, reads its options, does it. What a verb does stands in its own file.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "config.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/progress.hpp"

namespace ringside::tools {

namespace {

constexpr std::array kVerbs = {
    Verb{"run", "trace one command from its first to its last instruction", setup_run, true, true},
    Verb{"wrap", "start a launcher's task with its node's agent (ringside-wrap)", setup_wrap, true,
         true},
    Verb{"trace", "capture from running jobs, on one node or many", setup_trace, false, true},
    Verb{"fetch", "bring dumps from hosts whose disks can't be seen from here", setup_fetch, false,
         true},
    Verb{"cancel", "end the trace that runs, and keep what there is", setup_cancel, false, true},
    Verb{"arm", "keep a window, so that a capture may begin before its trigger", setup_arm, false,
         true},
    Verb{"disarm", "end the window, and give back what it takes", setup_disarm, false, true},
    Verb{"status", "who the agents are and what they do", setup_status, false, true},
    Verb{"top", "what the agents record now, again and again", setup_top, false, true},
    Verb{"ps", "the processes that the agents see, and their sources", setup_ps, false, true},
    Verb{"table", "a capture as torch prints its profile, RPCs included", setup_table, false, true},
    Verb{"steps", "each iteration on each GPU: compute, communication, copies, idle", setup_steps,
         false, true},
    Verb{"ranges", "ranges as the GPU ran them, from first kernel to last", setup_ranges, false,
         true},
    Verb{"rpc", "calls: each edge's times, what was served at once, the slowest as trees",
         setup_rpc, false, true},
    Verb{"export", "a capture as a file for other viewers", setup_export, false, true},
    Verb{"recover", "end what agents and processes that died have left", setup_recover, false,
         true},
    Verb{"keygen", "make the key that agents need for tcp", setup_keygen},
    Verb{"version", "versions of all that this command reads and speaks", setup_version},
    Verb{"agent", "start a node's agent (ringside-agent)", setup_agent, true},
};

const Verb* find_verb(const std::string& name) {
    const auto* const found = std::find_if(kVerbs.begin(), kVerbs.end(),
                                           [&](const Verb& verb) { return verb.name == name; });
    return found == kVerbs.end() ? nullptr : found;
}

std::string verb_names() {
    std::string names;
    for (const Verb& verb : kVerbs) {
        names += (names.empty() ? "" : ", ") + std::string(verb.name);
    }
    return names;
}

/// Options of `verb` whose value is the next word.
Words options_with_value(const CLI::App& verb) {
    Words names;
    for (const CLI::Option* option : verb.get_options()) {
        if (option->get_items_expected_max() == 0) {
            continue;
        }
        for (const std::string& name : option->get_snames()) {
            names.push_back("-" + name);
        }
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

std::string overview(const CLI::App& app) {
    return app.help() +
           "\nRead on with `ringside VERB --help`. Exit status: 0 good, 1 answered but not all "
           "verdicts are good,\n"
           "2 usage, 3 nothing matched, 4 no agent there, 5 refused, 6 input unreadable or "
           "damaged;\n"
           "`run` and `wrap` end as their command.\n";
}

/// The words of one verb: what CLI11 reads, and what it must not touch.
SplitArguments split_words(const Verb& verb, const CLI::App& parser, const Words& words) {
    if (verb.takes_rest && std::string(verb.name) == "agent") {
        return {{}, words};
    }
    return verb.takes_rest ? split_command(words, options_with_value(parser))
                           : SplitArguments{words, {}};
}

int usage(const std::string& verb, const std::string& message) {
    const std::string named = verb.empty() ? "" : verb + ": ";
    const std::string command = verb.empty() ? "" : verb + " ";
    return fail({ErrorCode::kUsage, named + message + "; see `ringside " + command + "--help`"});
}

std::string unexpected_words(const CLI::App& parser) {
    std::string words;
    for (const std::string& word : parser.remaining(true)) {
        words += (words.empty() ? "" : " ") + word;
    }
    return "unknown option or word too many: " + words;
}

/// A verb's help; where it takes words that CLI11 never sees, the usage line says so.
std::string help_of(const Verb& verb, const CLI::App& parser) {
    std::string help = parser.help("ringside");
    const std::size_t end = help.find("[OPTIONS]\n");
    return verb.takes_rest && end != std::string::npos ? help.insert(end + 9, " [--] CMD...")
                                                       : help;
}

/// @return the exit status
int parse_and_do(const Words& words) {
    CLI::App app("Traces distributed jobs that nobody changed.", "ringside");
    app.set_version_flag("--version", std::string("ringside ") + kVersion);
    std::map<std::string, Action> actions;
    Words rest;
    for (const Verb& verb : kVerbs) {
        CLI::App* const parser = app.add_subcommand(verb.name, verb.summary);
        actions[verb.name] = verb.setup(*parser, rest);
        if (verb.shows_progress) {
            parser->add_flag_callback("--quiet", be_quiet, "no progress on stderr");
        }
    }
    if (words.empty()) {
        say("which verb? one of " + verb_names() + "; see `ringside --help`");
        return static_cast<int>(ErrorCode::kUsage);
    }
    const Verb* const verb = find_verb(words[0]);
    if (verb == nullptr && words[0].rfind('-', 0) != 0) {
        return usage("", "'" + words[0] + "' is no verb; one of " + verb_names());
    }
    Words own = words;
    if (verb != nullptr) {
        SplitArguments split = split_words(*verb, *app.get_subcommand(verb->name),
                                           Words(words.begin() + 1, words.end()));
        rest = std::move(split.command);
        own = std::move(split.own);
        own.insert(own.begin(), verb->name);
    }
    try {
        std::reverse(own.begin(), own.end());  // CLI11 takes them from the back
        app.parse(own);
    } catch (const CLI::CallForHelp&) {
        const auto printed = print(
            verb == nullptr ? overview(app) : help_of(*verb, *app.get_subcommand(verb->name)));
        return printed ? kExitGood : fail(printed.error());
    } catch (const CLI::CallForVersion& version) {
        const auto printed = print(std::string(version.what()) + "\n");
        return printed ? kExitGood : fail(printed.error());
    } catch (const CLI::ExtrasError&) {
        return usage(verb == nullptr ? "" : verb->name,
                     unexpected_words(verb == nullptr ? app : *app.get_subcommand(verb->name)));
    } catch (const CLI::ParseError& error) {
        return usage(verb == nullptr ? "" : verb->name, error.what());
    }
    return verb == nullptr ? usage("", "no verb given") : actions[verb->name]();
}

/// Standard output is the answer's, or the traced command's. What an agent's engine logs in here, the verbs say themselves.
void log_errors_only() {
    const auto logger = spdlog::stderr_logger_mt("ringside");
    logger->set_pattern("%n: %v");
    logger->set_level(spdlog::level::err);
    spdlog::set_default_logger(logger);
}

}  // namespace

}  // namespace ringside::tools

int main(int count, char** words) {
    using namespace ringside::tools;
    try {
        log_errors_only();
        return parse_and_do(Words(words + 1, words + count));
    } catch (const std::exception& error) {
        return fail(
            {ErrorCode::kInternal, std::string("stopped by an error that should not happen: ") +
                                       error.what() + "; please report it with the command line"});
    }
}
