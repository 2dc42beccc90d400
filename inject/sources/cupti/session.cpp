// CUPTI during a capture: subscribed to, our clock in it, its kinds on; and all of that off again. What libringside_cupti.so gives the shim.
#include <atomic>

#include "inject/core/kernel_calls.hpp"
#include "inject/sources/cupti/buffers.hpp"
#include "inject/sources/cupti/devices.hpp"
#include "inject/sources/cupti/library.hpp"
#include "inject/sources/cupti/records.hpp"

// NOLINTBEGIN(readability-identifier-naming): the C library's own name
extern "C" int __cxa_atexit(void (*)(void*), void*, void*);
// NOLINTEND(readability-identifier-naming)

namespace ringside::inject::cupti {
namespace {

using schema::SourceLevel;

struct KindName {
    std::uint32_t kind;
    const char* name;
};
/// In the order in which they are asked for. Without the first there is nothing to see; the others are missed, and said.
constexpr KindName kKinds[] = {
    {kConcurrentKernel, "kernels"},
    {kMemcpy, "copies"},
    {kMemcpyPeer, "peer copies"},
    {kMemset, "memsets"},
    {kRuntime, "calls of the runtime"},
    {kDriver, "calls of the driver"},
    {kSynchronization, "synchronisation"},
    {kOverhead, "overhead"},
    {kCudaEvent, "events"},
    {kExternalCorrelation, "external correlation"},
};

const Shim* g_shim = nullptr;
const Cupti* g_cupti = nullptr;
pid_t g_pid = 0;
Subscriber g_subscriber = nullptr;
bool g_shared = false;
std::uint64_t g_enabled = 0;  ///< a bit a kind
/// Who takes it from active stops the session: detach(), or the process's end on another thread.
std::atomic<bool> g_active{false};
std::atomic<bool> g_exiting{false};  ///< nothing is started any more
/// Threads that hand records over just now: the process must not end in between.
std::atomic<std::uint32_t> g_delivering{0};
std::atomic<std::uint32_t> g_word{0};
std::atomic<std::uint32_t> g_own_thread{0};
std::atomic<bool> g_overflowed{false};

class Delivering {
public:
    Delivering() { g_delivering.fetch_add(1, std::memory_order_seq_cst); }
    ~Delivering() { g_delivering.fetch_sub(1, std::memory_order_seq_cst); }
    Delivering(const Delivering&) = delete;
    Delivering& operator=(const Delivering&) = delete;
};

/// A bound, not a delay: what takes a second to hand over is left.
void await_deliveries() {
    constexpr int kTries = 10'000;
    const timespec pause{0, 100'000};
    for (int i = 0; i < kTries && g_delivering.load(std::memory_order_seq_cst) != 0; ++i)
        sleep_for(pause);
}

// --- what CUPTI calls ---

void ignore_callback(void*, std::uint32_t, std::uint32_t, const void*) {}

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    const bool may_decline = g_cupti->version >= kMayDeclineBuffers;
    *most_records = 0;
    *buffer = take_buffer(may_decline ? kBuffers : kBuffersOfOld);
    *size = *buffer != nullptr ? kBufferBytes : 0;
    if (!may_decline && buffers_out() >= kBuffers)
        g_overflowed.store(true, std::memory_order_relaxed);
}

void deliver_to(LaneHandle* lane, void* delivery) {
    deliver(lane, *static_cast<const Delivery*>(delivery));
}

void count_dropped() {
    std::size_t dropped = 0;
    const Result result = g_shared ? g_cupti->dropped2(g_subscriber, nullptr, 0, &dropped)
                                   : g_cupti->dropped(nullptr, 0, &dropped);
    if (result == kSuccess && dropped != 0) g_shim->count_lost(dropped);
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                      std::size_t valid_bytes) {
    if (buffer == nullptr) return;
    const Delivering here;
    Delivery delivery{g_shim,
                      g_cupti,
                      g_shared ? g_subscriber : nullptr,
                      buffer,
                      valid_bytes < size ? valid_bytes : size,
                      g_own_thread.load(std::memory_order_relaxed)};
    if (delivery.valid_bytes != 0 &&
        !g_shim->with_lane(g_word.load(std::memory_order_relaxed), deliver_to, &delivery))
        deliver(nullptr, delivery);
    give_back_buffer(buffer);
    count_dropped();
}

void buffer_requested2(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records, void*) {
    buffer_requested(buffer, size, most_records);
}
void buffer_completed2(std::uint8_t* buffer, std::size_t size, std::size_t valid_bytes, void*) {
    buffer_completed(nullptr, 0, buffer, size, valid_bytes);
}

// --- what we call ---

/// @return false
bool fail(Reason& why, const char* what, Result result) {
    why.append(what).append(" failed: ").append_number(static_cast<std::uint32_t>(result));
    return false;
}

/// The subscription is the lock: whoever has it has CUPTI.
bool subscribe(Reason& why) {
    char holder[kOldNameBytes] = {};
    SubscriberParameters parameters{};
    parameters.size = g_cupti->can_share() ? sizeof parameters : kFirstSubscriberParametersSize;
    parameters.name = "Ringside";
    parameters.old_name = holder;
    parameters.old_name_size = sizeof holder;
    parameters.allow_others = 1;
    g_shared = g_cupti->can_share();
    g_subscriber = nullptr;
    const Result result =
        g_cupti->subscribe2
            ? g_cupti->subscribe2(&g_subscriber, ignore_callback, nullptr, &parameters)
            : g_cupti->subscribe(&g_subscriber, ignore_callback, nullptr);
    if (result == kSuccess) return true;
    if (result != kErrorMultipleSubscribers) return fail(why, "cuptiSubscribe", result);
    holder[sizeof holder - 1] = 0;
    why.append("CUPTI is held by ").append(holder[0] != 0 ? holder : "another profiler");
    why.append(" (39)");
    return false;
}

Result set_attribute(std::uint32_t attribute, const void* value, std::size_t bytes) {
    return g_cupti->set_attribute2(g_subscriber, attribute, &bytes, const_cast<void*>(value));
}

/// Our clock first, so that no record has another; then where the records go, and whose thread ids they bear.
bool prepare_records(Reason& why) {
    const TimestampCallback clock = g_shim->now;
    Result result = g_shared ? set_attribute(kAttributeTimestampCallback, &clock, sizeof clock)
                             : g_cupti->register_timestamps(clock);
    if (result != kSuccess) return fail(why, "CUPTI's timestamp callback", result);
    result = g_shared
                 ? g_cupti->register_callbacks2(g_subscriber, buffer_requested2, buffer_completed2)
                 : g_cupti->register_callbacks(buffer_requested, buffer_completed);
    if (result != kSuccess) return fail(why, "cuptiActivityRegisterCallbacks", result);
    const std::uint32_t type = kThreadIdSystem;
    result = g_shared ? set_attribute(kAttributeThreadIdType, &type, sizeof type)
                      : g_cupti->set_thread_id_type(type);
    if (result != kSuccess) return fail(why, "cuptiSetThreadIdType", result);
    return true;
}

Result enable(std::uint32_t kind) {
    return g_shared ? g_cupti->enable2(g_subscriber, kind, nullptr) : g_cupti->enable(kind);
}

void disable_all() {
    for (const KindName& one : kKinds) {
        if ((g_enabled >> one.kind & 1) == 0) continue;
        // Nothing can be done about one that stays: its records are of no capture then.
        (void)(g_shared ? g_cupti->disable2(g_subscriber, one.kind, nullptr)
                        : g_cupti->disable(one.kind));
    }
    g_enabled = 0;
}

/// @param missing  kinds that this GPU or driver does not give
/// @return false: there are no kernels to be had
bool enable_all(Reason& why, Reason& missing) {
    // Before events are on; without it theirs is a neighbour's time.
    const std::uint8_t on = 1;
    if (g_shared) {
        (void)set_attribute(kAttributeEventTimestamps, &on, sizeof on);
    } else if (g_cupti->event_timestamps) {
        (void)g_cupti->event_timestamps(on);
    }
    for (const KindName& one : kKinds) {
        const Result result = enable(one.kind);
        if (result == kSuccess) {
            g_enabled |= 1ull << one.kind;
        } else if (one.kind == kConcurrentKernel) {
            return fail(why, "cuptiActivityEnable of kernels", result);
        } else if (missing.empty()) {
            missing.append("without ").append(one.name).append(" (");
            missing.append_number(static_cast<std::uint32_t>(result)).append(")");
        }
    }
    return true;
}

void stop() {
    disable_all();
    read_devices(*g_shim);
    (void)g_cupti->flush_all(kFlushForced);
    await_deliveries();
    count_dropped();
    (void)g_cupti->unsubscribe(g_subscriber);
    g_subscriber = nullptr;
    trim_buffers();
}

/// One taker: a session is stopped once.
bool take_session() {
    return g_pid == getpid() && g_active.exchange(false, std::memory_order_seq_cst);
}

void at_exit(void*) {
    if (g_pid == getpid()) g_exiting.store(true, std::memory_order_relaxed);
    if (take_session()) stop();
}

bool start(Reason& why, Reason& missing) {
    g_cupti = find_cupti(*g_shim, why);
    if (g_cupti == nullptr) return false;
    if (!prepare_buffers()) {
        why.append("no memory for CUPTI's buffers");
        return false;
    }
    if (!subscribe(why)) return false;
    if (prepare_records(why) && enable_all(why, missing)) return true;
    disable_all();
    (void)g_cupti->unsubscribe(g_subscriber);
    g_subscriber = nullptr;
    return false;
}

State state_of(SourceLevel level, const Reason& reason) {
    State state{level, {}};
    std::memcpy(state.reason, reason.c_str(), reason.length() + 1);
    return state;
}

// --- what the shim calls ---

State g_state;

State attach(std::uint32_t word) {
    g_word.store(word, std::memory_order_relaxed);
    if (g_active.load(std::memory_order_acquire) || g_exiting.load(std::memory_order_relaxed))
        return g_state;
    Reason why, missing;
    g_overflowed.store(false, std::memory_order_relaxed);
    g_pid = getpid();
    if (!start(why, missing)) return g_state = state_of(SourceLevel::kNotInstrumented, why);
    static const bool kHearsExit = __cxa_atexit(at_exit, nullptr, nullptr) == 0;
    if (!kHearsExit) missing.append("; the last records are lost at exit");
    g_active.store(true, std::memory_order_release);
    g_state = state_of(missing.empty() ? SourceLevel::kFull : SourceLevel::kDegraded, missing);
    return g_state;
}

bool turn(State* state) {
    const Delivering here;
    if (!g_active.load(std::memory_order_seq_cst)) return false;
    g_own_thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    read_devices(*g_shim);
    if (g_overflowed.load(std::memory_order_relaxed) && g_enabled != 0) {
        disable_all();
        *state = g_state =
            state_of(SourceLevel::kDegraded, Reason().append("stopped: CUPTI's buffers are full"));
        return true;
    }
    (void)g_cupti->flush_all(0);
    count_dropped();
    return false;
}

void detach() {
    if (take_session()) stop();
    g_own_thread.store(0, std::memory_order_relaxed);
}

constexpr Plugin kPlugin{attach, turn, detach};

}  // namespace
}  // namespace ringside::inject::cupti

// NOLINTNEXTLINE(readability-identifier-naming): looked up by this name
extern "C" __attribute__((visibility("default"))) const ringside::inject::cupti::Plugin*
ringside_cupti_plugin(std::uint32_t version, const ringside::inject::cupti::Shim* shim) {
    using namespace ringside::inject::cupti;
    if (version != kPluginVersion) return nullptr;
    g_shim = shim;
    return &kPlugin;
}
