// The two halves of each gRPC call in this process, from the hooks' sightings to records.
//
//   client   created -> batch with the initial metadata: begin, traceparent ... batch with the status asked for ... its tag: end
//   server   request armed or allocated ... its tag: begin, context on ... batch with the status: end, context off (or closed as cancelled)
//
// What is between lies in fixed tables: calls by their address, what is waited for by its tag. Keys carry the capture's number: what
// a capture has left behind is found by nobody afterwards, and makes room. Whoever takes an entry out ends the half.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/sources/grpc/abi.hpp"
#include "inject/sources/grpc/metadata.hpp"

namespace ringside::inject::grpc {

/// A request that will have arrived when its tag comes: where gRPC writes what is known of it.
struct Arrival {
    Call** call;
    const MetadataArray* metadata;
    const CallDetails* details;      ///< of a request for any method; else null
    const RegisteredMethod* method;  ///< of a registered one; else null
    const TimeSpec* deadline;
    ByteBuffer** payload;  ///< null, or where the request's message will be
    Queue* queue;          ///< whose event it is
};

/// What a tag stands for.
struct Awaited {
    struct Reply {
        std::uint64_t half;
        const std::int32_t* status;
        ByteBuffer** answer;
    };
    struct Close {
        Call* call;
        const int* cancelled;
    };
    enum Kind : std::uint32_t { kReply, kArrival, kClose } kind;
    union {
        Reply reply;
        Arrival arrival;
        Close close;
    };
};

/// What add_call() is told.
struct MadeCall {
    Call* call;
    std::string_view path;
    const Channel* channel;
    const char* target;      ///< the channel's; null where is_target_known()
    std::uint32_t channels;  ///< channels_gone() before it was asked for
    schema::RpcMode mode;
};

/// Whether the thread's last call went to the same channel, whose target need not be asked for again.
bool is_target_known(const Channel* channel);
/// How many channels are gone, and one more.
std::uint32_t channels_gone();
void forget_channel();

/// A call has been created: its half will begin with its initial metadata.
void add_call(const HookScope& hook, const MadeCall& made);

/// Somebody holds the call once more, or no more: C++ does so around each batch. Where the last one goes and the call's status was never asked for, it
/// ends here, cancelled.
void hold_call(std::uint32_t word, Call* call);
void drop_call(std::uint32_t word, Call* call);

/// What a batch becomes.
struct StartedBatch {
    Metadata* copy =
        nullptr;  ///< to be sent in place of the initial metadata; let_go() when it has been started
    bool awaited = false;  ///< its tag is
};
/// A batch of a client's call, about to be started: begins the half, makes the traceparent.
StartedBatch start_client_batch(const HookScope& hook, Call* call, const Batch& batch, void* tag);
/// A batch of a server's call, about to be started: ends the half.
StartedBatch start_server_batch(const HookScope& hook, Call* call, const Batch& batch, void* tag);
/// gRPC has refused the batch.
void refuse_batch(const HookScope& hook, void* tag);

/// A request may arrive from now on.
void await_request(const HookScope& hook, void* tag, const Arrival& arrival);

/// Needs no scope: where a thread has no lane the entry must go all the same.
/// @return whether something was to be told by `tag`
bool take_awaited(std::uint32_t word, void* tag, Awaited* out);

/// The events of what was awaited.
void end_call(const HookScope& hook, const Awaited& reply);
/// @param peer  the caller's address
void begin_serving(const HookScope& hook, const Arrival& arrival, const char* peer);
void close_serving(const HookScope& hook, const Awaited& close);

/// The thread asks `queue` for its next event: whatever it was serving from there is behind it.
void leave_request(Queue* queue);

}  // namespace ringside::inject::grpc
