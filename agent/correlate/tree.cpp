#include "agent/correlate/tree.hpp"

#include <string>
#include <unordered_map>

#include "schema/request_id.hpp"

namespace ringside::agent {
namespace {

using schema::mix64;

/// A server's half by what its children know of it.
struct ServerKey {
    std::uint32_t node;
    std::uint32_t process;
    std::uint64_t key;
    bool operator==(const ServerKey&) const = default;
};
struct ServerKeyHash {
    std::size_t operator()(const ServerKey& key) const {
        return mix64(key.key ^ mix64(std::uint64_t{key.node} << 32 | key.process));
    }
};

const Half& half_of(std::span<const NodeCapture> nodes, HalfIndex at) {
    return nodes[at.node].halves[at.half];
}

bool any_parent_named(std::span<const NodeCapture> nodes, const std::vector<Call>& calls) {
    for (const Call& call : calls) {
        if (call.client && half_of(nodes, *call.client).parent_key != 0) return true;
    }
    return false;
}

/// Cuts cycles: walks up from each call, marking the walk; a call met again on the same walk loses its parent.
void open_cycles(std::vector<Call>& calls) {
    constexpr std::int32_t kUnseen = -1;
    std::vector<std::int32_t> walk(calls.size(), kUnseen);
    for (std::size_t start = 0; start < calls.size(); ++start) {
        std::size_t at = start;
        while (walk[at] == kUnseen) {
            walk[at] = static_cast<std::int32_t>(start);
            const std::int32_t parent = calls[at].parent;
            if (parent < 0) break;
            if (walk[static_cast<std::size_t>(parent)] == static_cast<std::int32_t>(start)) {
                calls[at].parent = -1;
                break;
            }
            at = static_cast<std::size_t>(parent);
        }
    }
}

schema::TraceId trace_of_root(std::span<const NodeCapture> nodes, std::uint64_t capture_id,
                              const Call& root) {
    const HalfIndex at = root.client ? *root.client : *root.server;
    const Half& half = half_of(nodes, at);
    if (half.id.trace.valid()) return half.id.trace;
    const std::string& node = nodes[at.node].name;
    std::uint64_t hash = schema::hash_bytes(node.data(), node.size(), mix64(capture_id + 1));
    hash = mix64(hash ^ half.id.span.value);
    hash = mix64(hash ^ (std::uint64_t{half.process} << 32 | half.lane.index));
    const std::uint64_t low = mix64(hash ^ half.position ^ 0x9e3779b97f4a7c15ull);
    return {mix64(hash + 0x9e3779b97f4a7c15ull), low == 0 ? 1 : low};
}

}  // namespace

void link_parents(std::span<const NodeCapture> nodes, std::vector<Call>& calls) {
    if (!any_parent_named(nodes, calls)) return;
    std::unordered_map<ServerKey, std::int32_t, ServerKeyHash> servers;
    servers.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (!calls[i].server) continue;
        const Half& half = half_of(nodes, *calls[i].server);
        if (half.key == 0) continue;
        servers.emplace(ServerKey{calls[i].server->node, half.process, half.key},
                        static_cast<std::int32_t>(i));
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (!calls[i].client) continue;
        const Half& half = half_of(nodes, *calls[i].client);
        if (half.parent_key == 0) continue;
        const auto found =
            servers.find(ServerKey{calls[i].client->node, half.process, half.parent_key});
        if (found != servers.end() && found->second != static_cast<std::int32_t>(i))
            calls[i].parent = found->second;
    }
    open_cycles(calls);
}

void give_trace_ids(std::span<const NodeCapture> nodes, std::uint64_t capture_id,
                    std::vector<Call>& calls) {
    std::vector<std::size_t> path;
    for (std::size_t start = 0; start < calls.size(); ++start) {
        std::size_t at = start;
        path.clear();
        while (!calls[at].trace.valid() && calls[at].parent >= 0) {
            path.push_back(at);
            at = static_cast<std::size_t>(calls[at].parent);
        }
        if (!calls[at].trace.valid()) calls[at].trace = trace_of_root(nodes, capture_id, calls[at]);
        for (const std::size_t child : path) calls[child].trace = calls[at].trace;
    }
}

}  // namespace ringside::agent
