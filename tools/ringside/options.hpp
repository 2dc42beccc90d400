// Reads what the user typed: durations, lists of endpoints, the split between our options and the command that `run` starts. Pure
// functions, so that each wrong spelling has a unit test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

/// `500ms`, `2s`, `1.5s`, `3m`; a number without a unit is refused, since dyno's users mean ms and everybody else s.
/// @return 1 ms to 24 h
/// @param option  whose value it is, for the message
/// @errors Usage
Result<std::uint32_t> parse_duration_ms(std::string_view text,
                                        std::string_view option = "--duration");

/// `5000000`, `2000K`, `500M`, `2G`, with or without `B` or `iB` behind: powers of 1024.
/// @return 1 MiB or more: a dump is written in pieces of some 256 KiB
/// @errors Usage
Result<std::uint64_t> parse_bytes(std::string_view text);

/// `ipc:///a/b.sock,ipc:///c/d.sock`: at least one endpoint, none twice; the first one leads.
/// `host:1234` is short for `tcp://host:1234`.
/// @errors Usage: empty or repeated entries, not an endpoint
Result<std::vector<std::string>> parse_hosts(std::string_view text);

/// Process ids, `12` or `12,13` each.
/// @errors Usage
Result<std::vector<std::int32_t>> parse_pids(const std::vector<std::string>& texts);

/// Ranks, `0` or `0,3` each.
/// @errors Usage
Result<std::vector<std::int32_t>> parse_ranks(const std::vector<std::string>& texts);

/// Names, `a` or `a,b` each.
/// @param option  whose value it is, for the message
/// @errors Usage: an empty one
Result<std::vector<std::string>> parse_names(const std::vector<std::string>& texts,
                                             std::string_view option);

/// Sources by their names, `nvtx` or `nvtx,torch`, as a mask with a bit for each; empty: all.
/// @errors Usage: no source of that name
Result<std::uint32_t> parse_sources(std::string_view text);

/// The arguments of `run`, taken apart before any is parsed: everything from the first word that is no option of ours is the
/// command's, `--` or not, so that its options are never taken for ours.
struct SplitArguments {
    std::vector<std::string> own;
    std::vector<std::string> command;
};

/// @param takes_value  names of the options whose value is the next word, with their dashes (`-o`, `--output`)
SplitArguments split_command(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& takes_value);

}  // namespace ringside::tools
