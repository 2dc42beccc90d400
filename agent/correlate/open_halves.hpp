// The halves that may still find their other: by request id, and those without an end by their key, too. Two chained tables over one
// array; what is taken out leaves its place to the next. Used by join.cpp alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "schema/record.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// A half as the join keeps it: times on the leader's clock. What is looked at again and again stands in its first line.
struct alignas(64) OpenHalf {
    std::uint64_t span = 0;
    std::uint64_t trace_hi = 0;
    std::uint64_t trace_lo = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = kNever;  ///< the greatest: not ended
    std::int64_t wait_ns = 0;      ///< how far beyond its times a half of its other side may lie
    std::uint32_t next_of_id = 0;
    std::uint32_t process = 0;  ///< Sides::process()
    bool server = false;
    schema::RpcStatus status = schema::RpcStatus::kOk;

    std::uint32_t next_of_key = 0;
    std::uint64_t key = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t wire_id = 0;
    std::uint64_t position = 0;
    std::uint32_t node = 0;
    std::uint32_t lane = 0;
    std::uint32_t generation = 0;
    std::uint32_t peer = 0;  ///< Sides::worker()

    bool ended() const { return end_ns != kNever; }
    /// A client's half that a reply ended, not a timeout or a broken pipe; a message's has none.
    bool replied() const { return !server && ended() && status == schema::RpcStatus::kOk; }
};

inline bool same_id(const OpenHalf& a, const OpenHalf& b) {
    return a.span == b.span && a.trace_hi == b.trace_hi && a.trace_lo == b.trace_lo;
}

static_assert(sizeof(OpenHalf) == 128);

class OpenHalves {
public:
    OpenHalves();

    void add(const OpenHalf& half);
    /// Ends the half of this key. A process gives each its own: of several that began before, any.
    /// @return false: there is none
    bool end(std::uint32_t process, std::uint64_t key, std::int64_t end_ns,
             schema::RpcStatus status);

    /// Shows all halves of each id, in the order of their begins, to `judge`, which says how many of the first it has done with.
    /// @param judge  std::size_t(std::span<const OpenHalf* const>)
    template <class Judge>
    void sweep(Judge&& judge);

    std::size_t size() const { return halves_.size() - free_.size(); }
    /// Of a sweep, in halves looked at.
    std::size_t sweep_cost() const { return size() + by_id_.size() / 8; }

private:
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t& id_bucket(const OpenHalf& half) {
        const std::uint64_t id = half.span ^ half.trace_lo * 0x9e3779b97f4a7c15ull ^ half.trace_hi;
        return by_id_[schema::mix64(id) & (by_id_.size() - 1)];
    }
    std::uint32_t& key_bucket(std::uint32_t process, std::uint64_t key) {
        const std::uint64_t both = key ^ std::uint64_t{process} << 40;
        return by_key_[schema::mix64(both) & (by_key_.size() - 1)];
    }
    void link(std::uint32_t at);
    void grow();

    std::vector<OpenHalf> halves_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> by_id_;   // heads of chains; their number is a power of two
    std::vector<std::uint32_t> by_key_;  // likewise, of those without an end
    std::vector<const OpenHalf*> chain_;
};

/// By place.
bool before_in_place(const OpenHalf& a, const OpenHalf& b);

/// By id, then time, then place.
inline bool before(const OpenHalf& a, const OpenHalf& b) {
    if (a.span != b.span) return a.span < b.span;
    if (a.trace_hi != b.trace_hi) return a.trace_hi < b.trace_hi;
    if (a.trace_lo != b.trace_lo) return a.trace_lo < b.trace_lo;
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    return before_in_place(a, b);
}

template <class Judge>
void OpenHalves::sweep(Judge&& judge) {
    constexpr std::size_t kAhead = 8;
    for (std::size_t bucket = 0; bucket < by_id_.size(); ++bucket) {
        std::uint32_t& head = by_id_[bucket];
        if (const std::size_t next = bucket + kAhead; next < by_id_.size() && by_id_[next] != kNone)
            __builtin_prefetch(&halves_[by_id_[next]]);
        if (head == kNone) continue;
        chain_.clear();
        for (std::uint32_t at = head; at != kNone; at = halves_[at].next_of_id)
            chain_.push_back(&halves_[at]);
        if (chain_.size() > 1) {
            std::sort(chain_.begin(), chain_.end(),
                      [](const OpenHalf* a, const OpenHalf* b) { return before(*a, *b); });
        }
        head = kNone;
        for (std::size_t first = 0; first < chain_.size();) {
            std::size_t last = first + 1;
            while (last < chain_.size() && same_id(*chain_[first], *chain_[last])) ++last;
            const std::size_t done = judge(std::span(chain_).subspan(first, last - first));
            for (std::size_t i = first; i < last; ++i) {
                const auto at = static_cast<std::uint32_t>(chain_[i] - halves_.data());
                if (i < first + done) {
                    free_.push_back(at);
                } else {
                    halves_[at].next_of_id = head;
                    head = at;
                }
            }
            first = last;
        }
    }
}

}  // namespace ringside::agent
