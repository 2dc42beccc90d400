// The agent's command line. Read once by main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/capture/engine.hpp"
#include "agent/control/key.hpp"

namespace ringside::agent {

struct AgentOptions {
    EngineOptions engine;
    std::string endpoint;
    std::optional<Key> key;  ///< for a tcp endpoint
    std::string key_file;    ///< that it came from; empty: the default one, if it is there
    bool capture_from_start = false;
    std::string name;  ///< of the dump's folder; empty: made of the capture's id
    std::uint64_t max_bytes = 0;
    bool compress = false;
    bool record_shapes = false;
    bool profile_memory = false;
    bool all = false;          ///< a user's resident agent, which holds no directory itself
    bool while_used = false;   ///< one of that one's: ends when nobody uses its directory
    std::string while_locked;  ///< a file: the agent ends when nobody else holds a lock on it
    std::optional<std::string>
        rendezvous;       ///< the job under which other hosts find this agent; none: they don't
    std::string metrics;  ///< a loopback address for Prometheus; empty: none
    int ready_fd = -1;
    std::uint32_t lease_ms = 15'000;  ///< ServerSetup::lease
    std::string log_level = "warn";
    std::string audit =
        "on";            ///< off: as far as the log's level shows it; file: into the job directory
    std::string config;  ///< the file that SIGHUP reads again; empty: none was named
    bool check_config = false;
    bool json = false;  ///< with it
};

/// Parses and checks; fills in the defaults. Prints help, version and complaints itself.
/// @param exit_code  set where there is nothing to run: 0 after --help and --version, 2 usage, 5 refused (a tcp endpoint without a key)
std::optional<AgentOptions> parse_options(int argc, char** argv, int& exit_code);

}  // namespace ringside::agent
