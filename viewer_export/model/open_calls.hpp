// What a process was in when the capture ended, and how far it had come in its groups, as a dump's ProcessEnd tells (dump.fbs).
#pragma once

#include <cstdint>
#include <string>

#include "schema/ids.hpp"
#include "schema/open_calls.hpp"

namespace ringside::viewer_export::model {

struct OpenCall {
    std::int32_t tid = 0;
    schema::SourceId source = schema::SourceId::kNone;
    std::string function;
    std::uint64_t begin_ticks = 0;
    std::uint64_t group = 0;     ///< a Group's id; 0: none
    std::uint64_t sequence = 0;  ///< of a collective in its group; 0: not one
    std::int32_t peer = schema::kNoPeer;
    std::int32_t tag = schema::kAnyTag;
};

struct Group {
    std::uint64_t id = 0;  ///< equal at all members
    schema::SourceId source = schema::SourceId::kNone;
    std::string label;
    std::uint32_t size = 0;
    std::int32_t rank = 0;       ///< of this process in it
    std::int32_t job_rank = -1;  ///< of this process in the job; -1: unknown
    std::uint64_t last = 0;      ///< the last collective that it had begun; 0: none
};

}  // namespace ringside::viewer_export::model
