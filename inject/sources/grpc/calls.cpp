#include "inject/sources/grpc/calls.hpp"

#include <time.h>

#include <atomic>
#include <cstring>
#include <limits>

#include "inject/core/attributes.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/pools.hpp"
#include "inject/core/process.hpp"
#include "inject/core/request_ids.hpp"
#include "inject/sources/grpc/library.hpp"
#include "inject/sources/grpc/sent_metadata.hpp"

namespace ringside::inject::grpc {
namespace {

using schema::RpcMode;
using schema::RpcSide;
using schema::RpcStatus;

struct ClientCall {
    std::uint64_t half;
    Context parent;
    NameId function, module, peer;
    RpcMode mode;
    bool begun;    ///< its initial metadata have been sent
    bool awaited;  ///< its status is
};

struct ServedCall {
    std::uint64_t half;
    TimeSpec deadline;
};

constexpr std::uint32_t kCallSets = 1024;
constinit KeyedTable<ClientCall, kCallSets> g_calls;
constinit KeyedTable<std::uint32_t, kCallSets>
    g_holds;  // how many hold a client's call whose status nobody has asked for
/// Entries of g_holds, or some more: where there are none, as in a server, a hold need not be looked for.
constinit std::atomic<std::uint32_t> g_held{0};
constinit KeyedTable<ServedCall, kCallSets> g_served;
constinit KeyedTable<Awaited, kCallSets> g_awaited;

/// Whose event the thread is dealing with, while that is a request.
__thread Queue* t_serving __attribute__((tls_model("initial-exec")));

/// The target of the channel that the thread has called by last.
struct Target {
    const Channel* channel;
    std::uint32_t word, channels;
    NameId name;
};
constinit __thread Target t_target __attribute__((tls_model("initial-exec"))){};
/// Counts channels that are gone: another one may lie where one has lain.
constinit std::atomic<std::uint32_t> g_channels{0};

// An address and the capture's number in one word: user space has 47 bits.
constexpr std::uint32_t kAddressBits = 48;

std::uint64_t key_of(const void* address, std::uint32_t word) {
    constexpr std::uint64_t kAddress = (std::uint64_t{1} << kAddressBits) - 1;
    return (reinterpret_cast<std::uint64_t>(address) & kAddress) | static_cast<std::uint64_t>(word)
                                                                       << kAddressBits;
}

/// @return false where the table is full: counted
template <class Table, class Value>
bool keep(Table& table, const void* address, std::uint32_t word, const Value& value) {
    const std::uint64_t key = key_of(address, word);
    const bool kept = table.put_over(key, value, [key](std::uint64_t there) {
        return there >> kAddressBits != key >> kAddressBits;
    });
    if (!kept) count_loss(schema::Loss::kTableFull);
    return kept;
}

/// As the one of text that ends; it goes on behind its end: what was interned lately is found by text that ends.
NameId intern_label(ThreadLane& lane, std::string_view text) {
    char copy[128];
    if (text.size() < sizeof copy) {
        std::memcpy(copy, text.data(), text.size());
        copy[text.size()] = 0;
        return intern_label(lane, copy);
    }
    return label_of(lane.intern(text.data(), text.size()));
}

std::uint64_t bytes_of(ByteBuffer* buffer) {
    return buffer == nullptr ? 0 : g_library.length_of(buffer);
}

NameId own_name() {
    return {g_process.header->worker_name.load(std::memory_order_relaxed)};
}

void begin_client_half(ThreadLane& lane, const ClientCall& call, const schema::RequestId& id,
                       const Batch& batch) {
    RpcBegin begin;
    begin.source = SourceId::kGrpc;
    begin.side = RpcSide::kClient;
    begin.mode = call.mode;
    begin.key = call.half;
    begin.parent_key = call.parent.key;
    begin.id = id;
    const Op* const sent = batch.find(kSendMessage);
    begin.bytes = sent != nullptr ? bytes_of(sent->sent) : 0;
    begin.function = call.function;
    begin.module = call.module;
    begin.self = own_name();
    begin.peer = call.peer;
    lane.rpc_begin(begin);
}

/// Whether the time that the caller gave is over.
bool is_past(const TimeSpec& deadline) {
    if (deadline.seconds == std::numeric_limits<std::int64_t>::max()) return false;  // none
    timespec now{};
    clock_gettime(deadline.clock == kMonotonicClock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
    return now.tv_sec != deadline.seconds ? now.tv_sec > deadline.seconds
                                          : now.tv_nsec >= deadline.nanoseconds;
}

/// From here on it does not matter who holds the call.
/// @return false: another has seen to it
bool forget_holds(const Call* call, std::uint32_t word) {
    std::uint32_t holds = 0;
    if (!g_holds.take(key_of(call, word), &holds)) return false;
    g_held.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void end_serving(ThreadLane& lane, const ServedCall& served, RpcStatus status,
                 std::uint64_t bytes) {
    lane.rpc_end(SourceId::kGrpc, served.half, status, bytes);
    if (lane.context().key == served.half) lane.set_context({});
}

}  // namespace

// --- the client's half ---

std::uint32_t channels_gone() {
    return g_channels.load(std::memory_order_relaxed);
}

void forget_channel() {
    g_channels.fetch_add(1, std::memory_order_relaxed);
}

bool is_target_known(const Channel* channel) {
    return t_target.channel == channel && t_target.word == capture_word() &&
           t_target.channels == channels_gone();
}

void add_call(const HookScope& hook, const MadeCall& made) {
    ThreadLane& lane = hook.lane();
    if (made.target != nullptr) {
        const NameId name = intern_label(lane, made.target);
        // An unknown one is not kept: it is counted with each call.
        t_target = {made.channel, name == unknown_name() ? 0 : hook.word(), made.channels, name};
    }
    ClientCall call{};
    call.half = next_key();
    call.parent = lane.context();
    call.mode = made.mode;
    const MethodName name = split_method(made.path);
    call.module = intern_label(lane, name.service);
    call.peer = t_target.name;
    call.function = intern_label(lane, name.method);
    // Before the entry: who looks for it finds the count grown.
    g_held.fetch_add(1, std::memory_order_relaxed);
    if (keep(g_holds, made.call, hook.word(), 1u)) {
        keep(g_calls, made.call, hook.word(), call);
    } else {
        g_held.fetch_sub(1, std::memory_order_relaxed);
    }
}

void hold_call(std::uint32_t word, Call* call) {
    if (g_held.load(std::memory_order_relaxed) == 0) return;
    // In place: whoever holds it keeps the entry from being taken.
    g_holds.peek(key_of(call, word), [](std::uint32_t& holds) {
        std::atomic_ref(holds).fetch_add(1, std::memory_order_relaxed);
    });
}

void drop_call(std::uint32_t word, Call* call) {
    if (g_held.load(std::memory_order_relaxed) == 0) return;
    bool last = false;
    g_holds.peek(key_of(call, word), [&](std::uint32_t& holds) {
        last = std::atomic_ref(holds).fetch_sub(1, std::memory_order_relaxed) == 1;
    });
    if (!last || !forget_holds(call, word)) return;
    ClientCall dropped;
    if (!g_calls.take(key_of(call, word), &dropped) || !dropped.begun) return;
    const HookScope hook(SourceId::kGrpc);
    if (hook) hook.lane().rpc_end(SourceId::kGrpc, dropped.half, RpcStatus::kCancelled, 0);
}

StartedBatch start_client_batch(const HookScope& hook, Call* call, const Batch& batch, void* tag) {
    StartedBatch started;
    ClientCall known;
    // Not found: made before the capture, or a server's.
    if (!g_calls.take(key_of(call, hook.word()), &known)) return started;
    const Op* const sent = known.begun ? nullptr : batch.find(kSendInitialMetadata);
    schema::RequestId id;
    if (sent != nullptr) {
        const auto& metadata = sent->initial_metadata;
        if (const Slice* own = find_traceparent(metadata.metadata, metadata.count)) {
            id = read_traceparent(*own);
        } else {
            id = new_request_id(known.half, known.parent.trace);
            started.copy = add_traceparent(metadata.metadata, metadata.count, id);
            if (started.copy == nullptr) {
                count_loss(schema::Loss::kTableFull);
                return {};
            }
        }
        known.begun = true;
    }
    if (const Op* const status = batch.find(kRecvStatusOnClient)) {
        const Op* const answer = batch.find(kRecvMessage);
        Awaited awaited{Awaited::kReply, {}};
        awaited.reply = {known.half, status->received_status.status,
                         answer != nullptr ? answer->received : nullptr};
        known.awaited = started.awaited = keep(g_awaited, tag, hook.word(), awaited);
    }
    // Until both have been seen. A half that nobody could end is not begun.
    const bool complete = known.begun && known.awaited;
    const bool kept = complete || keep(g_calls, call, hook.word(), known);
    if (!kept || complete) forget_holds(call, hook.word());
    if (sent != nullptr && (kept || started.awaited))
        begin_client_half(hook.lane(), known, id, batch);
    return started;
}

void end_call(const HookScope& hook, const Awaited& awaited) {
    const auto& reply = awaited.reply;
    hook.lane().rpc_end(SourceId::kGrpc, reply.half, status_of(*reply.status),
                        reply.answer != nullptr ? bytes_of(*reply.answer) : 0);
}

// --- the server's half ---

void await_request(const HookScope& hook, void* tag, const Arrival& arrival) {
    Awaited awaited{Awaited::kArrival, {}};
    awaited.arrival = arrival;
    keep(g_awaited, tag, hook.word(), awaited);
}

void begin_serving(const HookScope& hook, const Arrival& arrival, const char* peer) {
    ThreadLane& lane = hook.lane();
    RpcBegin begin;
    begin.source = SourceId::kGrpc;
    begin.side = RpcSide::kServer;
    begin.key = next_key();
    const TimeSpec* const deadline =
        arrival.details != nullptr ? &arrival.details->deadline : arrival.deadline;
    if (!keep(g_served, *arrival.call, hook.word(), ServedCall{begin.key, *deadline})) return;
    const std::string_view path =
        arrival.details != nullptr ? text_of(arrival.details->method)
                                   : std::string_view{arrival.method->text, arrival.method->length};
    const Slice* const header =
        find_traceparent(arrival.metadata->metadata, arrival.metadata->count);
    if (header != nullptr) begin.id = read_traceparent(*header);
    begin.bytes = arrival.payload != nullptr ? bytes_of(*arrival.payload) : 0;
    const MethodName name = split_method(path);
    begin.module = intern_label(lane, name.service);
    begin.peer = intern_label(lane, peer);
    begin.self = own_name();
    begin.function = intern_label(lane, name.method);
    lane.rpc_begin(begin);
    lane.set_context({begin.key, begin.id.trace, begin.id.span});
    t_serving = arrival.queue;
}

StartedBatch start_server_batch(const HookScope& hook, Call* call, const Batch& batch, void* tag) {
    StartedBatch started;
    const std::uint64_t key = key_of(call, hook.word());
    if (const Op* const status = batch.find(kSendStatusFromServer)) {
        ServedCall served;
        if (!g_served.take(key, &served)) return started;
        const Op* const answer = batch.find(kSendMessage);
        RpcStatus told = status_of(status->sent_status.status);
        // The caller has given up by then.
        if (told == RpcStatus::kOk && is_past(served.deadline)) told = RpcStatus::kTimeout;
        end_serving(hook.lane(), served, told, answer != nullptr ? bytes_of(answer->sent) : 0);
    } else if (const Op* const close = batch.find(kRecvCloseOnServer)) {
        bool known = false;
        g_served.peek(key, [&](const ServedCall&) { known = true; });
        Awaited awaited{Awaited::kClose, {}};
        awaited.close = {call, close->cancelled};
        started.awaited = known && keep(g_awaited, tag, hook.word(), awaited);
    }
    return started;
}

void close_serving(const HookScope& hook, const Awaited& close) {
    ServedCall served;
    if (*close.close.cancelled == 0 ||
        !g_served.take(key_of(close.close.call, hook.word()), &served))
        return;
    end_serving(hook.lane(), served,
                is_past(served.deadline) ? RpcStatus::kTimeout : RpcStatus::kCancelled, 0);
}

void leave_request(Queue* queue) {
    if (t_serving != queue) return;
    t_serving = nullptr;
    const HookScope hook(SourceId::kGrpc, Writes::kNothing);
    if (hook) hook.lane().set_context({});
}

// --- both ---

bool take_awaited(std::uint32_t word, void* tag, Awaited* out) {
    return g_awaited.take(key_of(tag, word), out);
}

void refuse_batch(const HookScope& hook, void* tag) {
    Awaited awaited;
    if (!take_awaited(hook.word(), tag, &awaited) || awaited.kind != Awaited::kReply) return;
    hook.lane().rpc_end(SourceId::kGrpc, awaited.reply.half, RpcStatus::kError, 0);
}

}  // namespace ringside::inject::grpc
