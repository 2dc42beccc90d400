// Halves of gRPC's calls, from batches and events as gRPC would hand them over to records.
#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <vector>

#include "inject/sources/grpc/calls.hpp"
#include "inject/sources/grpc/library.hpp"
#include "inject/sources/grpc/sent_metadata.hpp"
#include "sandbox.hpp"

using namespace ringside;
using namespace ringside::inject;
using namespace ringside::inject::grpc;
using schema::RecordKind;
using schema::RpcStatus;
using test::ReadRecord;
using test::Sandbox;
using test::SegmentView;

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr char kMethodText[] = "/pkg.Service/Get";
const RegisteredMethod kMethod{kMethodText, sizeof kMethodText - 1};

Call* call_at(std::uintptr_t number) {
    return reinterpret_cast<Call*>(0x7f0000000000 + number * 64);
}

struct Ops {
    std::vector<Op> ops;
    std::int32_t status = 0;

    Ops(std::initializer_list<OpType> types) {
        for (const OpType type : types) {
            Op op{};
            op.type = type;
            if (type == kRecvStatusOnClient) op.received_status.status = &status;
            ops.push_back(op);
        }
    }
    Batch batch() const { return {ops.data(), ops.size()}; }
};

/// The client makes a call, as far as its creation.
void create(const HookScope& hook, Call* call) {
    EXPECT(hook);
    add_call(hook, {call, kMethodText, nullptr, "there:1", 0, schema::RpcMode::kSync});
}

void start(const HookScope& hook, Call* call, const Ops& ops, void* tag) {
    const StartedBatch started = start_client_batch(hook, call, ops.batch(), tag);
    if (started.copy != nullptr) let_go(started.copy);
}

void come(const HookScope& hook, void* tag) {
    Awaited awaited;
    EXPECT(take_awaited(hook.word(), tag, &awaited));
    EXPECT(awaited.kind == Awaited::kReply);
    end_call(hook, awaited);
}

struct Request {
    Call* call;
    MetadataArray metadata{};
    TimeSpec deadline{kNever, 0, kMonotonicClock};

    void arrive(const HookScope& hook) {
        await_request(hook, this,
                      {&call, &metadata, nullptr, &kMethod, &deadline, nullptr, nullptr});
        Awaited awaited;
        EXPECT(take_awaited(hook.word(), this, &awaited));
        begin_serving(hook, awaited.arrival, "ipv4:1.2.3.4:5");
    }
};

std::vector<ReadRecord> records_of(const Sandbox& box, pid_t pid) {
    return SegmentView(box.segment_of(pid)).records(0);
}

RpcStatus status_of_end(const ReadRecord& record) {
    REQUIRE(record.header.kind == RecordKind::kRpcEnd);
    return static_cast<RpcStatus>(record.words[3] >> 56);
}

}  // namespace

TEST_CASE("grpc: a unary call is one half, with an id that is sent") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const HookScope hook(SourceId::kGrpc);
        create(hook, call_at(1));
        Ops ops{kSendInitialMetadata, kSendCloseFromClient, kRecvStatusOnClient};
        const StartedBatch started = start_client_batch(hook, call_at(1), ops.batch(), &ops);
        EXPECT(started.awaited);
        EXPECT(read_traceparent(started.copy[0].value).span.valid());
        let_go(started.copy);
        ops.status = kCodeDeadlineExceeded;
        come(hook, &ops);
    });
    const auto records = records_of(box, pid);
    REQUIRE(records.size() == 2);
    CHECK(records[0].header.kind == RecordKind::kRpcBegin);
    CHECK(records[0].name == "Get");
    CHECK(records[0].words[6] != 0);
    CHECK(records[1].words[2] == records[0].words[2]);
    CHECK(status_of_end(records[1]) == RpcStatus::kTimeout);
}

TEST_CASE(
    "grpc: a channel's target is asked for once, until a channel is gone or another capture "
    "begins") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const auto* channel = reinterpret_cast<const Channel*>(64);
        const Ops ops{kSendInitialMetadata};
        const auto call = [&](std::uintptr_t number, const char* target) {
            const HookScope hook(SourceId::kGrpc);
            add_call(hook, {call_at(number), kMethodText, channel, target, channels_gone(),
                            schema::RpcMode::kSync});
            start(hook, call_at(number), ops, nullptr);
        };
        EXPECT(!is_target_known(channel));
        call(1, "first:1");
        EXPECT(is_target_known(channel));
        EXPECT(!is_target_known(reinterpret_cast<const Channel*>(128)));
        call(2, nullptr);
        forget_channel();
        EXPECT(!is_target_known(channel));
        call(3, "second:2");
        EXPECT(is_target_known(channel));
        box.set_capture(true);
        EXPECT(!is_target_known(channel));
    });
    const SegmentView view(box.segment_of(pid));
    std::vector<std::string> peers;
    for (const ReadRecord& record : view.records(0))
        peers.push_back(view.name({static_cast<std::uint32_t>(record.words[8])}));
    CHECK(peers == std::vector<std::string>{"first:1", "first:1", "second:2"});
}

