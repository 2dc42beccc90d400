#include "agent/control/connections.hpp"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace ringside::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDescriptors = 65536;
constexpr std::int64_t kNotWatched = 0, kNothing = 1;

/// By descriptor: kNotWatched, or kNothing and what lies unread. Each counter stands alone: relaxed throughout, and what is a message too late costs nobody anything.
struct Unread {
    void set(int descriptor, std::int64_t value) {
        const std::int64_t before =
            of[static_cast<std::size_t>(descriptor)].exchange(value, std::memory_order_relaxed);
        if (before != kNotWatched) all.fetch_sub(before - kNothing, std::memory_order_relaxed);
    }
    std::array<std::atomic<std::int64_t>, kDescriptors> of{};
    std::atomic<std::int64_t> all{0};
    std::atomic<std::uint64_t> closed{0};
};

constinit Unread unread;  // zeros: of its pages those exist that are used

bool is_watchable(int descriptor) {
    return descriptor >= 0 && static_cast<std::size_t>(descriptor) < kDescriptors;
}

/// What libzmq reads at a time, but for the rest of a frame that is longer: small parts come by it alone, and cost it many times their bytes.
constexpr std::size_t kBatchBytes = 8192;
constexpr std::int64_t kWeightInBatch = 4;

/// @param asked  how much was to be read
/// @return whether `read` bytes more of this connection may be kept
bool may_keep(int descriptor, std::size_t asked, std::int64_t read) {
    if (!is_watchable(descriptor)) return true;
    auto& own = unread.of[static_cast<std::size_t>(descriptor)];
    if (own.load(std::memory_order_relaxed) == kNotWatched) return true;
    const std::int64_t got = asked <= kBatchBytes ? read * kWeightInBatch : read;
    const std::int64_t lies = own.fetch_add(got, std::memory_order_relaxed) - kNothing + got;
    const std::int64_t all = unread.all.fetch_add(got, std::memory_order_relaxed) + got;
    if (lies <= (all > kMostUnreadOfAll ? kUnreadInACrowd : kMostUnreadBytes)) return true;
    unread.closed.fetch_add(1, std::memory_order_relaxed);
    return false;
}

}  // namespace

std::uint64_t closed_for_unread() {
    return unread.closed.load(std::memory_order_relaxed);
}

Connections::Connections(zmq::context_t& context, zmq::socket_t& watched)
    : watched_(watched), events_(context, zmq::socket_type::pair) {
    static std::atomic<std::uint64_t> count{0};
    const std::string name = "inproc://connections-" + std::to_string(++count);
    // No bound: libzmq's thread would wait for us.
    events_.set(zmq::sockopt::rcvhwm, 0);
    events_.set(zmq::sockopt::linger, 0);
    ::zmq_socket_monitor(watched_.handle(), name.c_str(),
                         ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
    events_.connect(name);
}

Connections::~Connections() {
    ::zmq_socket_monitor(watched_.handle(), nullptr, 0);
    for (const auto& [descriptor, connection] : open_) unread.set(descriptor, kNotWatched);
}

void Connections::look() {
    zmq::message_t frame, endpoint;
    while (events_.recv(frame, zmq::recv_flags::dontwait) && events_.recv(endpoint)) {
        // https://libzmq.readthedocs.io/en/zeromq4-1/zmq_socket_monitor.html: 16 bits of event, 32 of value.
        std::uint16_t event = 0;
        std::int32_t descriptor = -1;
        if (frame.size() != sizeof event + sizeof descriptor) continue;
        std::memcpy(&event, frame.data(), sizeof event);
        std::memcpy(&descriptor, static_cast<const char*>(frame.data()) + sizeof event,
                    sizeof descriptor);
        if (!is_watchable(descriptor)) continue;
        if (event == ZMQ_EVENT_DISCONNECTED) {
            open_.erase(descriptor);
            if (descriptor == spared_) spared_ = -1;
            unread.set(descriptor, kNotWatched);
            continue;
        }
        open_[descriptor] = {Clock::now()};
        unread.set(descriptor, kNothing);
        if (open_.size() > kMostConnections) close_most_silent(descriptor);
    }
}

/// @param newcomer  it has had no time to ask for anything, and would be the one each time
void Connections::close_most_silent(int newcomer) {
    int chosen = -1;
    for (const auto& [descriptor, connection] : open_) {
        if (connection.closing || descriptor == newcomer || descriptor == spared_) continue;
        const Connection* best = chosen < 0 ? nullptr : &open_[chosen];
        if (best == nullptr || std::pair(connection.has_asked, connection.heard) <
                                   std::pair(best->has_asked, best->heard))
            chosen = descriptor;
    }
    if (chosen < 0) return;
    // Not close(): the descriptor is libzmq's, which finds the connection ended. Had it gone a moment ago and its number been given away,
    // another connection of ours would be ended, and made again.
    ::shutdown(chosen, SHUT_RDWR);
    open_[chosen].closing = true;
    if (closed_++ % kMostConnections == 0) {
        spdlog::warn("more than {} connections: those that have been silent for longest are closed",
                     kMostConnections);
    }
}

bool Connections::taken(int descriptor) {
    const auto found = open_.find(descriptor);
    if (found != open_.end()) unread.set(descriptor, kNothing);
    Connection& connection = found == open_.end() ? strangers_ : found->second;
    const SteadyTime now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - connection.heard).count();
    connection.heard = now;
    connection.has_asked = true;
    connection.tokens =
        std::min(kMostRequestsAtOnce, connection.tokens + seconds * kMostRequestsPerSecond);
    const bool granted = connection.tokens >= 1;
    if (granted) connection.tokens -= 1;
    if (!granted && !connection.refused)
        spdlog::warn("a connection asks more than {} times a second: refused what is beyond that",
                     kMostRequestsPerSecond);
    connection.refused =
        !granted || (connection.refused && connection.tokens < kMostRequestsAtOnce / 2);
    return granted;
}

}  // namespace ringside::agent

/// In libc's place for all of this program: libzmq keeps the parts of a message until its last one has come, has no bound for them, and tells nobody of them.
/// Where a connection is beyond its bound it reads that it has ended, and frees what there is. (Rejected: a memory bound of the whole agent, which can't tell whose
/// it is; a relay before libzmq, which would have to speak its protocol.)
extern "C" ssize_t recv(int descriptor, void* buffer, size_t size, int flags) {
    const ssize_t got = ::recvfrom(descriptor, buffer, size, flags, nullptr, nullptr);
    return got > 0 && !ringside::agent::may_keep(descriptor, size, got) ? 0 : got;
}
