// What an agent that died has left in a job directory, ended by whoever asks: the dump whole and under its name, dead processes' segments
// gone. Public: for the command, whose `recover` it is, and whose `run` may find its own agent killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/capture/engine.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct Recovery {
    std::string job;
    std::string directory;
    std::optional<CaptureReport>
        capture;        ///< nothing: there was none, and the dead left no records
    std::string dump;   ///< its path; without a capture too, where an agent had ended it and died
    std::string found;  ///< in words, what open() said; empty: no capture
    std::uint64_t removed = 0;  ///< segments of dead processes
    std::uint32_t living = 0;   ///< processes that go on
};

/// Holds the directory's lock while it works.
/// @param node  empty: as an agent's default
/// @param output_root  for what dead processes left without any capture; a capture's dump stays where it was begun
/// @errors Refused: an agent lives there (the message names it); as Engine::open
schema::Result<Recovery> recover_directory(const std::string& root, const std::string& job,
                                           const std::string& output_root,
                                           const std::string& node = "");

}  // namespace ringside::agent
