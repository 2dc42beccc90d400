// What becomes of nodes whose turn a round did not come to.
#include <doctest/doctest.h>

#include "agent/control/at_once.hpp"
#include "agent/control/key.hpp"
#include "agent/control/roster.hpp"
#include "agents.hpp"
#include "deaf_hosts.hpp"
#include "scripted_agent.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

TEST_SUITE("unit") {
    TEST_CASE("roster: a node that was to be asked nothing is not late") {
        const Folder folder;
        FakeEngine engine(engine_options(folder, "lead"));
        NodeService own(engine, {});
        std::vector<std::unique_ptr<ScriptedAgent>> agents;
        std::vector<std::string> peers;
        for (const char* name : {"silent", "late", "free"}) {
            peers.push_back(ipc_endpoint(folder, name));
            agents.push_back(
                std::make_unique<ScriptedAgent>(peers.back(), [name](fbs::MessageT* message) {
                    std::vector<MessageBytes> said;
                    if (message == nullptr) return said;
                    if (message->content.type == fbs::Content::PingRequest)
                        said.push_back(ping_reply(*message));
                    if (message->content.type == fbs::Content::StatusRequest) {
                        fbs::StatusReplyT status;
                        status.node = name;
                        said.push_back(pack(message->id, std::move(status)));
                    }
                    return said;
                }));
        }
        zmq::context_t context;
        const Event nudge;
        Roster roster(
            own, context, [] {}, nudge);
        roster.meet(peers);
        for (const NodeState& node : roster.nodes()) REQUIRE(node.taking_part);
        Round round;
        round.action = "read its halves";
        round.limit = Milliseconds(300);
        round.at_once = 1;
        round.request = [](NodeState& node, std::uint64_t id) {
            return node.own() || node.name == "free" ? MessageBytes()
                                                     : pack(id, fbs::HalvesRequestT{});
        };
        round.reply = [](NodeState&, fbs::MessageT&) {};
        roster.run(round);
        CHECK(roster.nodes()[0].taking_part);
        CHECK_FALSE(roster.nodes()[1].taking_part);
        CHECK_FALSE(roster.nodes()[2].taking_part);
        CHECK(roster.nodes()[3].taking_part);
        CHECK(roster.anybody());
    }

    TEST_CASE("roster: a trace that is given up looks for no hosts any more") {
        const Folder folder;
        const DeafHosts hosts(4 * kMostAtOnce);
        FakeEngine engine(engine_options(folder, "lead"));
        NodeService own(engine, {});
        own.take_key(*make_key());
        zmq::context_t context;
        const Event nudge;
        nudge.raise();
        Roster roster(
            own, context, [] {}, nudge);
        const auto from = std::chrono::steady_clock::now();
        roster.meet(hosts.endpoints());
        CHECK(std::chrono::steady_clock::now() - from < Milliseconds(4'000));
        CHECK_FALSE(roster.nodes()[1].taking_part);
    }
}
