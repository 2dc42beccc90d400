// Function names from payloads: pickles as torch 1.13 writes them (Python's with protocol 4, the JIT's with protocol 2), and anything else.
#include <doctest/doctest.h>

#include <string>

#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/payload_name.hpp"
#include "inject/sources/torch/rpc_error.hpp"

namespace {

using namespace ringside::inject::torch;

std::string little_endian(std::size_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return text;
}

std::string short_text(const std::string& text) {
    return "\x8c" + little_endian(text.size(), 1) + text + "\x94";
}

std::string long_text(const std::string& text) {
    return "X" + little_endian(text.size(), 4) + text;
}

const std::string kFrame = std::string("\x80\x04\x95", 3) + little_endian(100, 8);

// PythonUDF(func, (1,), {}) up to its arguments.
std::string python_pickle(const std::string& module, const std::string& function) {
    return kFrame + short_text("torch.distributed.rpc.internal") + short_text("PythonUDF") +
           "\x93\x94" + short_text(module) + short_text(function) + "\x93\x94K\x01.";
}

std::string jit_pickle(const std::string& items) {
    return std::string("\x80\x02(", 3) + items + "t.";
}

PayloadName name_of(const std::string& payload) {
    return payload_name(payload.data(), payload.size());
}

std::string wrapped(const std::string& inner, const std::string& items) {
    const std::string tail = jit_pickle(items);
    std::string length;
    for (int i = 7; i >= 0; --i) length += static_cast<char>(tail.size() >> (8 * i) & 0xff);
    return inner + tail + length;
}

TEST_CASE("payload: a Python call names module and qualified name") {
    const std::string payload = std::string(1, '\0') + python_pickle("__main__", "Svc.bump");
    CHECK(name_of(payload).module == "__main__");
    CHECK(name_of(payload).function == "Svc.bump");
}

TEST_CASE("payload: a module that was memoized is found again") {
    const std::string payload = std::string(1, '\1') + kFrame +
                                short_text("torch.distributed.rpc.internal") +
                                short_text("PythonUDF") + "\x93\x94" + std::string("h\0", 2) +
                                short_text("helper") + "\x93\x94.";
    CHECK(name_of(payload).module == "torch.distributed.rpc.internal");
    CHECK(name_of(payload).function == "helper");
}

TEST_CASE("payload: protocol 2 globals are lines") {
    const std::string payload = std::string(1, '\0') + "\x80\x02" +
                                "ctorch.distributed.rpc.internal\nPythonUDF\nq" +
                                std::string(1, '\0') + "cjob\nstep\n.";
    CHECK(name_of(payload).module == "job");
    CHECK(name_of(payload).function == "step");
}

TEST_CASE("payload: a builtin is named without its overload") {
    const std::string payload = jit_pickle(
        long_text("a string argument") + "q" + std::string(1, '\0') + "K\x05" +
        long_text("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor") +
        "q\x01" + long_text("torch.ops.aten.add"));
    CHECK(name_of(payload).module.empty());
    CHECK(name_of(payload).function == "aten::add");
    const std::string plain = jit_pickle(long_text("aten::ones(int[] size) -> Tensor") +
                                         long_text("torch.ops.aten.ones"));
    CHECK(name_of(plain).function == "aten::ones");
}

TEST_CASE("payload: TorchScript keeps its qualified name") {
    CHECK(name_of(jit_pickle(long_text("__torch__.job.scripted"))).function ==
          "__torch__.job.scripted");
}

TEST_CASE("payload: a remote call has its Python pickle inside") {
    const std::string payload = jit_pickle(long_text(python_pickle("__mp_main__", "udf_with_ops")) +
                                           "q" + std::string(1, '\0') + "K\x01K\x02");
    CHECK(name_of(payload).module == "__mp_main__");
    CHECK(name_of(payload).function == "udf_with_ops");
}

TEST_CASE("payload: a call with more arguments than are walked is named from its end") {
    std::string items = "]";
    for (int i = 0; i < 10000; ++i) items += "K\x01";
    items += long_text("__torch__.many");
    CHECK(name_of(jit_pickle(items)).function == "__torch__.many");
}

TEST_CASE("payload: a wrapped call shows its inner type and name") {
    const std::string inner = std::string(1, '\0') + python_pickle("m", "f");
    const std::string wide = "\x8a\x08" + std::string("\x01\0\0\0\0\0\x03\0", 8);
    const std::string autograd =
        wrapped(inner, wide + wide + "M" + little_endian(kPythonCall, 2) + "K\x03");
    CHECK(effective_type(kForwardAutograd, autograd.data(), autograd.size()) == kPythonCall);
    CHECK(name_of(autograd).function == "f");
    const std::string profiled = wrapped(inner, "M" + little_endian(kPythonRemoteCall, 2));
    CHECK(effective_type(kWithProfiling, profiled.data(), profiled.size()) == kPythonRemoteCall);
    CHECK(effective_type(kScriptCall, profiled.data(), profiled.size()) == kScriptCall);
}

TEST_CASE("payload: a truncated or alien payload gives no name and reads nothing beyond it") {
    const std::string whole = std::string(1, '\0') + python_pickle("__main__", "function");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        // A copy of exactly that size, so that a sanitizer sees a read beyond it.
        const std::string cut = whole.substr(0, size);
        const PayloadName name = payload_name(cut.data(), cut.size());
        if (size + 7 < whole.size()) CHECK(name.function.empty());
        effective_type(kForwardAutograd, cut.data(), cut.size());
    }
    CHECK(payload_name(nullptr, 0).function.empty());
    CHECK(name_of("not a pickle").function.empty());
    std::string noise = "\x80\x02";
    std::uint64_t state = 1;
    for (int round = 0; round < 20000; ++round) {
        noise.resize(2);
        for (int i = 0; i < 60; ++i) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            noise += static_cast<char>(state >> 56);
        }
        name_of(noise);
        effective_type(kWithProfiling, noise.data(), noise.size());
    }
}

TEST_CASE("payload: torch's own requests have names of their own, calls have none") {
    CHECK(std::string(bookkeeping_name(kRrefUserDelete)) == "rref_user_delete");
    CHECK(std::string(bookkeeping_name(kPythonFetch)) == "to_here");
    CHECK(bookkeeping_name(kPythonCall) == nullptr);
    CHECK(std::string(bookkeeping_name(0x1ff)) == "rpc_message");
}

TEST_CASE("rpc: an error's text tells a timeout from a lost peer from an exception") {
    using ringside::schema::RpcStatus;
    CHECK(status_of_error("RPCErr:1:RPC ran for more than set timeout (50 ms) and will now be "
                          "marked with an error") == RpcStatus::kTimeout);
    CHECK(status_of_error(
              "eof (this error originated at tensorpipe/transport/shm/connection_impl.cc:259)") ==
          RpcStatus::kPeerGone);
    CHECK(status_of_error("pipe closed (this error originated at ...)") == RpcStatus::kPeerGone);
    CHECK(status_of_error("On WorkerInfo(id=1, name=worker1):\nTimeoutError('timeout')") ==
          RpcStatus::kError);
    CHECK(status_of_error("something else") == RpcStatus::kError);
}

}  // namespace
