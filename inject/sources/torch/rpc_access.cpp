#include "inject/sources/torch/rpc_access.hpp"

#include <atomic>
#include <cstring>

#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/worker_info.hpp"

namespace ringside::inject::torch {
namespace {

struct CharVector {
    const char* begin;
    const char* end;
    const char* capacity;
};

struct Accessors {
    std::int64_t (*message_id)(const void*);
    std::int32_t (*message_type)(const void*);
    const CharVector* (*message_payload)(void*);
    const char* const* (*pipe_remote_name)(const void*);  // const std::string&
    const char* (*worker_info)(const void*);              // const WorkerInfo&
};

enum class LayoutState : std::uint32_t { kUnknown, kFound, kConfirmed, kGivenUp };

Accessors g_accessors;

// Layout and state in one word, so that a reader sees both or neither: state << 32 | id offset << 16 | name offset.
std::atomic<std::uint64_t> g_layout{0};

std::uint64_t pack(LayoutState state, WorkerLayout layout) {
    return static_cast<std::uint64_t>(state) << 32 |
           static_cast<std::uint64_t>(layout.id_offset) << 16 | layout.name_offset;
}

LayoutState state_of(std::uint64_t word) {
    return static_cast<LayoutState>(word >> 32);
}

WorkerLayout layout_of(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16)};
}

WorkerLayout layout_for(const char* info) {
    std::uint64_t word = g_layout.load(std::memory_order_relaxed);
    if (state_of(word) == LayoutState::kUnknown) {
        const WorkerLayout found = find_worker_layout(info);
        if (found.name_offset == 0) return {};
        const std::uint64_t fresh = pack(LayoutState::kFound, found);
        // Where another thread was first, its word is taken.
        if (g_layout.compare_exchange_strong(word, fresh, std::memory_order_relaxed)) word = fresh;
    }
    return state_of(word) == LayoutState::kGivenUp ? WorkerLayout{} : layout_of(word);
}

std::string_view never_null(std::string_view text) {
    return text.empty() ? std::string_view("") : text;
}
static_assert(sizeof(KeptName::text) > kMaxWorkerName);

template <class Function>
bool find(const SlotSet& libraries, const char* symbol, Function** out) {
    // Looked up again when objects have been loaded, while hooks run: a found accessor never becomes null in between.
    void* const address = find_symbol(libraries, symbol);
    if (address != nullptr) *out = reinterpret_cast<Function*>(address);
    return address != nullptr;
}

}  // namespace

bool MessageView::is_request() const {
    return (type & kRequestBit) != 0;
}

bool find_accessors(const SlotSet& libraries) {
    Accessors& api = g_accessors;
    return find(libraries, kMessageId, &api.message_id) &&
           find(libraries, kMessageType, &api.message_type) &&
           find(libraries, kMessagePayload, &api.message_payload) &&
           find(libraries, kWorkerInfo, &api.worker_info) &&
           (find(libraries, kRemoteNameNewString, &api.pipe_remote_name) ||
            find(libraries, kRemoteNameOldString, &api.pipe_remote_name));
}

MessageView view_message(void* message) {
    const CharVector* const payload = g_accessors.message_payload(message);
    return {g_accessors.message_id(message), g_accessors.message_type(message), payload->begin,
            static_cast<std::size_t>(payload->end - payload->begin)};
}

std::string_view pipe_peer(void* pipe) {
    return never_null(string_text(g_accessors.pipe_remote_name(pipe)));
}

KeptName keep_name(std::string_view name) {
    KeptName kept;
    kept.length = static_cast<std::uint32_t>(name.size());
    std::memcpy(kept.text, name.data(), name.size());
    kept.text[name.size()] = 0;
    return kept;
}

std::string_view agent_name(void* agent) {
    const char* const info = g_accessors.worker_info(agent);
    return never_null(worker_name(info, layout_for(info)));
}

std::int16_t agent_id(void* agent) {
    return destination_id(g_accessors.worker_info(agent));
}

std::int16_t destination_id(const char* worker_info) {
    return worker_id(worker_info, layout_for(worker_info));
}

bool confirm_worker_layout(const char* destination, std::string_view peer) {
    const std::uint64_t word = g_layout.load(std::memory_order_relaxed);
    if (state_of(word) == LayoutState::kConfirmed || state_of(word) == LayoutState::kGivenUp)
        return true;
    WorkerLayout layout = layout_for(destination);
    if (worker_name(destination, layout) != peer)
        layout = find_worker_layout(destination, layout.name_offset);
    const bool right = layout.name_offset != 0 && worker_name(destination, layout) == peer;
    g_layout.store(right ? pack(LayoutState::kConfirmed, layout) : pack(LayoutState::kGivenUp, {}),
                   std::memory_order_relaxed);
    return right;
}

bool own_name_known() {
    return state_of(g_layout.load(std::memory_order_relaxed)) != LayoutState::kGivenUp;
}

}  // namespace ringside::inject::torch
