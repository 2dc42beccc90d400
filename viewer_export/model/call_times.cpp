#include "viewer_export/model/call_times.hpp"

#include <algorithm>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/rpc_tree.hpp"

namespace ringside::viewer_export::model {

namespace {

const Half* shown_half(const Job& job, Index half) {
    return half != kNone && job.halves[half].shown() ? &job.halves[half] : nullptr;
}

void add_one_way(const Job& job, const Half& client, const Half& server, bool reply,
                 CallTimes& times) {
    const Index from = job.processes[client.process].node;
    const Index to = job.processes[server.process].node;
    if (from != to) {
        if (!job.corrected || !job.nodes[from].has_clock || !job.nodes[to].has_clock) return;
        if (__builtin_add_overflow(job.nodes[from].clock.bound_ns, job.nodes[to].clock.bound_ns,
                                   &times.bound_ns)) {
            times.bound_ns = 0;
            return;  // nobody has measured them
        }
    }
    times.request_ns = server.begin_ns - client.begin_ns;
    if (reply) times.reply_ns = client.end_ns - server.end_ns;
}

}  // namespace

std::span<const Serving> servings_of(const Job& job, Index half) {
    const auto first =
        std::partition_point(job.servings.begin(), job.servings.end(),
                             [&](const Serving& serving) { return serving.half < half; });
    const auto last = std::partition_point(
        first, job.servings.end(), [&](const Serving& serving) { return serving.half == half; });
    return {first, last};
}

CallTimes call_times(const Job& job, const Call& call) {
    CallTimes times;
    const Half* const client = shown_half(job, call.client);
    const Half* const server = shown_half(job, call.server);
    if (client != nullptr && client->ended()) times.caller_ns = client->duration_ns();
    if (server != nullptr && !server->of_message()) {
        std::int64_t taken_ns = server->begin_ns;
        if (const auto servings = servings_of(job, call.server);
            !servings.empty() && servings.front().begin_known) {
            taken_ns = servings.front().begin_ns;
            times.queued_ns = taken_ns - server->begin_ns;
        }
        if (server->ended()) times.service_ns = server->end_ns - taken_ns;
    }
    if (client != nullptr && server != nullptr && call.state == CallState::kJoined) {
        const bool reply = reply_joined(job, call);
        if (reply) {
            times.rest_ns = times.caller_ns;
            add_to(*times.rest_ns, -*times.service_ns);
        }
        add_one_way(job, *client, *server, reply, times);
    }
    return times;
}

std::optional<std::int64_t> Durations::percentile(std::uint64_t percent) {
    if (all_.empty()) return std::nullopt;
    const std::uint64_t rank = std::max<std::uint64_t>((percent * all_.size() + 99) / 100, 1);
    const auto at = all_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(all_.begin(), at, all_.end());
    return *at;
}

}  // namespace ringside::viewer_export::model
