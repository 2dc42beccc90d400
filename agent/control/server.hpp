// What an agent listens on: one ROUTER socket. The loop answers pings at once, hands what may wait for the engine to workers and the
// leading of traces to the desk, and never waits for anybody: a client that does not read loses its replies.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/capture/engine.hpp"
#include "agent/control/audit.hpp"
#include "agent/control/connections.hpp"
#include "agent/control/file_parts.hpp"
#include "agent/control/gate.hpp"
#include "agent/control/key.hpp"
#include "agent/control/lead_desk.hpp"
#include "agent/control/lease.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/relay_desk.hpp"
#include "agent/control/rendezvous.hpp"
#include "agent/control/unsent_letters.hpp"
#include "agent/control/worker.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// A second endpoint, for other hosts, beside an ipc one: with a key of the job's own, on the first of some ports that is free, else on any.
struct FarSetup {
    std::string address;               ///< an IP literal
    std::vector<std::uint16_t> ports;  ///< in the order in which they are tried
    Key key;
    NotedAgent
        note{};  ///< without its endpoint: how it is noted in the user's home; no member: not at all
};

struct ServerSetup {
    std::string endpoint;
    std::string version;
    /// A capture whose leader, elsewhere, has been silent for so long ends here.
    Milliseconds lease{15'000};
    std::optional<Key> key{};  ///< of a tcp endpoint, and to reach peers' with
    std::optional<FarSetup> far{};
    /// Of many agents in one process, none of which has a key (libzmq has one ZAP handler a context); outlives them. Null: one of its own.
    zmq::context_t* context = nullptr;
};

/// Counters of what was not served.
struct ServerCounts {
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;    ///< answered so
    std::uint64_t damaged = 0;    ///< no requests, or not verified
    std::uint64_t parts = 0;      ///< messages of more than one part
    std::uint64_t too_often = 0;  ///< beyond what a connection may ask a second
    std::uint64_t unsent = 0;     ///< replies that their client did not take
};

/// @thread main thread
class Server {
public:
    /// @param engine  outlives the server; its lock on the job directory guards the socket's file too
    /// @errors Refused: tcp without a key, the endpoint is another agent's or not safe; Usage; Internal
    static schema::Result<std::unique_ptr<Server>> bind(Engine& engine, const ServerSetup& setup);
    /// Removes the socket's file.
    ~Server();

    NodeService& service() { return service_; }
    /// Where other hosts reach it, beside its own endpoint; empty: nowhere.
    const std::string& far_endpoint() const { return far_endpoint_; }
    /// Listens for other hosts, too, as soon as it is known where: at once, after a wait, or while it serves.
    void listen_far(std::future<std::optional<FarSetup>> setup, Milliseconds wait);
    /// Serves until `stop_fd` is readable or somebody asked for a shutdown.
    void serve(int stop_fd);
    /// Ends what runs: a trace that is led here, a capture from the start (with this node's job index), another leader's capture. Their
    /// dumps are written when it returns; replies to them are sent.
    /// @errors Internal: a dump or an index could not be written
    schema::Result<void> finish();
    const ServerCounts& counts() const { return counts_; }
    const Connections& connections() const { return connections_; }

private:
    Server(Engine& engine, AgentIdentity identity, zmq::context_t* shared);
    schema::Result<void> listen(const ServerSetup& setup);
    schema::Result<void> listen_far(const FarSetup& setup);
    bool look_far(Milliseconds wait);
    void keep_note();
    schema::Result<void> bind_tcp(const std::string& endpoint, const Key& key);
    bool receive_some();
    bool receive_one();
    /// A request, and how it came.
    struct Asked {
        std::string identity;
        fbs::MessageT message;
        std::size_t bytes = 0;
        int descriptor = -1;
    };
    void handle(Asked asked);
    bool answer_at_once(const std::string& identity, fbs::MessageT& message);
    void hand_to(Worker& worker, Asked asked);
    MessageBytes work(fbs::MessageT& message, const ServerCounts& counts, std::uint64_t& leads);
    fbs::StatusReplyT status(const ServerCounts& counts) const;
    void give_file(Asked asked);
    void lead(Asked asked);
    /// An answer, with its line of the audit.
    void send(Letter letter);
    void put(Letter letter);
    void send_letters();
    void check_lease();
    void finish_trace();
    bool check_socket_file();

    std::optional<zmq::context_t> own_context_;
    zmq::context_t& context_;
    zmq::socket_t socket_;
    Connections connections_;
    Audit audit_;
    std::string socket_file_;
    std::string far_endpoint_;
    std::future<std::optional<FarSetup>> far_;  ///< to come; without a state: no more
    std::optional<RendezvousNote> note_;
    SteadyTime note_kept_;
    SteadyTime socket_file_seen_;
    std::string last_complaint_;  ///< about it
    NodeService service_;
    ServerCounts counts_;
    Lease lease_;
    bool shutdown_ = false;
    std::unique_ptr<Gate> gate_;  // with a tcp endpoint, far or near
    Outbox outbox_;
    LeadDesk desk_;
    RelayDesk relays_;
    FileParts files_;
    UnsentBytes unsent_;  ///< of files
    UnsentLetters unsent_letters_;
    // Last: their tasks use all the others. Four, so that a status waits neither for a capture's end, nor for a home or a Slurm, nor for files.
    std::unique_ptr<Worker> queries_ = std::make_unique<Worker>();
    std::unique_ptr<Worker> orders_ = std::make_unique<Worker>();
    std::unique_ptr<Worker> finder_ = std::make_unique<Worker>();
    std::unique_ptr<Worker> files_worker_ = std::make_unique<Worker>();
};

}  // namespace ringside::agent
