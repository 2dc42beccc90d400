// SIGHUP to an agent that has a configuration file, or to a user's resident one: the file is read again, and what can change while records flow
// changes. Nothing is closed or begun anew for it.
#pragma once

#include <atomic>
#include <thread>
#include <utility>

#include "agent/capture/engine.hpp"
#include "agent/options.hpp"

namespace ringside::agent {

class Reload {
public:
    /// @param options  as they were read at the start
    Reload(int argc, char** argv, AgentOptions options)
        : argc_(argc), argv_(argv), options_(std::move(options)) {}

    /// Whether SIGHUP means this, and not the agent's end.
    bool wanted() const { return options_.all || !options_.config.empty(); }
    /// As they were read last and could be applied.
    const AgentOptions& options() const { return options_; }

    /// Reads again. The log's level changes at once; what else can't change is said. A file that is wrong leaves everything as it is, and that is said.
    /// @return whether there is something to apply
    bool read_again();

private:
    int argc_;
    char** argv_;
    AgentOptions options_;
};

/// While it lives each SIGHUP (blocked in all threads) reads the file again, and gives the engine its new bounds.
class ReloadThread {
public:
    ReloadThread(Reload& reload, Engine& engine);
    ~ReloadThread();
    ReloadThread(const ReloadThread&) = delete;
    ReloadThread& operator=(const ReloadThread&) = delete;

private:
    void run(Reload& reload, Engine& engine);

    std::atomic<bool> ends_{false};
    std::thread thread_;
};

}  // namespace ringside::agent
