// The calls of a job: each edge with its times at the caller, at the callee and between, how many requests each process served at once, the slowest
// requests as trees; or one request with all that it caused on every node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct RpcOptions {
    std::string sort_by = "total";  ///< one of rpc_sort_keys(), the greatest first
    std::size_t row_limit = 100;    ///< edges, or rows of what ran under each call; 0: all
    std::size_t slowest = 3;        ///< trees; 0: none
    bool full_names = false;        ///< else names are cut to 52 characters and `...`
    bool internal = false;          ///< torch's own messages too
    model::Tell tell = {};          ///< calls added up
};

/// @return the names that sort_by takes
const std::vector<std::string_view>& rpc_sort_keys();

/// Edges, service, slowest requests, then what was joined and how far clocks are right; why there is none, where no call was recorded.
/// @errors Usage: an unknown sort key; the message lists them
schema::Result<std::string> render_rpc(const model::Job& job, const RpcOptions& options);
/// The same as one JSON object; times in us.
/// @errors Usage: as render_rpc
schema::Result<std::string> rpc_json(const model::Job& job, const RpcOptions& options);

/// One request: its tree of calls, and under each what ran while it was served, by name.
/// @param id  a trace id (the whole tree) or a span id (that call and what it caused), or the beginning of one, in hexadecimal
/// @errors NothingMatched; Usage: several begin so
schema::Result<std::string> render_request(const model::Job& job, const std::string& id,
                                           const RpcOptions& options);
/// The same as one JSON object, with each event.
/// @errors as render_request
schema::Result<std::string> request_json(const model::Job& job, const std::string& id,
                                         const RpcOptions& options);

}  // namespace ringside::viewer_export
