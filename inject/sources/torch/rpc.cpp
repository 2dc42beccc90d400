#include "inject/sources/torch/rpc.hpp"

#include <cstring>
#include <initializer_list>

#include "inject/core/emit.hpp"
#include "inject/core/wrapped_function.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/collectives.hpp"
#include "inject/sources/torch/rpc_access.hpp"
#include "inject/sources/torch/rpc_calls.hpp"
#include "inject/sources/torch/worker_info.hpp"

namespace ringside::inject::torch {
namespace {

// The table of hooks: one entry a mangling. `kVariants` have one calling convention and share a wrapper, each with its own original.
enum Hook : std::uint32_t {
    kHookSend,
    kHookWriteByValue,
    kHookWriteByReference,
    kHookRead,
    kHookServe,
    kHookErrorNewString,
    kHookErrorOldString,
    kHookComplete,
    kHookRespond,
    kHookPoolRun,
    kHookCount,
};

void* g_originals[kHookCount];

template <class Function>
Function* original(Hook hook) {
    return reinterpret_cast<Function*>(g_originals[hook]);
}

/// What a wrapped read knows: who reads, and from whom.
struct ReadExtra {
    void* agent;
    KeptName peer;
};

// One read is armed for each connection that is served and for each call in flight.
constexpr std::uint32_t kReads = 8192;
constexpr std::uint32_t kTasks = 4096;
using ReadPool = FunctionPool<ReadExtra, kReads>;
using TaskPool = FunctionPool<CarriedContext, kTasks>;
ReadPool g_reads;
TaskPool g_tasks;

__thread SendInProgress t_send __attribute__((tls_model("initial-exec")));

// Serves `context` from here on, and tells what was before. Nothing to restore where it is not serving.
CarriedContext switch_context(ThreadLane& lane, const CarriedContext& context) {
    if (!context.serving()) return {};
    const CarriedContext before = carry_context(lane);
    apply_context(lane, context);
    return before;
}

void* wrap_send(void* result, void* agent, const char* destination, void** message, float timeout,
                const void* device_map) {
    using Send = void*(void*, void*, const char*, void**, float, const void*);
    // A send() that threw left this behind on the thread: each one begins anew.
    t_send = {};
    {
        HookScope hook(Writes::kNothing);
        if (hook) t_send = {agent, destination, now(), 0, 0};
    }
    void* const returned =
        original<Send>(kHookSend)(result, agent, destination, message, timeout, device_map);
    if (t_send.call != 0) {
        HookScope hook(Writes::kNothing);
        std::uint64_t future = 0;
        std::memcpy(&future, result, sizeof future);
        if (hook) call_returned(hook.lane(), t_send, future);
    }
    t_send = {};
    return returned;
}

template <Hook kHook>
void wrap_write(void* agent, void** pipe, void** message, void* devices, void* streams,
                void* callback) {
    using Write = void(void*, void**, void**, void*, void*, void*);
    {
        HookScope hook;
        if (hook && *message != nullptr) {
            const MessageView view = view_message(*message);
            if (view.is_request()) {
                begin_call(hook.lane(), agent, *pipe, view, &t_send);
            } else {
                end_serving(hook.lane(), agent, *pipe, view);
            }
        }
    }
    original<Write>(kHook)(agent, pipe, message, devices, streams, callback);
}

// A message has been read (or the connection is gone: no message).
CarriedContext sight_message(ThreadLane& lane, const ReadExtra& read, void* message) {
    const MessageView view = view_message(message);
    if (view.is_request()) {
        begin_serving(lane, read.agent, read.peer.view(), message, view);
        return {};
    }
    return switch_context(lane, end_call(lane, read.agent, view));
}

void call_read(const void* storage, const void* error, void** message, void* streams) {
    using Invoke = void(const void*, const void*, void**, void*);
    ReadPool::Entry* const entry = ReadPool::entry_of(storage);
    CarriedContext before;
    {
        HookScope hook;
        if (hook && message != nullptr && *message != nullptr)
            before = sight_message(hook.lane(), entry->extra, *message);
    }
    reinterpret_cast<Invoke*>(entry->original.invoker)(&entry->original, error, message, streams);
    if (before.word != 0) restore_context(before);
}

void wrap_read(void* agent, void** pipe, StdFunction* callback) {
    using Read = void(void*, void**, StdFunction*);
    StdFunction wrapper;
    bool wrapped = false;
    {
        HookScope hook(Writes::kNothing);
        if (hook && callback->manager != nullptr) {
            const ReadExtra extra{agent, keep_name(pipe_peer(*pipe))};
            wrapped = g_reads.wrap(callback, reinterpret_cast<void*>(call_read), extra, &wrapper);
            if (!wrapped) count_loss(schema::Loss::kTableFull);
        }
    }
    original<Read>(kHookRead)(agent, pipe, wrapped ? &wrapper : callback);
    if (wrapped) ReadPool::destroy(&wrapper);
}

void* wrap_serve(void* result, const void* self, void* message, void* streams) {
    using Serve = void*(void*, const void*, void*, void*);
    CarriedContext before;
    {
        HookScope hook(Writes::kNothing);
        if (hook) {
            before = carry_context(hook.lane());
            enter_request(hook.lane(), message);
        }
    }
    void* const returned = original<Serve>(kHookServe)(result, self, message, streams);
    if (before.word != 0) restore_context(before);
    return returned;
}

std::uint64_t future_of(void** atomic_future) {
    std::uint64_t future = 0;
    std::memcpy(&future, static_cast<const char*>(*atomic_future) + kFutureOffset, sizeof future);
    return future;
}

template <Hook kHook>
void wrap_error(void* agent, void** atomic_future, const char* const* text) {
    using Error = void(void*, void**, const char* const*);
    CarriedContext before;
    {
        HookScope hook;
        // Torch takes the Future away from a call that has ended already.
        if (hook && *atomic_future != nullptr) {
            const CarriedContext parent =
                fail_call(hook.lane(), future_of(atomic_future), {*text, std::strlen(*text)});
            before = switch_context(hook.lane(), parent);
        }
    }
    original<Error>(kHook)(agent, atomic_future, text);
    if (before.word != 0) restore_context(before);
}

// The end of calls whose response came to a read that was armed before the capture: connections answer in order, so for a while each response
// goes to the read of an earlier call.
void wrap_complete(void* agent, void** atomic_future, void** message, void* streams) {
    using Complete = void(void*, void**, void**, void*);
    CarriedContext before;
    {
        HookScope hook(Writes::kNothing);
        if (hook && *message != nullptr) {
            const CarriedContext parent = end_call(hook.lane(), agent, view_message(*message));
            before = switch_context(hook.lane(), parent);
        }
    }
    original<Complete>(kHookComplete)(agent, atomic_future, message, streams);
    if (before.word != 0) restore_context(before);
}

void wrap_respond(void* agent, void** pipe, void* future, std::uint64_t message_id, void* streams) {
    using Respond = void(void*, void**, void*, std::uint64_t, void*);
    original<Respond>(kHookRespond)(agent, pipe, future, message_id, streams);
    HookScope hook(Writes::kNothing);
    if (hook) give_up_serving(hook.lane(), agent, *pipe, message_id);
}

void call_task(const void* storage) {
    using Invoke = void(const void*);
    TaskPool::Entry* const entry = TaskPool::entry_of(storage);
    CarriedContext before;
    {
        HookScope hook(Writes::kNothing);
        if (hook) before = switch_context(hook.lane(), entry->extra);
    }
    reinterpret_cast<Invoke*>(entry->original.invoker)(&entry->original);
    if (before.word != 0) restore_context(before);
}

void wrap_pool_run(void* pool, StdFunction* task) {
    using Run = void(void*, StdFunction*);
    StdFunction wrapper;
    bool wrapped = false;
    {
        HookScope hook(Writes::kNothing);
        if (hook && hook.lane().context().key != 0 && task->manager != nullptr) {
            const CarriedContext context = carry_context(hook.lane());
            wrapped = g_tasks.wrap(task, reinterpret_cast<void*>(call_task), context, &wrapper);
            if (!wrapped) count_loss(schema::Loss::kTableFull);
        }
    }
    original<Run>(kHookPoolRun)(pool, wrapped ? &wrapper : task);
    if (wrapped) TaskPool::destroy(&wrapper);
}

SlotHook g_hooks[kHookCount + kCollectiveHooks] = {
    {kSend, reinterpret_cast<void*>(wrap_send), &g_originals[kHookSend], 0},
    {kPipeWriteByValue, reinterpret_cast<void*>(wrap_write<kHookWriteByValue>),
     &g_originals[kHookWriteByValue], 0},
    {kPipeWriteByReference, reinterpret_cast<void*>(wrap_write<kHookWriteByReference>),
     &g_originals[kHookWriteByReference], 0},
    {kPipeRead, reinterpret_cast<void*>(wrap_read), &g_originals[kHookRead], 0},
    {kServe, reinterpret_cast<void*>(wrap_serve), &g_originals[kHookServe], 0},
    {kMarkErrorNewString, reinterpret_cast<void*>(wrap_error<kHookErrorNewString>),
     &g_originals[kHookErrorNewString], 0},
    {kMarkErrorOldString, reinterpret_cast<void*>(wrap_error<kHookErrorOldString>),
     &g_originals[kHookErrorOldString], 0},
    {kMarkComplete, reinterpret_cast<void*>(wrap_complete), &g_originals[kHookComplete], 0},
    {kRespond, reinterpret_cast<void*>(wrap_respond), &g_originals[kHookRespond], 0},
    {kPoolRun, reinterpret_cast<void*>(wrap_pool_run), &g_originals[kHookPoolRun], 0},
};

SlotSet g_slots = {
    {"libtorch_cpu.so", "libc10.so", "libtensorpipe.so", "libtensorpipe-"},
    {"libtorch", "libc10"},
    g_hooks,
    kHookCount + kCollectiveHooks,
};

bool has_slots(std::initializer_list<Hook> variants) {
    for (const Hook hook : variants)
        if (g_hooks[hook].slots != 0) return true;
    return false;
}

bool g_accessors_found;

// In the order of what their want costs.
const char* first_missing() {
    if (!g_accessors_found)
        return "RPC not recorded: an accessor of Message, Pipe or the agent is missing";
    if (!has_slots({kHookWriteByValue, kHookWriteByReference}))
        return "RPC not recorded: no slot of TensorPipeAgent::pipeWrite";
    if (!has_slots({kHookServe}))
        return "no slot of RequestCallback: served operators without their request";
    if (!has_slots({kHookRead}))
        return "no slot of TensorPipeAgent::pipeRead: requests begin when served";
    if (!has_slots({kHookSend})) return "no slot of TensorPipeAgent::send: failed calls stay open";
    if (!has_slots({kHookErrorNewString, kHookErrorOldString}))
        return "no slot of markFutureWithError: failed calls stay open";
    if (!has_slots({kHookPoolRun}))
        return "no slot of ThreadPool::run: callbacks without their request";
    return nullptr;
}

}  // namespace

SlotSet& torch_slots() {
    return g_slots;
}

RpcAbility prepare_rpc() {
    RpcAbility ability;
    ability.present = find_symbol(g_slots, kAgentVtable) != nullptr;
    if (!ability.present) return ability;
    if (g_hooks[kHookCount].symbol == nullptr) add_collective_hooks(&g_hooks[kHookCount]);
    scan_slots(g_slots);
    prepare_collectives(g_slots);
    g_accessors_found = find_accessors(g_slots);
    ability.calls = g_accessors_found && has_slots({kHookWriteByValue, kHookWriteByReference});
    ability.missing = first_missing();
    return ability;
}

void attach_rpc() {
    write_slots(g_slots, true);
}

void detach_rpc() {
    write_slots(g_slots, false);
    forget_calls();
}

}  // namespace ringside::inject::torch
