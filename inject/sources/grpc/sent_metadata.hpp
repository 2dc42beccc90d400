// The initial metadata of a call with our traceparent behind the program's own: a copy of the array, and the header's text, in one entry of
// a fixed pool. gRPC counts who holds the text, as with any slice, and its last one gives the entry back; that is no sooner than the
// batch completes, so the array lives as long. Nothing is allocated.
#pragma once

#include "inject/sources/grpc/abi.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject::grpc {

/// @return an array of count + 1; null where the pool is used up or `count` beyond it: the call passes through
/// @thread thread-safe
Metadata* add_traceparent(const Metadata* metadata, std::size_t count, const schema::RequestId& id);

/// Our own hold on what add_traceparent() returned: the batch has been started.
void let_go(Metadata* copy);

}  // namespace ringside::inject::grpc
