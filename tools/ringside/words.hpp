// The words in which the command tells agents' answers: verdicts, levels, numbers. One place, so that `trace`, `ps` and `status` say the
// same thing the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schema/control_generated.h"

namespace ringside::tools {

/// Without control characters: what a job calls itself must not move a terminal's cursor or break a table.
std::string one_line(std::string text);

/// Its command line, else its executable.
std::string command_text(const fbs::ProcessT& process);

/// "captured", "nothing recorded", ... as the architecture names them.
std::string verdict_word(fbs::Verdict verdict);
/// Whether `trace` may exit 0 with it: captured, exited, or nothing recorded because no framework was loaded.
bool is_good(fbs::Verdict verdict, const std::string& reason);

/// "absent", "off", "full", "degraded", "not instrumented".
std::string level_word(fbs::SourceLevel level);
/// "torch", "nvtx", ... or "source 9" for one that this version doesn't know.
std::string source_word(std::uint8_t source);
/// "torch, nvtx, ...": those that there are, for `--sources`.
std::string source_names();

using SourceTables = std::vector<std::unique_ptr<fbs::SourceT>>;
/// "torch full, nvtx off"; "none".
/// @param with_reasons  in parentheses, where a source has one
std::string sources_text(const SourceTables& sources, bool with_reasons);

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);
/// 1536 -> "1.5 KiB".
std::string bytes_text(std::uint64_t bytes);
/// 1234567 -> "1.235 ms"; in ns, us, ms or s.
std::string time_text(std::int64_t ns);

/// Rows as columns: left-aligned, as wide as their widest cell, two spaces apart; the last one is not filled up.
std::string columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace ringside::tools
