#include "inject/sources/torch/python_part.hpp"

#include <atomic>

#include "inject/core/emit.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/sources/torch/torch_source.hpp"

namespace ringside::inject::torch {
namespace {

std::atomic<int> g_python_part{static_cast<int>(PythonPart::kAbsent)};

__thread schema::RpcMode t_mode __attribute__((tls_model("initial-exec")));

void (*g_incref)(void*);

template <schema::RpcMode kMode>
void* tell(void* none, void* /*arguments*/) {
    t_mode = kMode;
    g_incref(none);
    return none;
}

/// CPython's PyMethodDef. A function object refers to it as long as it lives, and may outlive all modules: so it lies here.
struct MethodDef {
    const char* name;
    void* (*function)(void*, void*);
    int flags;
    const char* doc;
};

using schema::RpcMode;
constexpr int kNoArguments = 4;  // METH_NOARGS
constexpr char kName[] = "ringside_rpc_mode";
constinit MethodDef g_tellers[] = {{kName, tell<RpcMode::kUnknown>, kNoArguments, nullptr},
                                   {kName, tell<RpcMode::kSync>, kNoArguments, nullptr},
                                   {kName, tell<RpcMode::kAsync>, kNoArguments, nullptr},
                                   {kName, tell<RpcMode::kAsyncJit>, kNoArguments, nullptr},
                                   {kName, tell<RpcMode::kRemote>, kNoArguments, nullptr}};

}  // namespace

PythonPart python_part() {
    return static_cast<PythonPart>(g_python_part.load(std::memory_order_relaxed));
}

schema::RpcMode take_rpc_mode() {
    const schema::RpcMode mode = t_mode;
    t_mode = schema::RpcMode::kUnknown;
    return mode;
}

}  // namespace ringside::inject::torch

using ringside::inject::torch::PythonPart;

extern "C" {

/// The Python part says how far it is: a PythonPart.
/// @return 1: the shim understands this Python part
[[gnu::visibility("default")]] int ringside_python_attached(int state) {
    if (state < static_cast<int>(PythonPart::kPresent) ||
        state > static_cast<int>(PythonPart::kFailed))
        return 0;
    ringside::inject::torch::g_python_part.store(state, std::memory_order_relaxed);
    ringside::inject::torch::publish_level();
    return 1;
}

/// Where the capture word lies: bit 0 is on while a capture runs. Read it, never write it. Who asks keeps the address: a forked child that was left
/// without a segment gets it now, for until then the word is one that never changes.
[[gnu::visibility("default")]] const void* ringside_capture_word() {
    ringside::inject::make_pending_segment();
    return ringside::inject::capture_word_address();
}

/// A PyMethodDef of a function without arguments, to be bound to None: the RPC that this thread makes next is of this schema::RpcMode; 0 takes
/// it back. Functions of its own kind are what Python calls fastest, several times as fast as a foreign one.
/// @param incref  Py_IncRef
/// @return null where there is no such mode
[[gnu::visibility("default")]] void* ringside_torch_rpc_mode(unsigned mode, void (*incref)(void*)) {
    using namespace ringside::inject::torch;
    g_incref = incref;
    return mode < sizeof g_tellers / sizeof *g_tellers ? &g_tellers[mode] : nullptr;
}

}  // extern "C"
