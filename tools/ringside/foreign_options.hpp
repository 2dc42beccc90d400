// What users of Dynolog's `dyno gputrace` type, and we spell otherwise or leave out: each is an error that says what to write.
#pragma once

#include <map>
#include <string>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

/// By their names, what was typed.
using ForeignOptions = std::map<std::string, std::string>;

/// Adds them to a verb: those that are refused stand in its help, other spellings don't. `given` outlives the parser.
void add_foreign_options(CLI::App& verb, ForeignOptions& given);

/// @errors Usage: one was given
Result<void> check_foreign_options(const ForeignOptions& given);

}  // namespace ringside::tools
