// How long a command waits for a trace whose leader says nothing.
#include <doctest/doctest.h>

#include <chrono>

#include "agents.hpp"
#include "scripted_agent.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

using Clock = std::chrono::steady_clock;
constexpr Milliseconds kSilence{400};
constexpr std::uint64_t kCapture = 7;

/// Begins a trace, and has its thread at something that takes three times as long as a command waits; its loop answers.
class Busy {
public:
    /// @param leads  what it says that it leads
    Busy(const Folder& folder, std::uint64_t leads)
        : leads_(leads), agent_(ipc_endpoint(folder, "busy"), [this](fbs::MessageT* message) {
              return answers(message);
          }) {}
    const std::string& endpoint() const { return agent_.endpoint; }

private:
    std::vector<MessageBytes> answers(fbs::MessageT* message) {
        if (message == nullptr) return {};
        switch (message->content.type) {
            case fbs::Content::TraceRequest: {
                asked_ = message->id;
                begun_ = Clock::now();
                fbs::ProgressT progress;
                progress.capture_id = kCapture;
                return {pack(asked_, std::move(progress))};
            }
            case fbs::Content::StatusRequest: {
                fbs::StatusReplyT status;
                status.leading = leads_;
                std::vector<MessageBytes> said{pack(message->id, std::move(status))};
                if (Clock::now() - begun_ < 3 * kSilence) return said;
                fbs::TraceReplyT reply;
                reply.capture_id = kCapture;
                said.push_back(pack(asked_, std::move(reply)));
                return said;
            }
            case fbs::Content::PingRequest:
                return {ping_reply(*message)};
            default:
                return {};
        }
    }

    const std::uint64_t leads_;
    std::uint64_t asked_ = 0;
    SteadyTime begun_;
    ScriptedAgent agent_;
};

ringside::schema::Result<fbs::TraceReplyT> traced(const Busy& busy, TraceHooks hooks = {}) {
    auto client = Client::connect(busy.endpoint());
    REQUIRE(client);
    hooks.silence = kSilence;
    return (*client)->trace(fbs::TraceRequestT{}, hooks);
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("client: a leader that is at something for long, and says so, is waited for") {
        const Folder folder;
        const Busy busy(folder, kCapture);
        const auto reply = traced(busy);
        REQUIRE(reply);
        CHECK(reply->capture_id == kCapture);
    }

    TEST_CASE("client: one that leads it no more is not, whatever else it answers") {
        const Folder folder;
        const Busy anew(folder, 0);
        const SteadyTime from = Clock::now();
        const auto reply = traced(anew);
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kNoAgent);
        CHECK(Clock::now() - from < 2 * kSilence);
    }

    TEST_CASE("client: who gives a trace up waits for no more than its end") {
        const Folder folder;
        const Busy busy(folder, kCapture);
        TraceHooks hooks;
        hooks.wish = [] { return TraceHooks::Wish::kCancel; };
        const auto reply = traced(busy, hooks);
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kNoAgent);
    }
}
