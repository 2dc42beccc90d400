#include "viewer_export/model/rpc_tree.hpp"

#include <algorithm>

namespace ringside::viewer_export::model {

namespace {

constexpr const char* kRemoteOp = "#remote_op: ";
constexpr const char* kOwnModule = "torch.distributed.rpc.api";

bool is_record(const Job& job, Index half) {
    return half != kNone && job.halves[half].shown();
}

const char* prefix_of(schema::RpcMode mode) {
    switch (mode) {
        case schema::RpcMode::kSync:
            return "rpc_sync#";
        case schema::RpcMode::kAsync:
            return "rpc_async#";
        case schema::RpcMode::kAsyncJit:
            return "rpc_async_jit#";
        case schema::RpcMode::kRemote:
            return "rpc_remote#";
        default:
            return "rpc#";
    }
}

std::string or_unknown(const std::string& text) {
    return text.empty() ? "?" : text;
}

std::string own_name(const Job& job, const Call& call) {
    if (call.client == kNone && call.server == kNone) return "rpc#?(? -> ?)";
    const CallParts parts = parts_of(job, call);
    const std::string from = or_unknown(parts.from);
    const std::string to = or_unknown(parts.to);
    const Half& half = job.halves[call.client != kNone ? call.client : call.server];
    if (half.mode == schema::RpcMode::kFetch) return fetch_name(from, to);
    return parts.method + "(" + from + " -> " + to + ")";
}

}  // namespace

std::string fetch_name(const std::string& from, const std::string& to) {
    return "to_here#(" + from + ")->(" + to + ")";
}

bool is_real(const Job& job, const Call& call) {
    return is_record(job, call.client) || is_record(job, call.server);
}

bool reply_joined(const Job& job, const Call& call) {
    return call.reply && call.state == CallState::kJoined && call.both() &&
           job.halves[call.client].ended() && job.halves[call.server].ended();
}

bool is_message(const Job& job, const Call& call) {
    const Index half = call.client != kNone ? call.client : call.server;
    return half != kNone && job.halves[half].of_message();
}

bool is_internal(const Job& job, const Call& call) {
    for (const Index index : {call.client, call.server}) {
        if (index == kNone) continue;
        const Half& half = job.halves[index];
        if (half.mode == schema::RpcMode::kInternal || job.names[half.module] == kOwnModule)
            return true;
    }
    return false;
}

void break_parent_cycles(std::vector<Call>& calls) {
    // 0: not looked at; else the walk that saw it. A walk that meets itself has found a cycle.
    std::vector<Index> seen(calls.size(), 0);
    for (Index start = 0; start < calls.size(); ++start) {
        Index at = start;
        while (seen[at] == 0) {
            seen[at] = start + 1;
            const Index parent = calls[at].parent;
            if (parent == kNone || parent >= calls.size()) {
                calls[at].parent = kNone;
                break;
            }
            if (seen[parent] == start + 1) {
                calls[at].parent = kNone;
                break;
            }
            at = parent;
        }
    }
}

CallParts parts_of(const Job& job, const Call& call) {
    const Half* client = call.client == kNone ? nullptr : &job.halves[call.client];
    const Half* server = call.server == kNone ? nullptr : &job.halves[call.server];
    if (client == nullptr && server == nullptr) return {};
    const auto text = [&](Index name) { return job.names[name]; };
    const auto self = [&](const Half& half) {
        const Process& process = job.processes[half.process];
        if (half.self != kNone) return text(half.self);
        if (half.of_message() && process.rank >= 0)
            return "rank " + std::to_string(process.rank);  // as its peers name it
        return process.worker_name;
    };
    std::string function = client != nullptr ? text(client->name) : std::string{};
    if (function.empty() && server != nullptr) function = text(server->name);
    const schema::RpcMode mode = client != nullptr ? client->mode : server->mode;
    const bool bare = mode == schema::RpcMode::kInternal || is_message(job, call);
    const char* prefix = bare ? "" : prefix_of(mode);
    return {client != nullptr ? self(*client) : text(server->peer),
            server != nullptr ? self(*server) : text(client->peer),
            mode == schema::RpcMode::kFetch ? "to_here" : prefix + or_unknown(function)};
}

void take_roots_trace(std::vector<Call>& calls) {
    std::vector<bool> done(calls.size(), false);
    std::vector<Index> path;
    for (Index start = 0; start < calls.size(); ++start) {
        Index at = start;
        for (path.clear(); !done[at] && calls[at].parent != kNone; at = calls[at].parent)
            path.push_back(at);
        done[at] = true;
        for (const Index child : path) {
            calls[child].trace = calls[at].trace;
            done[child] = true;
        }
    }
}

RpcNames::RpcNames(const Job& job) : job_(&job) {
    own_.reserve(job.calls.size());
    for (const Call& call : job.calls) own_.push_back(names_.add(own_name(job, call)));
    chain_.assign(job.calls.size(), kNone);
    std::vector<Index> path;
    for (Index start = 0; start < job.calls.size(); ++start) {
        // Parents may stand after their children: up to the first one that is known, then down again.
        for (Index at = start; at != kNone && chain_[at] == kNone; at = job.calls[at].parent)
            path.push_back(at);
        for (; !path.empty(); path.pop_back()) {
            const Index at = path.back();
            const Index parent = job.calls[at].parent;
            chain_[at] = link(parent == kNone ? kNone : chain_[parent], own_[at]);
        }
    }
}

Index RpcNames::link(Index parent, Index own) {
    const auto [entry, added] =
        known_.try_emplace({parent, own}, static_cast<Index>(links_.size()));
    if (added) links_.push_back({parent, own});
    return entry->second;
}

std::string RpcNames::text(Index chain) const {
    std::vector<Index> owns;
    for (; chain != kNone; chain = links_[chain].parent) owns.push_back(links_[chain].own);
    std::string result;
    for (auto own = owns.rbegin(); own != owns.rend(); ++own) {
        if (!result.empty()) result += kRemoteOp;
        result += names_[*own];
    }
    return result;
}

std::string RpcNames::text(Index chain, const std::string& name) const {
    if (chain == kNone) return name;
    return text(chain) + kRemoteOp + name;
}

RequestIndex::RequestIndex(const Job& job) {
    range_first_.assign(job.halves.size() + 1, 0);
    const auto served = [&](const Range& range) { return range.request < job.halves.size(); };
    for (const Lane& lane : job.lanes) {
        for (const Range& range : lane.ranges) {
            if (served(range)) ++range_first_[range.request + 1];
        }
    }
    for (std::size_t i = 1; i < range_first_.size(); ++i) range_first_[i] += range_first_[i - 1];
    ranges_.resize(range_first_.back());
    std::vector<std::size_t> next(range_first_.begin(), range_first_.end() - 1);
    for (Index lane = 0; lane < job.lanes.size(); ++lane) {
        for (Index i = 0; i < job.lanes[lane].ranges.size(); ++i) {
            const Range& range = job.lanes[lane].ranges[i];
            if (served(range)) ranges_[next[range.request]++] = {lane, i};
        }
    }
    call_first_.assign(job.calls.size() + 1, 0);
    for (const Call& call : job.calls) {
        if (call.parent != kNone) ++call_first_[call.parent + 1];
    }
    for (std::size_t i = 1; i < call_first_.size(); ++i) call_first_[i] += call_first_[i - 1];
    calls_.resize(call_first_.back());
    next.assign(call_first_.begin(), call_first_.end() - 1);
    for (Index i = 0; i < job.calls.size(); ++i) {
        if (job.calls[i].parent != kNone) calls_[next[job.calls[i].parent]++] = i;
    }
}

std::span<const RangeRef> RequestIndex::ranges(Index half) const {
    return std::span(ranges_).subspan(range_first_[half],
                                      range_first_[half + 1] - range_first_[half]);
}

std::span<const Index> RequestIndex::calls(Index call) const {
    return std::span(calls_).subspan(call_first_[call], call_first_[call + 1] - call_first_[call]);
}

}  // namespace ringside::viewer_export::model