TEST_CASE("grpc: a stream's status is asked for later, or first") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const HookScope hook(SourceId::kGrpc);
        Ops first{kSendInitialMetadata}, message{kSendMessage}, status{kRecvStatusOnClient};
        create(hook, call_at(1));
        start(hook, call_at(1), first, &first);
        start(hook, call_at(1), message, &message);
        start(hook, call_at(1), status, &status);
        come(hook, &status);
        create(hook, call_at(1));
        start(hook, call_at(1), status, &status);
        start(hook, call_at(1), first, &first);
        come(hook, &status);
        // Complete: nothing is known of it any more.
        drop_call(hook.word(), call_at(1));
    });
    const auto records = records_of(box, pid);
    REQUIRE(records.size() == 4);
    for (const int begin : {0, 2}) {
        CHECK(records[begin].header.kind == RecordKind::kRpcBegin);
        CHECK(records[begin + 1].words[2] == records[begin].words[2]);
        CHECK(status_of_end(records[begin + 1]) == RpcStatus::kOk);
    }
}

TEST_CASE(
    "grpc: a call that is dropped without its status was cancelled; one that never began is "
    "nothing") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        {
            const HookScope hook(SourceId::kGrpc);
            const Ops first{kSendInitialMetadata};
            create(hook, call_at(1));
            create(hook, call_at(2));
            hold_call(word, call_at(1));
            start(hook, call_at(1), first, nullptr);
            drop_call(word, call_at(1));
            hook.lane().mark(SourceId::kApi, 0, {}, 0, 0);
        }
        drop_call(word, call_at(1));
        drop_call(word, call_at(1));
        drop_call(word, call_at(2));
    });
    const auto records = records_of(box, pid);
    REQUIRE(records.size() == 3);
    CHECK(records[1].header.kind == RecordKind::kMark);
    CHECK(status_of_end(records[2]) == RpcStatus::kCancelled);
}

TEST_CASE("grpc: what a capture has left behind is found by no other") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        Ops ops{kSendInitialMetadata, kRecvStatusOnClient};
        {
            const HookScope hook(SourceId::kGrpc);
            create(hook, call_at(1));
            create(hook, call_at(2));
            start(hook, call_at(1), ops, &ops);
        }
        const std::uint32_t later = box.set_capture(true);
        EXPECT(later != word);
        Awaited awaited;
        EXPECT(!take_awaited(later, &ops, &awaited));
        const HookScope hook(SourceId::kGrpc);
        EXPECT(start_client_batch(hook, call_at(2), ops.batch(), &ops).copy == nullptr);
        // And makes room: as many as there are places, several times over.
        for (std::uintptr_t i = 0; i < 100; ++i) create(hook, call_at(i));
    });
}

TEST_CASE("grpc: a call made while serving belongs to that request, and the context ends with it") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const HookScope hook(SourceId::kGrpc);
        Request request{call_at(1)};
        char text[] = "00-0123456789abcdef0123456789abcdef-fedcba9876543210-01";
        Metadata header{};
        header.key.inlined.length = 11;
        std::memcpy(header.key.inlined.bytes, "traceparent", 11);
        header.value.count = reinterpret_cast<SliceCount*>(1);
        header.value.counted = {sizeof text - 1, text};
        request.metadata = {1, 1, &header};
        request.arrive(hook);
        EXPECT(hook.lane().context().span.value == 0xfedcba9876543210);
        Ops ops{kSendInitialMetadata, kRecvStatusOnClient};
        create(hook, call_at(2));
        start(hook, call_at(2), ops, &ops);
        come(hook, &ops);
        const Ops end{kSendStatusFromServer};
        start_server_batch(hook, call_at(1), end.batch(), nullptr);
        EXPECT(hook.lane().context().key == 0);
    });
    const auto records = records_of(box, pid);
    REQUIRE(records.size() == 6);
    const auto& served = records[0];
    const auto& made = records[2];
    CHECK(served.header.kind == RecordKind::kRpcBegin);
    CHECK(records[1].header.kind == RecordKind::kContext);
    CHECK(made.words[7] == served.words[2]);
    CHECK(made.words[4] == 0x0123456789abcdef);
    CHECK(made.words[6] != served.words[6]);
    CHECK(status_of_end(records[4]) == RpcStatus::kOk);
    CHECK(records[5].header.kind == RecordKind::kContext);
}

TEST_CASE("grpc: a served call ends once: by its status, or when its caller gave it up") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const HookScope hook(SourceId::kGrpc);
        int cancelled = 0;
        Op close{};
        close.type = kRecvCloseOnServer;
        close.cancelled = &cancelled;
        const Ops status{kSendStatusFromServer};
        for (const std::int64_t deadline : {kNever, std::int64_t{1}}) {
            Request request{call_at(1)};
            request.deadline.seconds = deadline;
            for (const bool gone : {false, true}) {
                request.arrive(hook);
                EXPECT(start_server_batch(hook, call_at(1), {&close, 1}, &close).awaited);
                Awaited awaited;
                EXPECT(take_awaited(hook.word(), &close, &awaited));
                cancelled = gone ? 1 : 0;
                close_serving(hook, awaited);
                start_server_batch(hook, call_at(1), status.batch(), nullptr);
            }
        }
    });
    std::vector<RpcStatus> ends;
    for (const ReadRecord& record : records_of(box, pid))
        if (record.header.kind == RecordKind::kRpcEnd) ends.push_back(status_of_end(record));
    CHECK(ends == std::vector{RpcStatus::kOk, RpcStatus::kCancelled, RpcStatus::kTimeout,
                              RpcStatus::kTimeout});
}
