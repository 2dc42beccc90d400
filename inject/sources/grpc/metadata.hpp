// What is read of metadata, methods and status codes. Pure: tested without gRPC.
#pragma once

#include <cstring>
#include <string_view>

#include "inject/sources/grpc/abi.hpp"
#include "schema/record.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject::grpc {

inline constexpr std::string_view kTraceparent = "traceparent";

inline std::string_view text_of(const Slice& slice) {
    return slice.count == nullptr ? std::string_view{slice.inlined.bytes, slice.inlined.length}
                                  : std::string_view{slice.counted.bytes, slice.counted.length};
}

/// The W3C's header among `count` entries.
/// @return null: there is none
inline const Slice* find_traceparent(const Metadata* metadata, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        if (text_of(metadata[i].key) == kTraceparent) return &metadata[i].value;
    return nullptr;
}

/// @return none (all zero) where the header is malformed: the program's own stays what it is
inline schema::RequestId read_traceparent(const Slice& value) {
    const std::string_view text = text_of(value);
    schema::RequestId id;
    schema::parse_traceparent(text.data(), text.size(), id);
    return id;
}

/// `/package.Service/Method`, taken apart.
struct MethodName {
    std::string_view service, method;
};
inline MethodName split_method(std::string_view path) {
    if (!path.empty() && path.front() == '/') path.remove_prefix(1);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {{}, path};
    // Not substr(): it can throw, and there is no C++ runtime in the shim.
    return {{path.data(), slash}, {path.data() + slash + 1, path.size() - slash - 1}};
}

inline schema::RpcStatus status_of(std::int32_t code) {
    switch (code) {
        case kCodeOk:
            return schema::RpcStatus::kOk;
        case kCodeCancelled:
            return schema::RpcStatus::kCancelled;
        case kCodeDeadlineExceeded:
            return schema::RpcStatus::kTimeout;
        case kCodeUnavailable:
            return schema::RpcStatus::kPeerGone;
        default:
            return schema::RpcStatus::kError;
    }
}

/// A batch, sorted by kind: it holds at most one operation of each.
class Batch {
public:
    Batch(const Op* ops, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (static_cast<std::uint32_t>(ops[i].type) < kMostOps) ops_[ops[i].type] = &ops[i];
    }
    /// @return null: it holds none
    const Op* find(OpType type) const { return ops_[type]; }

private:
    const Op* ops_[kMostOps]{};
};

}  // namespace ringside::inject::grpc
