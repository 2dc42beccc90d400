// What every verb of the command shares: its exit codes, how it says an error, and how a verb is declared. A verb is one file with
// one function that adds its options to the parser; main.cpp lists them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schema/result.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace ringside::tools {

using schema::Error;
using schema::ErrorCode;
using schema::Result;

/// Exit codes besides schema::ErrorCode's. `run` ends with its command's own status instead.
inline constexpr int kExitGood = 0;
inline constexpr int kExitNotAllGood = 1;   ///< answered, but some verdict is not good
inline constexpr int kExitCannotRun = 126;  ///< as a shell says: found, and can't be executed
inline constexpr int kExitNotFound = 127;   ///< as a shell says: no such command
inline constexpr int kExitSignal = 128;     ///< plus the signal's number

/// What a verb does once its options are read; the value is the exit status.
using Action = std::function<int()>;

using Words = std::vector<std::string>;

/// Adds one verb's options and examples to its parser.
/// @param rest  the words that are not parsed: the command of `run`, the agent's own options of `agent`; outlives the action
/// @return what to do when this verb was asked for; called after parsing
using Setup = Action (*)(CLI::App& verb, const Words& rest);

struct Verb {
    const char* name;
    const char* summary;
    Setup setup;
    bool takes_rest = false;
    bool shows_progress = false;  ///< and so has --quiet
};

Action setup_run(CLI::App& verb, const Words& rest);
Action setup_wrap(CLI::App& verb, const Words& rest);
Action setup_trace(CLI::App& verb, const Words& rest);
Action setup_fetch(CLI::App& verb, const Words& rest);
Action setup_arm(CLI::App& verb, const Words& rest);
Action setup_disarm(CLI::App& verb, const Words& rest);
Action setup_status(CLI::App& verb, const Words& rest);
Action setup_top(CLI::App& verb, const Words& rest);
Action setup_ps(CLI::App& verb, const Words& rest);
Action setup_cancel(CLI::App& verb, const Words& rest);
Action setup_table(CLI::App& verb, const Words& rest);
Action setup_steps(CLI::App& verb, const Words& rest);
Action setup_ranges(CLI::App& verb, const Words& rest);
Action setup_rpc(CLI::App& verb, const Words& rest);
Action setup_export(CLI::App& verb, const Words& rest);
Action setup_recover(CLI::App& verb, const Words& rest);
Action setup_keygen(CLI::App& verb, const Words& rest);
Action setup_version(CLI::App& verb, const Words& rest);
Action setup_agent(CLI::App& verb, const Words& rest);

/// One line on stderr, `ringside: MESSAGE`.
/// @thread thread-safe
void say(const std::string& message);

/// Says the error and gives its exit code.
int fail(const Error& error);

/// Writes `text` to stdout and flushes it; a closed pipe or full disk is an error, not a silence.
Result<void> print(const std::string& text);

/// Writes `text` to stderr; what can't be written there can't be told either.
void print_to_stderr(const std::string& text);

/// Writes a whole file: under a temporary name beside it, then renamed, so that nothing half-written bears the final name.
/// @param path  written directly where it exists and is no ordinary file itself: a device, a pipe, a link (a rename would replace the
///              link, /dev/stderr for one)
/// @errors Usage: the directory is missing or can't be written
Result<void> write_file(const std::string& path, const std::string& text);

/// Whether a file can be made at `path`: better known before the work than after it.
/// @errors Usage: its directory is missing or can't be written
Result<void> check_target(const std::string& path);

/// This host's name; empty: it has none.
std::string host_name();

/// The text of errno's value, for messages.
std::string errno_text(int error_number);

}  // namespace ringside::tools
