#include "inject/sources/torch/late_requests.hpp"

#include <atomic>
#include <cstring>

namespace ringside::inject::torch {
namespace {

constexpr std::uint32_t kEntries =
    256;  // connections of a process whose first request is being served
constexpr std::uint64_t kFree = 0;
constexpr std::uint64_t kBusy = 1;

struct LateRequest {
    std::atomic<std::uint64_t> state;  // kFree, kBusy, or the half's key + 1
    std::atomic<std::uint64_t> message_id;
    std::uint32_t word;
    alignas(
        RpcBegin) unsigned char begin[sizeof(RpcBegin)];  // bytes, so that the table lies in .bss
};

constinit LateRequest g_late[kEntries]{};
std::atomic<std::uint32_t> g_in_use{0};

// What this thread served last: its response is written right after the handler, when its context is over.
__thread std::uint64_t t_last_key __attribute__((tls_model("initial-exec")));

bool take(LateRequest& entry, std::uint64_t state, RpcBegin* out) {
    // SYNC(late): sees what remember_late() stored.
    if (!entry.state.compare_exchange_strong(state, kBusy, std::memory_order_acquire,
                                             std::memory_order_relaxed))
        return false;
    std::memcpy(out, entry.begin, sizeof *out);
    const bool current = entry.word == capture_word();
    entry.state.store(kFree, std::memory_order_release);
    g_in_use.fetch_sub(1, std::memory_order_relaxed);
    return current;
}

}  // namespace

bool remember_late(const RpcBegin& begin) {
    for (LateRequest& entry : g_late) {
        std::uint64_t expected = kFree;
        if (!entry.state.compare_exchange_strong(expected, kBusy, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
            continue;
        std::memcpy(entry.begin, &begin, sizeof begin);
        entry.word = capture_word();
        entry.message_id.store(begin.wire_id, std::memory_order_relaxed);
        g_in_use.fetch_add(1, std::memory_order_relaxed);
        // SYNC(late): publishes the entry.
        entry.state.store(begin.key + 1, std::memory_order_release);
        t_last_key = begin.key;
        return true;
    }
    count_loss(schema::Loss::kTableFull);
    return false;
}

bool take_late(std::uint64_t message_id, std::uint64_t serving_key, RpcBegin* out) {
    if (g_in_use.load(std::memory_order_relaxed) == 0) return false;
    LateRequest* only = nullptr;
    std::uint64_t only_state = 0;
    std::uint32_t candidates = 0;
    for (LateRequest& entry : g_late) {
        const std::uint64_t state = entry.state.load(std::memory_order_acquire);
        if (state <= kBusy || entry.message_id.load(std::memory_order_relaxed) != message_id)
            continue;
        if (state == serving_key + 1 || state == t_last_key + 1) return take(entry, state, out);
        only = &entry;
        only_state = state;
        ++candidates;
    }
    if (candidates > 1) count_loss(schema::Loss::kUnmatchedEnd);
    return candidates == 1 && take(*only, only_state, out);
}

void forget_late() {
    for (LateRequest& entry : g_late) {
        const std::uint64_t state = entry.state.load(std::memory_order_relaxed);
        RpcBegin ignored;
        if (state > kBusy) take(entry, state, &ignored);
    }
}

}  // namespace ringside::inject::torch
