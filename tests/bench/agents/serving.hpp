// Where the bench's agents are, and who serves them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "agent/control/key.hpp"
#include "schema/result.hpp"

namespace ringside::bench {

[[noreturn]] inline void fail(const schema::Error& error) {
    std::fprintf(stderr, "agents: %s\n", error.message.c_str());
    std::exit(1);
}

struct Place {
    static constexpr int kFirstPort = 20'000;

    std::string root;    ///< job directories and sockets
    std::string output;  ///< dumps
    bool tcp = false;

    std::string endpoint(int node) const {
        return tcp ? "tcp://127.0.0.1:" + std::to_string(kFirstPort + node)
                   : "ipc://" + root + "/" + std::to_string(node) + ".sock";
    }
    agent::Key key() const {
        auto key = agent::read_key(root + "/key");
        if (!key) fail(key.error());
        return *key;
    }
};

inline std::string node_name(int node) {
    return "n" + std::to_string(node);
}

/// Whole agents, each with its engine, its server, its sockets and threads, on a job directory with a live segment; says what each takes, then
/// serves until its input ends.
void serve(const Place& place, int first, int count);
/// One thread behind all the endpoints, which answers as agents do and has no job, no segment and no dump.
void serve_light(const Place& place, int first, int count);

}  // namespace ringside::bench
