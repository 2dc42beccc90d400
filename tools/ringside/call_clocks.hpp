// Clocks out of calls, and out of messages there and back: a request begins before it arrives and its reply leaves before it is received, so each call that both sides
// recorded brackets the difference of the two clocks as a ping does, only wider: it takes the call's whole time. Ticks of two nodes are
// never compared. Of many calls a part is kept, chosen by their ids: a quick one is as good as another. Used by offline_join alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/clock/model.hpp"
#include "agent/correlate/halves.hpp"
#include "viewer_export/load/rpc_records.hpp"

namespace ringside::tools {

class CallClocks {
public:
    explicit CallClocks(std::size_t nodes);

    /// A record of a node, in the order of its dump.
    void add(std::uint32_t node, const viewer_export::RpcRecord& record);

    /// Sets the clocks of all nodes but the first, whose clock all get; of those that no call reaches the bound is the greatest number.
    void correct(std::vector<agent::NodeCapture>& nodes);

private:
    struct Half {
        std::uint32_t node = 0;
        std::uint32_t count =
            0;  ///< halves of this id on this side: others than one could pair wrongly
        std::uint64_t begin_ticks = 0;
        std::uint64_t end_ticks = 0;
        bool ended = false;
        schema::RpcStatus status = schema::RpcStatus::kOk;
    };
    struct Call {
        Half client;
        Half server;
    };
    struct End {
        std::uint64_t half;  ///< of open_
        std::uint64_t ticks;
        std::uint64_t argument;
    };
    struct Interval {
        std::uint64_t first = ~0ull;
        std::uint64_t last = 0;
    };

    struct Open {
        std::uint64_t span;
        bool server;
    };
    using Calls = std::vector<const Call*>;

    void begin(std::uint32_t node, std::uint64_t half, const std::uint64_t* words);
    void take_ends(std::size_t count);
    void thin_out();
    /// By the two nodes, the lower one first. Those that a reply ended, and messages.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Calls> shared_calls() const;
    agent::NodeInterval interval_of(const agent::NodeCapture& node, const Interval& halves) const;

    std::size_t most_ids_;
    std::uint64_t kept_below_ = ~0ull;               ///< ids whose hash is no greater
    std::unordered_map<std::uint64_t, Call> calls_;  ///< by span
    std::unordered_map<std::uint64_t, Open>
        open_;               ///< halves of calls_ without an end, by node, process and key
    std::vector<End> ends_;  ///< not taken yet: their begins may stand behind them, on another lane
    std::vector<Interval> recorded_;
};

}  // namespace ringside::tools
