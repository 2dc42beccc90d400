// The collectives of a job: a row a group and function, who of each group is late, the slowest ones with all arrivals; or one of them. Part of the view of
// calls (rpc_view.hpp).
#pragma once

#include <string>

#include "schema/result.hpp"
#include "viewer_export/model/collectives.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/rpc_view.hpp"

namespace ringside::viewer_export::collectives {

/// "" where there are none.
std::string section(const model::Job& job, const RpcOptions& options);
/// The same as an object, with each arrival of the slowest ones.
void write(JsonWriter& json, const model::Job& job, const RpcOptions& options);

// What both files of this view say alike.

/// "rank 2", or where it is.
std::string member_text(const model::Job& job, model::Index process, std::int32_t rank);
/// "world:12".
std::string id_text(const model::Collectives& all, const model::Collective& collective);
/// "rank 3, rank 5 are not in it", or how many; "" where nobody is missing.
std::string missing_text(const model::Collectives& all, const model::Collective& collective);
/// "rank 2 is in MPI_Bcast where others are in MPI_Allreduce"; "" where all are in one function.
std::string differ_text(const model::Job& job, const model::Collectives& all,
                        const model::Collective& collective);
void write_one(JsonWriter& json, const model::Job& job, const model::Collectives& all,
               const model::Collective& collective);

}  // namespace ringside::viewer_export::collectives

namespace ringside::viewer_export {

/// One collective with its arrivals. @param which  GROUP:SEQUENCE
/// @errors NothingMatched; Usage: not of that form
schema::Result<std::string> render_collective(const model::Job& job, const std::string& which);
/// The same as one JSON object; times in us.
/// @errors as render_collective
schema::Result<std::string> collective_json(const model::Job& job, const std::string& which);

}  // namespace ringside::viewer_export
