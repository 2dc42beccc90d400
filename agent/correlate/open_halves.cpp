#include "agent/correlate/open_halves.hpp"

#include <tuple>

namespace ringside::agent {

OpenHalves::OpenHalves() : by_id_(1024, kNone), by_key_(1024, kNone) {}

void OpenHalves::add(const OpenHalf& half) {
    if (size() >= by_id_.size()) grow();
    std::uint32_t at = 0;
    if (free_.empty()) {
        at = static_cast<std::uint32_t>(halves_.size());
        halves_.push_back(half);
    } else {
        at = free_.back();
        free_.pop_back();
        halves_[at] = half;
    }
    link(at);
}

void OpenHalves::link(std::uint32_t at) {
    OpenHalf& half = halves_[at];
    std::uint32_t& of_id = id_bucket(half);
    half.next_of_id = of_id;
    of_id = at;
    if (half.ended()) return;
    std::uint32_t& of_key = key_bucket(half.process, half.key);
    half.next_of_key = of_key;
    of_key = at;
}

/// All are linked anew.
void OpenHalves::grow() {
    const std::size_t buckets = by_id_.size() * 2;
    by_id_.assign(buckets, kNone);
    by_key_.assign(buckets, kNone);
    std::vector<bool> unused(halves_.size(), false);
    for (const std::uint32_t at : free_) unused[at] = true;
    for (std::uint32_t at = 0; at < halves_.size(); ++at) {
        if (!unused[at]) link(at);
    }
}

bool OpenHalves::end(std::uint32_t process, std::uint64_t key, std::int64_t end_ns,
                     schema::RpcStatus status) {
    for (std::uint32_t* at = &key_bucket(process, key); *at != kNone;
         at = &halves_[*at].next_of_key) {
        OpenHalf& half = halves_[*at];
        if (half.key != key || half.process != process || half.begin_ns > end_ns) continue;
        *at = half.next_of_key;
        half.end_ns = end_ns;
        half.status = status;
        return true;
    }
    return false;
}

bool before_in_place(const OpenHalf& a, const OpenHalf& b) {
    return std::tie(a.node, a.process, a.lane, a.generation, a.position, a.server) <
           std::tie(b.node, b.process, b.lane, b.generation, b.position, b.server);
}

}  // namespace ringside::agent
