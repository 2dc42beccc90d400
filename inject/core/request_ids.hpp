// Ids of requests that this process makes, for wires that carry them.
#pragma once

#include "inject/core/process.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject {

/// Unique among the job's processes: what the segment's name is made of, and a key of it.
inline std::uint64_t unique_word(std::uint64_t key, std::uint64_t salt) {
    const schema::SegmentHeader& header = *g_process.header;
    std::uint64_t hash = schema::mix64(header.start_ticks ^ salt);
    hash =
        schema::mix64(hash ^ static_cast<std::uint64_t>(header.pid) << 32 ^ header.pid_namespace);
    hash = schema::mix64(hash ^ static_cast<std::uint64_t>(header.load_clock.realtime_ns));
    hash = schema::mix64(hash ^ key);
    return hash == 0 ? 1 : hash;
}

/// The id of a call that this process makes.
/// @param key  of the half that makes it
/// @param serving  the trace of the request that the caller serves: the call belongs to it. Where there is none it is the root of its own.
inline schema::RequestId new_request_id(std::uint64_t key, const schema::TraceId& serving) {
    return {serving.valid() ? serving : schema::TraceId{unique_word(key, 1), unique_word(key, 2)},
            {unique_word(key, 3)}};
}

}  // namespace ringside::inject
