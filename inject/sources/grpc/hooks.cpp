#include "inject/sources/grpc/hooks.hpp"

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/wrapped_function.hpp"
#include "inject/sources/grpc/calls.hpp"
#include "inject/sources/grpc/library.hpp"
#include "inject/sources/grpc/sent_metadata.hpp"

namespace ringside::inject::grpc {
namespace {

enum Hook : std::uint32_t {
    kQueueCreate,
    kChannelDestroy,
    kCreateCall,
    kCreateRegisteredCall,
    kCallRef,
    kCallUnref,
    kStartBatch,
    kQueueNext,
    kQueuePluck,
    kQueueFlush,
    kRequestCall,
    kRequestRegisteredCall,
    kRegisteredAllocator,
    kBatchAllocator,
    kHookCount,
};

void* g_originals[kHookCount];

template <class Function>
Function* original(Hook hook, Function*) {
    return reinterpret_cast<Function*>(g_originals[hook]);
}

bool is_on() {
    return (capture_word() & 1) != 0;
}

/// The other side's address. gRPC allocates the text, as for the program's own peer(): outside any scope.
class PeerText {
public:
    explicit PeerText(Call* call) : text_(call != nullptr ? g_library.peer_of(call) : nullptr) {}
    ~PeerText() {
        if (text_ != nullptr) g_library.free_text(text_);
    }
    PeerText(const PeerText&) = delete;
    PeerText& operator=(const PeerText&) = delete;
    const char* get() const { return text_; }

private:
    char* text_;
};

// --- calls ---

/// The queue that this thread has made to pluck from and not used yet: the call on it is one that its caller waits for.
__thread const Queue* t_plucked __attribute__((tls_model("initial-exec")));

Queue* wrap_queue_create(const void* factory, const QueueAttributes* attributes, void* reserved) {
    Queue* const queue = original(kQueueCreate, wrap_queue_create)(factory, attributes, reserved);
    if (is_on() && attributes != nullptr && attributes->completion == kCompletionPluck)
        t_plucked = queue;
    return queue;
}

void add_made_call(Call* call, const Channel* channel, const Queue* queue, std::string_view path) {
    const bool waited_for = queue == t_plucked;
    if (waited_for) t_plucked = nullptr;  // the next queue may lie where this one has lain
    const std::uint32_t channels = channels_gone();
    // Asked for once a channel, thread and capture: gRPC makes a text of it each time.
    const PeerText peer(is_target_known(channel) ? nullptr : call);
    const HookScope hook(SourceId::kGrpc, Writes::kNothing);
    if (!hook) return;
    add_call(hook, {call, path, channel, peer.get(), channels,
                    waited_for ? schema::RpcMode::kSync : schema::RpcMode::kAsync});
}

void wrap_channel_destroy(Channel* channel) {
    if (is_on()) [[unlikely]]
        forget_channel();
    original(kChannelDestroy, wrap_channel_destroy)(channel);
}

Call* wrap_create_call(Channel* channel, Call* parent, std::uint32_t propagation, Queue* queue,
                       Slice method, const Slice* host, TimeSpec deadline, void* reserved) {
    // gRPC takes its own hold on the text: ours is the caller's, which is there until we return.
    Call* const call = original(kCreateCall, wrap_create_call)(channel, parent, propagation, queue,
                                                               method, host, deadline, reserved);
    if (is_on() && call != nullptr) add_made_call(call, channel, queue, text_of(method));
    return call;
}

Call* wrap_create_registered_call(Channel* channel, Call* parent, std::uint32_t propagation,
                                  Queue* queue, const RegisteredCall* method, TimeSpec deadline,
                                  void* reserved) {
    Call* const call = original(kCreateRegisteredCall, wrap_create_registered_call)(
        channel, parent, propagation, queue, method, deadline, reserved);
    if (is_on() && call != nullptr) add_made_call(call, channel, queue, text_of(method->path));
    return call;
}

void wrap_call_ref(Call* call) {
    const std::uint32_t word = capture_word();
    if ((word & 1) != 0) [[unlikely]]
        hold_call(word, call);
    original(kCallRef, wrap_call_ref)(call);
}

void wrap_call_unref(Call* call) {
    const std::uint32_t word = capture_word();
    if ((word & 1) != 0) [[unlikely]]
        drop_call(word, call);
    original(kCallUnref, wrap_call_unref)(call);
}

/// Starts a batch that matters, in a place of its own: the usual way keeps nothing on its stack.
[[gnu::noinline]] std::int32_t start_recorded(Call* call, const Op* ops, std::size_t count,
                                              void* tag, void* reserved) {
    auto* const start =
        reinterpret_cast<std::int32_t (*)(Call*, const Op*, std::size_t, void*, void*)>(
            g_originals[kStartBatch]);
    const Batch batch(ops, count);
    const bool of_server =
        batch.find(kSendStatusFromServer) != nullptr || batch.find(kRecvCloseOnServer) != nullptr;
    const bool of_client = !of_server && (batch.find(kSendInitialMetadata) != nullptr ||
                                          batch.find(kRecvStatusOnClient) != nullptr);
    StartedBatch started;
    if ((of_server || of_client) && count <= kMostOps) {
        const HookScope hook(SourceId::kGrpc);
        if (hook)
            started = of_server ? start_server_batch(hook, call, batch, tag)
                                : start_client_batch(hook, call, batch, tag);
    }
    std::int32_t error = 0;
    if (started.copy == nullptr) {
        error = start(call, ops, count, tag, reserved);
    } else {
        Op changed[kMostOps];
        std::memcpy(changed, ops, count * sizeof(Op));
        auto& metadata = changed[batch.find(kSendInitialMetadata) - ops].initial_metadata;
        metadata.metadata = started.copy;
        ++metadata.count;
        error = start(call, changed, count, tag, reserved);
        let_go(started.copy);
    }
    if (error != 0 && started.awaited) {
        const HookScope hook(SourceId::kGrpc);
        if (hook) refuse_batch(hook, tag);
    }
    return error;
}

std::int32_t wrap_start_batch(Call* call, const Op* ops, std::size_t count, void* tag,
                              void* reserved) {
    if (is_on()) [[unlikely]]
        return start_recorded(call, ops, count, tag, reserved);
    return original(kStartBatch, wrap_start_batch)(call, ops, count, tag, reserved);
}

// --- events ---

/// Something has come out of a queue. What it was waited for by is still there: its owner hears of it after us.
void see_event(void* tag, bool success) {
    const std::uint32_t word = capture_word();
    Awaited awaited;
    if ((word & 1) == 0 || !take_awaited(word, tag, &awaited)) return;
    if (awaited.kind != Awaited::kArrival) {
        const HookScope hook(SourceId::kGrpc);
        if (!hook) return;
        if (awaited.kind == Awaited::kReply) end_call(hook, awaited);
        if (awaited.kind == Awaited::kClose) close_serving(hook, awaited);
        return;
    }
    // A server that shuts down gives back its requests, without a call.
    if (!success || *awaited.arrival.call == nullptr) return;
    const PeerText peer(*awaited.arrival.call);
    const HookScope hook(SourceId::kGrpc);
    if (hook) begin_serving(hook, awaited.arrival, peer.get());
}

Event wrap_next(Queue* queue, TimeSpec deadline, void* reserved) {
    if (is_on()) [[unlikely]]
        leave_request(queue);
    const Event event = original(kQueueNext, wrap_next)(queue, deadline, reserved);
    if (event.type == kOpComplete && is_on()) [[unlikely]]
        see_event(event.tag, event.success != 0);
    return event;
}

Event wrap_pluck(Queue* queue, void* tag, TimeSpec deadline, void* reserved) {
    const Event event = original(kQueuePluck, wrap_pluck)(queue, tag, deadline, reserved);
    if (event.type == kOpComplete && is_on()) [[unlikely]]
        see_event(event.tag, event.success != 0);
    return event;
}

/// An event that gRPC has kept for the thread that caused it.
std::int32_t wrap_flush(Queue* queue, void** tag, std::int32_t* success) {
    const std::int32_t any = original(kQueueFlush, wrap_flush)(queue, tag, success);
    if (any != 0 && is_on()) [[unlikely]]
        see_event(*tag, *success != 0);
    return any;
}

// --- requests ---

void await_armed(void* tag, const Arrival& arrival) {
    const HookScope hook(SourceId::kGrpc, Writes::kNothing);
    if (hook) await_request(hook, tag, arrival);
}

void forget_armed(std::int32_t error, void* tag) {
    const std::uint32_t word = capture_word();
    Awaited awaited;
    if (error != 0 && (word & 1) != 0) take_awaited(word, tag, &awaited);
}

std::int32_t wrap_request_call(Server* server, Call** call, CallDetails* details,
                               MetadataArray* metadata, Queue* bound, Queue* notified, void* tag) {
    if (is_on()) [[unlikely]]
        await_armed(tag, {call, metadata, details, nullptr, nullptr, nullptr, notified});
    const std::int32_t error = original(kRequestCall, wrap_request_call)(
        server, call, details, metadata, bound, notified, tag);
    forget_armed(error, tag);
    return error;
}

std::int32_t wrap_request_registered_call(Server* server, const RegisteredMethod* method,
                                          Call** call, TimeSpec* deadline, MetadataArray* metadata,
                                          ByteBuffer** payload, Queue* bound, Queue* notified,
                                          void* tag) {
    if (is_on()) [[unlikely]]
        await_armed(tag, {call, metadata, nullptr, method, deadline, payload, notified});
    const std::int32_t error = original(kRequestRegisteredCall, wrap_request_registered_call)(
        server, method, call, deadline, metadata, payload, bound, notified, tag);
    forget_armed(error, tag);
    return error;
}

// C++'s sync and callback servers give the core a function that makes room for each request.
constexpr std::uint32_t kAllocators = 4096;
using AllocatorPool = FunctionPool<const RegisteredMethod*, kAllocators>;
AllocatorPool g_allocators;

template <class Allocation>
Allocation* allocate(Allocation* result, const AllocatorPool::Entry* entry) {
    using Invoke = Allocation*(Allocation*, const void*);
    return reinterpret_cast<Invoke*>(entry->original.invoker)(result, &entry->original);
}

RegisteredAllocation* call_registered_allocator(RegisteredAllocation* result, const void* storage) {
    const AllocatorPool::Entry* const entry = AllocatorPool::entry_of(storage);
    allocate(result, entry);
    if (is_on()) [[unlikely]]
        await_armed(result->tag, {result->call, result->metadata, nullptr, entry->extra,
                                  result->deadline, result->payload, result->queue});
    return result;
}

BatchAllocation* call_batch_allocator(BatchAllocation* result, const void* storage) {
    allocate(result, AllocatorPool::entry_of(storage));
    if (is_on()) [[unlikely]]
        await_armed(result->tag, {result->call, result->metadata, result->details, nullptr, nullptr,
                                  nullptr, result->queue});
    return result;
}

/// @return what to hand over in place of `function`
StdFunction* wrap_allocator(StdFunction* function, void* invoker, const RegisteredMethod* method,
                            StdFunction* wrapper) {
    if (function->manager != nullptr &&
        g_allocators.wrap(function, invoker, method, wrapper) != nullptr)
        return wrapper;
    count_loss(schema::Loss::kTableFull);
    return function;
}

void wrap_registered_allocator(Server* server, Queue* queue, const RegisteredMethod* method,
                               StdFunction* function) {
    StdFunction wrapper{};
    StdFunction* const given = wrap_allocator(
        function, reinterpret_cast<void*>(call_registered_allocator), method, &wrapper);
    original(kRegisteredAllocator, wrap_registered_allocator)(server, queue, method, given);
    AllocatorPool::destroy(&wrapper);
}

void wrap_batch_allocator(Server* server, Queue* queue, StdFunction* function) {
    StdFunction wrapper{};
    StdFunction* const given =
        wrap_allocator(function, reinterpret_cast<void*>(call_batch_allocator), nullptr, &wrapper);
    original(kBatchAllocator, wrap_batch_allocator)(server, queue, given);
    AllocatorPool::destroy(&wrapper);
}

// Braces and casts alone: the compiler puts the table together, for the constructor that reads it runs before any that would.
SlotHook g_hooks[kHookCount] = {
    {"grpc_completion_queue_create", reinterpret_cast<void*>(wrap_queue_create),
     &g_originals[kQueueCreate], 0},
    {"grpc_channel_destroy", reinterpret_cast<void*>(wrap_channel_destroy),
     &g_originals[kChannelDestroy], 0},
    {"grpc_channel_create_call", reinterpret_cast<void*>(wrap_create_call),
     &g_originals[kCreateCall], 0},
    {"grpc_channel_create_registered_call", reinterpret_cast<void*>(wrap_create_registered_call),
     &g_originals[kCreateRegisteredCall], 0},
    {"grpc_call_ref", reinterpret_cast<void*>(wrap_call_ref), &g_originals[kCallRef], 0},
    {"grpc_call_unref", reinterpret_cast<void*>(wrap_call_unref), &g_originals[kCallUnref], 0},
    {"grpc_call_start_batch", reinterpret_cast<void*>(wrap_start_batch), &g_originals[kStartBatch],
     0},
    {"grpc_completion_queue_next", reinterpret_cast<void*>(wrap_next), &g_originals[kQueueNext], 0},
    {"grpc_completion_queue_pluck", reinterpret_cast<void*>(wrap_pluck), &g_originals[kQueuePluck],
     0},
    {"grpc_completion_queue_thread_local_cache_flush", reinterpret_cast<void*>(wrap_flush),
     &g_originals[kQueueFlush], 0},
    {"grpc_server_request_call", reinterpret_cast<void*>(wrap_request_call),
     &g_originals[kRequestCall], 0},
    {"grpc_server_request_registered_call", reinterpret_cast<void*>(wrap_request_registered_call),
     &g_originals[kRequestRegisteredCall], 0},
    {kSetRegisteredAllocator, reinterpret_cast<void*>(wrap_registered_allocator),
     &g_originals[kRegisteredAllocator], 0},
    {kSetBatchAllocator, reinterpret_cast<void*>(wrap_batch_allocator),
     &g_originals[kBatchAllocator], 0},
};

SlotSet g_slots = {{"libgrpc.so", "libgrpc_unsecure.so", "libgpr.so"}, {}, g_hooks, kHookCount};

}  // namespace

SlotSet& grpc_slots() {
    return g_slots;
}

const char* first_missing() {
    if (g_hooks[kStartBatch].slots == 0)
        return "no slot of grpc_call_start_batch: nothing recorded";
    if (!object_loaded("libgrpc++")) return nullptr;
    if (g_hooks[kCreateRegisteredCall].slots == 0)
        return "no slot of grpc_channel_create_registered_call: no client halves";
    if (g_hooks[kQueueNext].slots == 0 || g_hooks[kQueuePluck].slots == 0)
        return "no slot of a completion queue: halves stay open";
    if (g_hooks[kRegisteredAllocator].slots == 0)
        return "no slot of Server::SetRegisteredMethodAllocator: no halves of sync servers";
    return nullptr;
}

}  // namespace ringside::inject::grpc
