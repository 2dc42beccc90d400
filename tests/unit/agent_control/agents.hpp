// An agent in this process: a fake engine behind a real server on a real socket, served by a thread.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "agent/control/client.hpp"
#include "agent/control/server.hpp"
#include "fake_engine.hpp"
#include "folder.hpp"

namespace ringside::agent::test {

inline EngineOptions engine_options(const Folder& folder, const std::string& node,
                                    std::int64_t skew_ns = 0, double drift_ppb = 0) {
    EngineOptions options;
    options.root = folder.path();
    options.job = "job";
    options.node = node;
    options.output_root = folder.path() + "/" + node;
    options.skew_offset_ns = skew_ns;
    options.skew_drift_ppb = drift_ppb;
    ::mkdir(options.output_root.c_str(), 0700);
    return options;
}

inline std::string ipc_endpoint(const Folder& folder, const std::string& node) {
    return "ipc://" + folder.path() + "/" + node + ".sock";
}

class Agent {
public:
    Agent(const Folder& folder, const std::string& node, std::int64_t skew_ns = 0,
          double drift_ppb = 0, Milliseconds lease = Milliseconds(15'000))
        : Agent(engine_options(folder, node, skew_ns, drift_ppb),
                {ipc_endpoint(folder, node), "test", lease}) {}
    Agent(const EngineOptions& options, const ServerSetup& setup)
        : engine(options), endpoint(setup.endpoint) {
        auto bound = Server::bind(engine, setup);
        if (bound) server = std::move(*bound);
    }
    ~Agent() { stop(); }

    Agent& serve() {
        thread_ = std::thread([this] { server->serve(stop_.fd()); });
        return *this;
    }
    void stop() {
        stop_.raise();
        if (thread_.joinable()) thread_.join();
    }
    /// Until it ends of itself.
    void join() { thread_.join(); }

    FakeEngine engine;
    std::string endpoint;
    std::unique_ptr<Server> server;

private:
    Event stop_;
    std::thread thread_;
};

}  // namespace ringside::agent::test
