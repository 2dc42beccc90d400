// The calls of a job by edge: who called whom by what method, how often, what became of them, how long they took where. And what all parts of the view of
// calls say alike: who is meant, how a time reads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/call_times.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/text_table.hpp"

namespace ringside::viewer_export::rpc {

/// Of one edge. Its percentiles are found once all calls are in.
struct Edge {
    std::string caller;
    std::string callee;
    std::string method;
    std::uint64_t calls = 0;
    bool messages = false;                             ///< they are: nobody answers, nobody serves
    std::map<std::string_view, std::uint64_t> failed;  ///< by status, other than ok and sent
    std::uint64_t errors = 0;                          ///< their sum
    std::uint64_t cut = 0;
    std::uint64_t orphans = 0;
    std::uint64_t unfinished = 0;  ///< a process died
    std::uint64_t open = 0;        ///< went on at the capture's stop
    std::int64_t total_ns = 0;     ///< at the caller, of those that have ended there
    model::Durations at_caller, service, queued, rest, request, reply;
    std::int64_t bound_ns = 0;  ///< the greatest of its calls' one-way times
};

/// Whether the view shows the call.
bool shows(const model::Job& job, const model::Call& call, bool internal);

/// Workers by name, else by rank, node and pid, else "?".
model::CallParts named_parts(const model::Job& job, const model::Call& call);

/// What became of a call: its status or why it has none ("unfinished", "open"), and whether it lacks its other half ("orphan", "cut").
std::string outcome(const model::Job& job, const model::Call& call);

/// Names are cut as the table's, unless asked for in full.
std::string cut_name(std::string name, bool full);

/// "-" where it is not known.
std::string time_text(std::optional<std::int64_t> ns);
/// Nothing where it is not known.
void field_us(JsonWriter& json, std::string_view name, std::optional<std::int64_t> ns);

/// In the order asked for.
/// @errors Usage: an unknown sort key; the message lists them
schema::Result<std::vector<Edge>> edges(const model::Job& job, const RpcOptions& options);

std::string edges_text(std::vector<Edge>& edges, const RpcOptions& options);
/// An array.
void write_edges(JsonWriter& json, std::vector<Edge>& edges, const RpcOptions& options);

}  // namespace ringside::viewer_export::rpc
