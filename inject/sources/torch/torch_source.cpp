#include "inject/sources/torch/torch_source.hpp"

#include <atomic>
#include <cstring>

#include "inject/sources/torch/callbacks_lock.hpp"
#include "inject/sources/torch/memory.hpp"
#include "inject/sources/torch/operators.hpp"
#include "inject/sources/torch/python_part.hpp"
#include "inject/sources/torch/rpc.hpp"
#include "inject/sources/torch/rpc_access.hpp"

namespace ringside::inject {
namespace torch {
namespace {

using schema::SourceId;
using schema::SourceLevel;

OperatorAbility g_operators;
RpcAbility g_rpc;
MemorySlots g_memory_slots;
std::atomic<std::uint32_t> g_options{0};  // what the capture asks for
std::atomic<bool> g_attached{false};
std::atomic<std::uint32_t> g_publishing{0};

/// A reason made of parts, "; " between them, cut where it is full.
class Reason {
public:
    void add(const char* part) {
        if (part == nullptr) return;
        if (length_ != 0) append("; ");
        append(part);
    }
    bool empty() const { return length_ == 0; }
    const char* text() const { return text_; }

private:
    void append(const char* part) {
        const std::size_t left = sizeof text_ - 1 - length_;
        const std::size_t bytes = strnlen(part, left);
        std::memcpy(text_ + length_, part, bytes);
        length_ += bytes;
        text_[length_] = 0;
    }

    char text_[schema::kReasonBytes] = {};
    std::size_t length_ = 0;
};

const char* python_reason() {
    // A C++ program has no Python part to want: only where torch's Python binding is mapped.
    if (!object_loaded("libtorch_python")) return nullptr;
    switch (python_part()) {
        case PythonPart::kAbsent:
            return "no Python part: sync or async unknown";
        case PythonPart::kFailed:
            return "Python part can't wrap torch.distributed.rpc.api: sync or async unknown";
        case PythonPart::kPresent:
        case PythonPart::kWrapping:
            break;
    }
    return nullptr;
}

bool asked_for(schema::CaptureOption option) {
    return (g_options.load(std::memory_order_relaxed) & static_cast<std::uint32_t>(option)) != 0;
}

void publish_now() {
    // SYNC(attached): pairs with the release when it has attached.
    if (!g_attached.load(std::memory_order_acquire)) return;
    if (!g_operators.callbacks) {
        set_level(SourceId::kTorch, SourceLevel::kNotInstrumented,
                  "libtorch_cpu exports no RecordFunction callbacks that we know");
        return;
    }
    Reason reason;
    if (g_rpc.present) {
        reason.add(g_rpc.missing);
        if (g_rpc.calls && !own_name_known())
            reason.add("WorkerInfo's layout unknown: calls are not joined");
        if (g_rpc.calls) reason.add(python_reason());
    }
    reason.add(g_operators.missing_fields);
    if (asked_for(schema::CaptureOption::kRecordShapes) && !g_operators.shapes)
        reason.add("input shapes unavailable: libtorch_cpu exports no inputSizes()");
    if (asked_for(schema::CaptureOption::kProfileMemory) && !g_memory_slots.cpu)
        reason.add("CPU memory unavailable: libc10 has no slots of ProfiledCPUMemoryReporter");
    if (asked_for(schema::CaptureOption::kProfileMemory) && !g_memory_slots.cuda)
        reason.add("CUDA memory unavailable: libc10_cuda has no slot of its report");
    set_level(SourceId::kTorch, reason.empty() ? SourceLevel::kFull : SourceLevel::kDegraded,
              reason.text());
}

bool present() {
    return object_loaded("libtorch_cpu.so");
}

void prepare() {
    g_operators = prepare_operators(torch_slots());
    g_rpc = prepare_rpc();
    g_memory_slots = prepare_memory();
}

void attach(const AttachRequest& request) {
    g_options.store(request.options, std::memory_order_relaxed);
    if (g_operators.callbacks)
        attach_operators(asked_for(schema::CaptureOption::kRecordShapes) && g_operators.shapes);
    if (g_rpc.calls) attach_rpc();
    if (asked_for(schema::CaptureOption::kProfileMemory)) {
        attach_memory();
    } else {
        detach_memory();
    }
    // SYNC(attached): what prepare() found is published with it.
    g_attached.store(true, std::memory_order_release);
    publish_level();
}

void detach() {
    if (!g_attached.load(std::memory_order_relaxed)) return;
    detach_memory();
    if (g_rpc.calls) detach_rpc();
    if (g_operators.callbacks) detach_operators();
    g_attached.store(false, std::memory_order_release);
    set_level(SourceId::kTorch, SourceLevel::kOff, "");
}

}  // namespace

void publish_level() {
    // Two threads may see changes at once: the one inside goes round again for the other.
    if (g_publishing.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    std::uint32_t seen = 1;
    do {
        publish_now();
        seen = g_publishing.fetch_sub(seen, std::memory_order_acq_rel) - seen;
    } while (seen != 0);
}

}  // namespace torch

const Source kTorchSource = {
    .id = schema::SourceId::kTorch,
    .name = "torch",
    .present = torch::present,
    .prepare = torch::prepare,
    .attach = torch::attach,
    .detach = torch::detach,
    .hold_for_fork = torch::hold_callbacks_lock,
    .release_after_fork = torch::release_callbacks_lock,
};

}  // namespace ringside::inject
