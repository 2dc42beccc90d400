// What torch's error text says about how a call ended. Called by rpc_calls; pure.
#pragma once

#include <string_view>

#include "schema/record.hpp"

namespace ringside::inject::torch {

/// @param text  as given to markFutureWithError: `RPCErr:1:RPC ran for more than set timeout ...`, `eof (this error originated at tensorpipe...)`,
///              `pipe closed ...`, `ECONNREFUSED: connection refused ...`, or the callee's exception
inline schema::RpcStatus status_of_error(std::string_view text) {
    constexpr std::string_view kTimeout[] = {"timed out", "timeout"};
    constexpr std::string_view kGone[] = {"eof",     "closed",      "reset",
                                          "refused", "broken pipe", "Broken pipe"};
    // The callee's own exception, however it is worded, names its worker first.
    if (text.starts_with("On WorkerInfo(")) return schema::RpcStatus::kError;
    for (const std::string_view word : kTimeout)
        if (text.find(word) != std::string_view::npos) return schema::RpcStatus::kTimeout;
    for (const std::string_view word : kGone)
        if (text.find(word) != std::string_view::npos) return schema::RpcStatus::kPeerGone;
    return schema::RpcStatus::kError;
}

}  // namespace ringside::inject::torch
