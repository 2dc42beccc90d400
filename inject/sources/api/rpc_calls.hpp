// The public API's RPC functions, by the source whose halves they write: the API's own, and gRPC's, of which Python's part tells (../grpc).
#pragma once

#include <cstdint>

#include "inject/sources/api/ringside.h"
#include "schema/ids.hpp"

namespace ringside::inject::api {

using schema::SourceId;

void set_worker(const char* name, std::int32_t id);

/// @param call  zeros; or `id` says which request the call is, where the program has given it one itself
template <SourceId kSource>
void client_begin(const ringside_rpc* what, ringside_call* call);
template <SourceId kSource>
void client_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes);
template <SourceId kSource>
void server_begin(const ringside_request* id, const ringside_rpc* what, ringside_call* call);
template <SourceId kSource>
void server_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes);
template <SourceId kSource>
void serve(ringside_call* call, int on);

}  // namespace ringside::inject::api
