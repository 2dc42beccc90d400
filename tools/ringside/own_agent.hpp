// The agent of one `ringside run`: started before the command, ended after it, with a job directory of its own, and nothing of it left
// behind however it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "schema/result.hpp"
#include "tools/ringside/install_paths.hpp"
#include "tools/ringside/process.hpp"

namespace ringside::tools {

struct OwnAgentOptions {
    std::string program;      ///< ringside-agent
    std::string root;         ///< holds job directories
    std::string job;          ///< the directory beneath it; ours alone
    std::string output_root;  ///< exists
    std::string dump_name;    ///< folder beneath it
    std::string node;         ///< empty: the agent's default
    bool record_shapes = false;
    bool profile_memory = false;
    std::uint64_t max_bytes = 0;  ///< of the dump; 0: no bound
    bool compress = false;
};

/// @thread main thread
class OwnAgent {
public:
    /// Starts it with --capture-from-start and waits until it records.
    /// @errors Internal: it can't be started, or ended before it was ready (it has said why itself); a signal came meanwhile
    static Result<std::unique_ptr<OwnAgent>> start(const OwnAgentOptions& options,
                                                   SignalGuard& signals);
    /// Ends it and removes its job directory and socket.
    ~OwnAgent();
    OwnAgent(const OwnAgent&) = delete;
    OwnAgent& operator=(const OwnAgent&) = delete;

    const std::string& endpoint() const { return endpoint_; }
    const std::string& root() const { return root_; }
    const std::string& job() const { return job_; }
    /// Whether it has ended by itself or been killed; waits a moment for one that is about to.
    bool is_gone() const;
    /// Ends it: told to, and killed where it does not.
    void end();
    /// Its job directory stays: what is in it is nowhere else.
    void keep_directory() { keep_directory_ = true; }

private:
    OwnAgent(const OwnAgentOptions& options, SignalGuard& signals);
    Result<void> check_ready(int ready_descriptor);
    void remove_traces() const;

    SignalGuard& signals_;
    std::string root_;
    std::string job_;
    std::string directory_;
    std::string endpoint_;
    pid_t pid_ = -1;
    bool keep_directory_ = false;
};

}  // namespace ringside::tools
