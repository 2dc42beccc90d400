#include "inject/sources/torch/rpc_calls.hpp"

#include <atomic>

#include "inject/core/attributes.hpp"
#include "inject/core/pools.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/late_requests.hpp"
#include "inject/sources/torch/payload_name.hpp"
#include "inject/sources/torch/python_part.hpp"
#include "inject/sources/torch/rpc_error.hpp"
#include "inject/sources/torch/seen_payloads.hpp"
#include "inject/sources/torch/torch_source.hpp"

namespace ringside::inject::torch {
namespace {

using schema::RpcMode;
using schema::RpcSide;
using schema::RpcStatus;

struct ClientCall {
    std::uint64_t half;
    // The Future's address once send() has returned; before that a tag that no address equals (odd) and no other call has.
    std::uint64_t future;
    CarriedContext parent;
};

struct ServedRequest {
    std::uint64_t half;
    std::uint32_t word;
};

/// An error that came before its send() had returned.
struct EarlyError {
    std::atomic<std::uint64_t> future;  // 0: free
    std::atomic<std::uint64_t> ticks;
    std::atomic<std::uint32_t> status;
};

constexpr std::uint32_t kCallSets = 1024;
constexpr std::uint32_t kEarlyErrors = 64;

constinit KeyedTable<ClientCall, kCallSets> g_calls;
constinit KeyedTable<ServedRequest, kCallSets> g_served;
constinit KeyedTable<CarriedContext, kCallSets> g_arrived;  // by Message*
constinit EarlyError g_early[kEarlyErrors]{};
std::atomic<std::uint32_t> g_early_next{0};
std::atomic<std::uint32_t> g_early_count{0};
std::atomic<void*> g_worker_agent{nullptr};

std::uint64_t call_key(void* agent, std::int64_t id) {
    const auto where = reinterpret_cast<std::uint64_t>(agent);
    return schema::mix64(where ^ schema::mix64(static_cast<std::uint64_t>(id) + 1)) | 2;
}

std::uint64_t served_key(schema::SpanId span) {
    return span.value | 2;
}

std::atomic_ref<std::uint64_t> future_of(ClientCall& call) {
    return std::atomic_ref<std::uint64_t>(call.future);
}

std::uint64_t future_tag(std::uint64_t half) {
    return half << 1 | 1;
}

// A name of one record among several: where the table is full it is "?", as the one inline name belongs to the function.
NameId intern_table_only(ThreadLane& lane, std::string_view text) {
    if (text.empty()) return schema::kNoName;
    return label_of(lane.intern(text.data(), text.size()));
}

// None where the table is full: workers are told apart by their names.
NameId intern_worker(ThreadLane& lane, std::string_view name) {
    if (name.empty()) return schema::kNoName;
    const NameId id = lane.intern_cached(name.data());
    return id == schema::kInlineName ? schema::kNoName : id;
}

RpcMode mode_of(std::int32_t type) {
    switch (type) {
        case kScriptCall:
        case kPythonCall:
        case kForwardAutograd:
        case kWithProfiling:
            return RpcMode::kUnknown;
        case kScriptRemoteCall:
        case kPythonRemoteCall:
            return RpcMode::kRemote;
        case kScriptFetch:
        case kPythonFetch:
            return RpcMode::kFetch;
        default:
            return RpcMode::kInternal;
    }
}

// The function is interned last: an inline name belongs to the next record.
CalledNames called_names(ThreadLane& lane, const MessageView& message, std::int32_t type) {
    CalledNames names{};
    if (const char* const own = bookkeeping_name(type)) {
        names.function = lane.intern_cached(own);
        return names;
    }
    if (find_seen(message.payload, message.bytes, names_epoch(), &names)) return names;
    const PayloadName called = payload_name(message.payload, message.bytes);
    names.module = intern_table_only(lane, called.module);
    const std::string_view function = called.function.empty() ? "?" : called.function;
    names.function = lane.intern(function.data(), function.size());
    if (names.function != schema::kInlineName)
        keep_seen(message.payload, message.bytes, names_epoch(), names);
    return names;
}

// Name, module, mode: what the message itself tells. The function is interned last.
void describe(ThreadLane& lane, const MessageView& message, RpcBegin* begin) {
    const std::int32_t type = effective_type(message.type, message.payload, message.bytes);
    begin->source = SourceId::kTorch;
    begin->mode = mode_of(type);
    begin->bytes = message.bytes;
    begin->wire_type = static_cast<std::uint32_t>(message.type);
    begin->wire_id = static_cast<std::uint64_t>(message.id);
    const CalledNames names = called_names(lane, message, type);
    begin->module = names.module;
    begin->function = names.function;
}

void note_worker(ThreadLane& lane, void* agent, std::string_view self) {
    if (g_worker_agent.load(std::memory_order_relaxed) == agent || self.empty()) return;
    set_worker(intern_worker(lane, self), agent_id(agent));
    g_worker_agent.store(agent, std::memory_order_relaxed);
}

CarriedContext finish_call(ThreadLane& lane, const ClientCall& call, RpcStatus status,
                           std::uint64_t bytes) {
    if (call.parent.word != capture_word()) return {};
    lane.rpc_end(SourceId::kTorch, call.half, status, bytes);
    return call.parent;
}

bool take_by_future(std::uint64_t future, ClientCall* out) {
    return g_calls.take_if(
        [future](ClientCall& call) {
            return future_of(call).load(std::memory_order_seq_cst) == future;
        },
        out);
}

void remember_early(std::uint64_t future, RpcStatus status) {
    EarlyError& error =
        g_early[g_early_next.fetch_add(1, std::memory_order_relaxed) % kEarlyErrors];
    error.future.store(0, std::memory_order_relaxed);
    error.ticks.store(now().value, std::memory_order_relaxed);
    error.status.store(static_cast<std::uint32_t>(status), std::memory_order_relaxed);
    // SYNC(early): with the sending thread's store of the Future, sequentially consistent: at least one of the two sees the other.
    error.future.store(future, std::memory_order_seq_cst);
    g_early_count.fetch_add(1, std::memory_order_seq_cst);
}

// An error of `future` that is not older than `since`: addresses are used again.
bool take_early(std::uint64_t future, Ticks since, RpcStatus* status) {
    for (EarlyError& error : g_early) {
        if (error.future.load(std::memory_order_seq_cst) != future) continue;
        const bool newer = error.ticks.load(std::memory_order_relaxed) >= since.value;
        *status = static_cast<RpcStatus>(error.status.load(std::memory_order_relaxed));
        std::uint64_t expected = future;
        if (error.future.compare_exchange_strong(expected, 0, std::memory_order_relaxed) && newer)
            return true;
    }
    return false;
}

}  // namespace

void begin_call(ThreadLane& lane, void* agent, void* pipe, const MessageView& message,
                SendInProgress* send) {
    const std::string_view peer = pipe_peer(pipe);
    const bool sending = send->agent == agent && send->destination != nullptr;
    if (sending && !confirm_worker_layout(send->destination, peer)) publish_level();
    const std::string_view self = agent_name(agent);
    note_worker(lane, agent, self);
    RpcBegin begin;
    begin.key = next_key();
    const ClientCall call{begin.key, future_tag(begin.key), carry_context(lane)};
    const std::uint64_t key = call_key(agent, message.id);
    if (!g_calls.put(key, call)) {
        count_loss(schema::Loss::kTableFull);
        return;
    }
    begin.side = RpcSide::kClient;
    begin.ticks = sending ? send->begin : now();
    begin.parent_key = call.parent.context.key;
    begin.id.span =
        schema::torch_span_id(self.data(), peer.data(), static_cast<std::uint64_t>(message.id));
    begin.self = intern_worker(lane, self);
    begin.peer = intern_worker(lane, peer);
    begin.self_id = agent_id(agent);
    begin.peer_id = sending ? destination_id(send->destination) : static_cast<std::int16_t>(-1);
    describe(lane, message, &begin);
    if (begin.mode == RpcMode::kUnknown) begin.mode = take_rpc_mode();
    if (begin.mode == RpcMode::kRemote) take_rpc_mode();
    lane.rpc_begin(begin);
    if (sending) {
        send->call = key;
        send->half = begin.key;
    }
}

void call_returned(ThreadLane& lane, const SendInProgress& send, std::uint64_t future) {
    if (send.call == 0) return;
    g_calls.peek(send.call, [&](ClientCall& call) {
        // Where the entry is another call's by now, its tag differs.
        std::uint64_t expected = future_tag(send.half);
        future_of(call).compare_exchange_strong(expected, future, std::memory_order_seq_cst);
    });
    RpcStatus status = RpcStatus::kError;
    if (g_early_count.load(std::memory_order_seq_cst) == 0 ||
        !take_early(future, send.begin, &status))
        return;
    ClientCall call;
    if (take_by_future(future, &call)) finish_call(lane, call, status, 0);
}

CarriedContext end_call(ThreadLane& lane, void* agent, const MessageView& message) {
    ClientCall call;
    if (!g_calls.take(call_key(agent, message.id), &call)) return {};
    const RpcStatus status = message.type == kException ? RpcStatus::kError : RpcStatus::kOk;
    return finish_call(lane, call, status, message.bytes);
}

CarriedContext fail_call(ThreadLane& lane, std::uint64_t future, std::string_view text) {
    const RpcStatus status = status_of_error(text);
    ClientCall call;
    if (!take_by_future(future, &call)) {
        remember_early(future, status);
        if (!take_by_future(future, &call)) return {};
    }
    return finish_call(lane, call, status, 0);
}

void begin_serving(ThreadLane& lane, void* agent, std::string_view peer, void* message,
                   const MessageView& view) {
    const std::string_view self = agent_name(agent);
    note_worker(lane, agent, self);
    RpcBegin begin;
    begin.ticks = now();
    begin.key = next_key();
    begin.side = RpcSide::kServer;
    begin.id.span =
        schema::torch_span_id(peer.data(), self.data(), static_cast<std::uint64_t>(view.id));
    const CarriedContext context{{begin.key, {}, begin.id.span}, capture_word()};
    if (!g_served.put(served_key(begin.id.span), {begin.key, context.word})) {
        count_loss(schema::Loss::kTableFull);
        return;
    }
    if (!g_arrived.put(reinterpret_cast<std::uint64_t>(message), context))
        count_loss(schema::Loss::kTableFull);
    begin.self = intern_worker(lane, self);
    begin.peer = intern_worker(lane, peer);
    begin.self_id = agent_id(agent);
    describe(lane, view, &begin);
    lane.rpc_begin(begin);
}

void enter_request(ThreadLane& lane, void* message) {
    CarriedContext context;
    const bool arrived = g_arrived.take(reinterpret_cast<std::uint64_t>(message), &context);
    if (arrived && context.word == capture_word()) return lane.set_context(context.context);
    // Its read was armed before the capture: who called is known when the response is written.
    RpcBegin begin;
    begin.ticks = now();
    begin.key = next_key();
    begin.side = RpcSide::kServer;
    const MessageView view = view_message(message);
    describe(lane, view, &begin);
    if (begin.function == schema::kInlineName) begin.function = schema::kNoName;
    if (remember_late(begin)) lane.set_context({begin.key, {}, {}});
}

void end_serving(ThreadLane& lane, void* agent, void* pipe, const MessageView& message) {
    const std::string_view peer = pipe_peer(pipe);
    const std::string_view self = agent_name(agent);
    const schema::SpanId span =
        schema::torch_span_id(peer.data(), self.data(), static_cast<std::uint64_t>(message.id));
    ServedRequest served;
    if (!g_served.take(served_key(span), &served)) {
        RpcBegin begin;
        const std::uint64_t id = static_cast<std::uint64_t>(message.id);
        if (!take_late(id, lane.context().key, &begin)) return;
        note_worker(lane, agent, self);
        begin.id.span = span;
        begin.self = intern_worker(lane, self);
        begin.peer = intern_worker(lane, peer);
        begin.self_id = agent_id(agent);
        lane.rpc_begin(begin);
        served = {begin.key, capture_word()};
    }
    if (served.word != capture_word()) return;
    const RpcStatus status = message.type == kException ? RpcStatus::kError : RpcStatus::kOk;
    lane.rpc_end(SourceId::kTorch, served.half, status, message.bytes);
    // A handler that threw has passed our wrapper by: without this, its thread would go on serving it.
    if (lane.context().key == served.half) lane.set_context({});
}

void give_up_serving(ThreadLane& lane, void* agent, void* pipe, std::uint64_t id) {
    const schema::SpanId span =
        schema::torch_span_id(pipe_peer(pipe).data(), agent_name(agent).data(), id);
    ServedRequest served;
    if (!g_served.take(served_key(span), &served) || served.word != capture_word()) return;
    lane.rpc_end(SourceId::kTorch, served.half, RpcStatus::kError, 0);
}

void forget_calls() {
    g_calls.clear();
    g_served.clear();
    g_arrived.clear();
    forget_late();
    for (EarlyError& error : g_early) error.future.store(0, std::memory_order_relaxed);
    g_early_count.store(0, std::memory_order_relaxed);
    g_worker_agent.store(nullptr, std::memory_order_relaxed);
}

}  // namespace ringside::inject::torch
