// Brings a file of an agent's here, part by part, however often the connection is lost: each part checksummed, the whole compared with the
// agent's at the end. What is on disk already is compared too, and kept. Public: the command's way to dumps that it can't see.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "agent/control/link.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct FetchWish {
    std::string endpoint;
    const Key* key = nullptr;  ///< for tcp
    std::string path;          ///< as the agent names it
};

struct FetchPace {
    Milliseconds silence{4000};    ///< of the agent, until the connection is made anew
    Milliseconds answer{30'000};   ///< of an agent that lives: to a part
    Milliseconds give_up{60'000};  ///< without a new byte
};

/// Called several times a second: how much is here, of how much (0: not known yet), and what is wrong at the moment.
/// @return false: that will do
using FetchProgress =
    std::function<bool(std::uint64_t done, std::uint64_t total, const std::string& trouble)>;

struct Fetched {
    std::uint64_t bytes = 0;        ///< of the file
    std::uint64_t kept_bytes = 0;   ///< that were here before
    std::uint32_t reconnected = 0;  ///< times
    std::uint32_t asked_again = 0;  ///< parts that were damaged
    std::uint32_t begun_again = 0;  ///< times that what was here was another file's
};

/// @param file  open for reading and writing; what is in it is taken for the file's beginning if it is that. Whole when it returns, but not
///              synchronised
/// @errors what the agent says (Refused, NothingMatched); NoAgent: nothing came for too long; Input: it changes, or arrives damaged again and
/// again; Usage: it can't be written; Refused: given up. What has come stays in the file
schema::Result<Fetched> fetch_file(const FetchWish& wish, int file, const FetchProgress& progress,
                                   const FetchPace& pace = {});

}  // namespace ringside::agent
