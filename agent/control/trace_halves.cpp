// The part of a trace that reads the nodes' halves, a page at a time, for the join.
#include <algorithm>
#include <string>

#include "agent/control/trace_run.hpp"

namespace ringside::agent {
namespace {

using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPagesAtOnce = 32;
/// Of a page that is not the last one: a node that dribbles its halves would keep the trace from its end.
constexpr std::size_t kLeastInPage = 1000;
constexpr Milliseconds kHalvesLimit{600'000};

}  // namespace

void TraceRun::fetch_halves() {
    NodeState& own = roster_.own();
    if (own.stopped) own.halves = own_.all_halves(own.capture_id);
    Round round;
    round.action = "read the nodes' halves";
    round.limit = Milliseconds(60'000);
    round.at_once = kPagesAtOnce;
    bool more = true;
    round.request = [&](NodeState& node, std::uint64_t id) {
        if (!node.stopped || node.halves.size() >= node.stopped->halves_count)
            return MessageBytes();
        fbs::HalvesRequestT page;
        page.capture_id = node.capture_id;
        page.first = node.halves.size();
        page.most = kHalvesInPage;
        return pack(id, page);
    };
    round.reply = [&](NodeState& node, fbs::MessageT& message) {
        auto* page = content_as<fbs::HalvesReplyT>(message);
        // Until it is wholly read, what is missing here must not make orphans of the others' halves.
        const std::uint64_t left = node.stopped->halves_count - node.halves.size();
        const bool fits = page != nullptr && page->first == node.halves.size() &&
                          page->halves.size() >= std::min<std::uint64_t>(left, kLeastInPage);
        if (!fits) {
            return roster_.drop(node, {ErrorCode::kInput,
                                       "read the halves of node '" + node.name +
                                           "': the page does not follow; its calls stay unjoined"});
        }
        for (const auto& half : page->halves) node.halves.push_back(half_of(*half));
        more = more || node.halves.size() < node.stopped->halves_count;
    };
    const SteadyTime until = Clock::now() + kHalvesLimit;
    const unsigned asked = cancel_.times();
    while (more && Clock::now() < until && cancel_.times() == asked) {
        more = false;
        roster_.run(round);
    }
    if (more) give_up_halves();
}

/// Of those that have not told all.
void TraceRun::give_up_halves() {
    for (NodeState& node : roster_.nodes()) {
        if (!node.stopped || node.halves.size() >= node.stopped->halves_count) continue;
        roster_.drop(node, {ErrorCode::kRefused,
                            "read the halves of node '" + node.name + "': given up after " +
                                std::to_string(node.halves.size()) + " of " +
                                std::to_string(node.stopped->halves_count) +
                                "; its calls stay unjoined, its dump is whole"});
    }
}

}  // namespace ringside::agent
