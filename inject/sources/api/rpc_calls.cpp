#include "inject/sources/api/rpc_calls.hpp"

#include <atomic>
#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/kept_memory.hpp"
#include "inject/core/process.hpp"
#include "inject/core/request_ids.hpp"
#include "inject/core/source.hpp"

namespace ringside::inject::api {
namespace {

/// A worker's name is told while nothing is captured, as a rule: it is interned when there is a lane.
struct Worker {
    std::atomic<const char*> name;
    std::atomic<const char*> told;
    std::atomic<std::int32_t> id;
};
constinit Worker g_worker{};

void tell_worker(ThreadLane& lane) {
    // SYNC(worker): pairs with the release below.
    const char* name = g_worker.name.load(std::memory_order_acquire);
    if (name == g_worker.told.load(std::memory_order_relaxed)) return;
    const NameId id = lane.intern_cached(name);
    // None is better than "?", which would be one worker of many processes. Said again with the next call.
    if (id == schema::kInlineName) return count_loss(schema::Loss::kAttributesLost);
    g_worker.told.store(name, std::memory_order_relaxed);
    inject::set_worker(id, g_worker.id.load(std::memory_order_relaxed));
}

RpcBegin describe(SourceId source, ThreadLane& lane, const ringside_rpc* given,
                  schema::RpcSide side) {
    ringside_rpc what{};
    if (given != nullptr)
        std::memcpy(&what, given, given->size < sizeof what ? given->size : sizeof what);
    RpcBegin begin;
    begin.source = source;
    begin.side = side;
    begin.mode = what.mode == RINGSIDE_SYNC    ? schema::RpcMode::kSync
                 : what.mode == RINGSIDE_ASYNC ? schema::RpcMode::kAsync
                                               : schema::RpcMode::kUnknown;
    begin.key = next_key();
    begin.bytes = what.bytes;
    begin.module = intern_label(lane, what.service);
    begin.peer = intern_label(lane, what.peer);
    tell_worker(lane);
    begin.self = {g_process.header->worker_name.load(std::memory_order_relaxed)};
    begin.self_id =
        static_cast<std::int16_t>(g_process.header->worker_id.load(std::memory_order_relaxed));
    // The last one that is interned: where the table is full its bytes go inline, before this record.
    begin.function = lane.intern_cached(what.method != nullptr ? what.method : "");
    return begin;
}

Context context_of(std::uint64_t key, const ringside_request& id) {
    return {key, {id.trace_hi, id.trace_lo}, {id.span}};
}

ringside_request request_of(const Context& context) {
    return {context.trace.hi, context.trace.lo, context.span.value};
}

schema::RpcStatus status_of(std::uint32_t status) {
    return status <= RINGSIDE_CANCELLED ? static_cast<schema::RpcStatus>(status)
                                        : schema::RpcStatus::kError;
}

}  // namespace

void set_worker(const char* name, std::int32_t id) {
    const char* kept = name != nullptr ? keep_text(name, std::strlen(name)) : nullptr;
    if (kept == nullptr) return;
    g_worker.id.store(id, std::memory_order_relaxed);
    // SYNC(worker): the id stands before the name.
    g_worker.name.store(kept, std::memory_order_release);
    const HookScope hook(SourceId::kApi);
    if (hook) tell_worker(hook.lane());
}

template <SourceId kSource>
void client_begin(const ringside_rpc* what, ringside_call* call) {
    const HookScope hook(kSource);
    if (!hook || call == nullptr) return;
    RpcBegin begin = describe(kSource, hook.lane(), what, schema::RpcSide::kClient);
    // A call made while serving belongs to that request's trace; another one is the root of its own.
    const Context& context = hook.lane().context();
    begin.parent_key = context.key;
    begin.id = call->id.span != 0
                   ? schema::RequestId{{call->id.trace_hi, call->id.trace_lo}, {call->id.span}}
                   : new_request_id(begin.key, context.trace);
    hook.lane().rpc_begin(begin);
    *call = {};
    call->key = begin.key;
    call->id = {begin.id.trace.hi, begin.id.trace.lo, begin.id.span.value};
}

template <SourceId kSource>
void client_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes) {
    const HookScope hook(kSource);
    if (hook && call != nullptr && call->key != 0)
        hook.lane().rpc_end(kSource, call->key, status_of(status), bytes);
}

template <SourceId kSource>
void serve(ringside_call* call, int on) {
    const HookScope hook(kSource);
    if (!hook || call == nullptr || call->key == 0) return;
    ThreadLane& lane = hook.lane();
    if (on != 0) {
        call->before_key = lane.context().key;
        call->before = request_of(lane.context());
        lane.set_context(context_of(call->key, call->id));
    } else if (lane.context().key == call->key) {
        lane.set_context(context_of(call->before_key, call->before));
    }
}

template <SourceId kSource>
void server_begin(const ringside_request* id, const ringside_rpc* what, ringside_call* call) {
    if (call == nullptr) return;
    *call = {};
    {
        const HookScope hook(kSource);
        if (!hook) return;
        RpcBegin begin = describe(kSource, hook.lane(), what, schema::RpcSide::kServer);
        if (id != nullptr) begin.id = {{id->trace_hi, id->trace_lo}, {id->span}};
        hook.lane().rpc_begin(begin);
        call->key = begin.key;
        call->id = {begin.id.trace.hi, begin.id.trace.lo, begin.id.span.value};
    }
    serve<kSource>(call, 1);
}

template <SourceId kSource>
void server_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes) {
    if (call == nullptr || call->key == 0) return;
    ringside_call copy = *call;
    serve<kSource>(&copy, 0);
    const HookScope hook(kSource);
    if (hook) hook.lane().rpc_end(kSource, call->key, status_of(status), bytes);
}

#define RINGSIDE_RPC_CALLS(source)                                                        \
    template void client_begin<source>(const ringside_rpc*, ringside_call*);              \
    template void client_end<source>(const ringside_call*, std::uint32_t, std::uint64_t); \
    template void server_begin<source>(const ringside_request*, const ringside_rpc*,      \
                                       ringside_call*);                                   \
    template void server_end<source>(const ringside_call*, std::uint32_t, std::uint64_t); \
    template void serve<source>(ringside_call*, int);
RINGSIDE_RPC_CALLS(SourceId::kApi)
RINGSIDE_RPC_CALLS(SourceId::kGrpc)

}  // namespace ringside::inject::api
