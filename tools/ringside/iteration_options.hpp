// `ringside trace --iterations N`: its options, their part of the request, and what the reply says of them.
#pragma once

#include <string>

#include "agent/control/client.hpp"
#include "schema/result.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
class Option;
}  // namespace CLI

namespace ringside::tools {

using schema::Result;

/// What the user typed.
struct IterationOptions {
    std::string count;
    std::string of;
    std::string roundup;
    std::string timeout;

    bool given() const { return !count.empty(); }
};

/// Adds them to a verb; `options` outlives the parser.
/// @return --iterations
CLI::Option* add_iteration_options(CLI::App& verb, IterationOptions& options);

/// @errors Usage: no such numbers or time
Result<void> put_iterations(const IterationOptions& options, fbs::TraceRequestT& request);

/// Before the trace: an agent that has never heard of iterations, ranks, executables, a limit or a start would capture everybody, now, for a time.
/// @errors Refused: the agent is older; as Client::ask
Result<void> check_leader(const fbs::TraceRequestT& request, agent::Client& leader);

/// After it: whether iterations were asked for and no process at all had any. Then that is said.
bool lacks_all_iterations(const IterationOptions& options, const fbs::TraceReplyT& reply);

/// Whether a process has all that was asked for, or need not have any.
bool has_its_iterations(const fbs::ProcessVerdictT& process);
/// ", 5 iterations of Optimizer.step#SGD.step from boundary 3"; empty: none were asked for.
std::string iterations_text(const fbs::ProcessVerdictT& process);

}  // namespace ringside::tools
