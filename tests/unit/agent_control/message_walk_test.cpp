// A small message can tell one thing a hundred thousand times: it is refused before it is taken apart, whatever its kind.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/control/convert.hpp"
#include "agent/control/message_walk.hpp"
#include "agent/control/messages.hpp"
#include "halves.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

using Builder = flatbuffers::FlatBufferBuilder;

template <class Table>
auto told(Builder& builder, flatbuffers::Offset<Table> one, std::size_t times) {
    return builder.CreateVector(std::vector<flatbuffers::Offset<Table>>(times, one));
}

/// A text that no kind's own bound refuses.
auto text_of(Builder& builder, std::size_t times) {
    return builder.CreateString(std::string(times == 1 ? 10 : 4000, 'x'));
}

/// What is told `times` times is one and the same.
template <class Make>
MessageBytes telling(fbs::Content kind, std::size_t times, Make make) {
    Builder builder;
    // Room for so many tables.
    builder.CreateString(std::string(8 * times, ' '));
    const auto content = make(builder, times);
    fbs::FinishMessageBuffer(builder, fbs::CreateMessage(builder, 1, 1, kind, content));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

/// Told once it is taken, told often it is refused.
template <class Make>
void check_told_once(fbs::Content kind, std::size_t often, Make make) {
    CAPTURE(fbs::EnumNameContent(kind));
    CHECK(unpack_message(telling(kind, 1, make)));
    const MessageBytes bytes = telling(kind, often, make);
    CHECK(bytes.size() < kMostRequestBytes);
    const auto message = unpack_message(bytes);
    REQUIRE_FALSE(message);
    CHECK(message.error().code == ErrorCode::kInput);
    CHECK(message.error().message.find("again and again") != std::string::npos);
}

MessageBytes one_node(std::size_t times) {
    return telling(fbs::Content::TraceReply, times, [](Builder& builder, std::size_t count) {
        const auto name = builder.CreateString(std::string(count == 1 ? 10 : 100'000, 'x'));
        return fbs::CreateTraceReply(builder, 1, 0,
                                     told(builder, fbs::CreateTraceNode(builder, name), count))
            .Union();
    });
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("messages: one text that is told many times is refused") {
        check_told_once(fbs::Content::TraceRequest, 1000, [](Builder& builder, std::size_t times) {
            return fbs::CreateTraceRequest(builder, told(builder, text_of(builder, times), times))
                .Union();
        });
        check_told_once(fbs::Content::RelayOpenRequest, 200,
                        [](Builder& builder, std::size_t times) {
                            return fbs::CreateRelayOpenRequest(
                                       builder, told(builder, text_of(builder, times), times))
                                .Union();
                        });
    }

    TEST_CASE("messages: one table that is told many times, with its texts, is refused") {
        CHECK(unpack_message(one_node(1)));
        const MessageBytes bytes = one_node(20'000);  // 2 GB, taken apart
        CHECK(bytes.size() < kMostRequestBytes);
        CHECK(unpack_message(bytes).error().code == ErrorCode::kInput);
        check_told_once(fbs::Content::HalvesReply, 40'000, [](Builder& builder, std::size_t times) {
            const auto name = text_of(builder, times);
            fbs::HalfBuilder half(builder);
            half.add_self(name);
            half.add_peer(name);
            return fbs::CreateHalvesReply(builder, 0, 1, told(builder, half.Finish(), times))
                .Union();
        });
        check_told_once(fbs::Content::PeersReply, 16'000, [](Builder& builder, std::size_t times) {
            const auto name = text_of(builder, times);
            const auto noted = fbs::CreateNotedAgent(builder, name, name, name);
            return fbs::CreatePeersReply(builder, 0, 0, told(builder, noted, times)).Union();
        });
        check_told_once(fbs::Content::StopReply, 20'000, [](Builder& builder, std::size_t times) {
            const auto source =
                fbs::CreateSource(builder, 1, fbs::SourceLevel::Full, text_of(builder, times));
            const auto sources = told(builder, source, 1);
            fbs::ProcessResultBuilder process(builder);
            process.add_sources(sources);
            const auto processes = told(builder, process.Finish(), times);
            fbs::StopReplyBuilder stop(builder);
            stop.add_processes(processes);
            return stop.Finish().Union();
        });
        check_told_once(
            fbs::Content::ProcessesReply, 20'000, [](Builder& builder, std::size_t times) {
                const auto source =
                    fbs::CreateSource(builder, 1, fbs::SourceLevel::Full, text_of(builder, times));
                const auto sources = told(builder, source, 1);
                fbs::ProcessBuilder process(builder);
                process.add_sources(sources);
                const auto status = fbs::CreateProcessStatus(builder, process.Finish());
                return fbs::CreateProcessesReply(builder, 0, told(builder, status, times)).Union();
            });
    }

    TEST_CASE("messages: one list that is told many times is refused") {
        const auto relayed = [](Builder& builder, std::size_t times) {
            const auto nodes = builder.CreateVector(std::vector<std::uint32_t>{0});
            const auto body =
                builder.CreateVector(std::vector<std::uint8_t>(times == 1 ? 10 : 100'000));
            return told(builder, fbs::CreateRelayed(builder, nodes, body), times);
        };
        check_told_once(fbs::Content::RelayReply, 1000, [&](Builder& builder, std::size_t times) {
            return fbs::CreateRelayReply(builder, relayed(builder, times)).Union();
        });
        check_told_once(fbs::Content::RelayRequest, 1000, [&](Builder& builder, std::size_t times) {
            return fbs::CreateRelayRequest(builder, relayed(builder, times)).Union();
        });
    }

    TEST_CASE("messages: a list of references that is told many times is not even verified") {
        // The verifier would look at three thousand million texts.
        const MessageBytes bytes =
            telling(fbs::Content::ProcessesReply, 50'000, [](Builder& builder, std::size_t times) {
                const auto words = told(builder, builder.CreateString(""), 60'000);
                fbs::ProcessBuilder process(builder);
                process.add_command_line(words);
                const auto status = fbs::CreateProcessStatus(builder, process.Finish());
                return fbs::CreateProcessesReply(builder, 0, told(builder, status, times)).Union();
            });
        const auto began = std::chrono::steady_clock::now();
        CHECK_FALSE(unpack_message(bytes));
        CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(1));
    }

    TEST_CASE("messages: of what is no request an agent reads the head alone") {
        for (const std::size_t times : {1, 20'000}) {
            const auto bytes = one_node(times);
            CHECK(unpack_message(bytes, Speaker::kClient).error().code == ErrorCode::kUsage);
            CHECK(kind_of(bytes, Speaker::kClient).error().code == ErrorCode::kUsage);
            CHECK(unpack_message(bytes, Speaker::kNode).error().code == ErrorCode::kInput);
            CHECK(id_of_refused(bytes) == 1);
        }
        CHECK(unpack_message(pack(1, fbs::PingRequestT{}), Speaker::kClient));
        CHECK_FALSE(unpack_message(pack(1, fbs::PingRequestT{}), Speaker::kNode));
        CHECK(unpack_message(pack(1, fbs::PingReplyT{}), Speaker::kNode));
        CHECK_FALSE(unpack_message(pack(1, fbs::PingReplyT{}), Speaker::kClient));
    }

    TEST_CASE("messages: what is packed tells no more than its bytes, and an honest bit less") {
        fbs::TraceRequestT trace;
        for (int i = 0; i < 1000; ++i) trace.peers.push_back("tcp://10.0.0." + std::to_string(i));
        trace.pids.assign(1000, 7);
        const MessageBytes bytes = pack(1, std::move(trace));
        CHECK(tells_at_most(bytes, bytes.size()));
        CHECK_FALSE(tells_at_most(bytes, bytes.size() / 2));
    }

    TEST_CASE("messages: halves with names of any honest length are taken") {
        for (const std::size_t length : {1, 100, 200, 201, 4000}) {
            const std::string name(length, 'n');
            const std::vector<Half> halves(1000, client(name, name, 1, 5, 9));
            CHECK(unpack_message(pack_halves(3, halves, 0, 1000)));
        }
    }
}
