// How the RPC hooks look into torch's objects: through exported accessors, and the one layout that is found at run time (WorkerInfo's).
// Called by rpc_calls and rpc inside their HookScope; the accessors read a field each.
#pragma once

#include <cstdint>
#include <string_view>

#include "inject/core/emit.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// A message as a hook sees it. Valid while the hook runs.
struct MessageView {
    std::int64_t id;
    std::int32_t type;
    const char* payload;
    std::size_t bytes;

    bool is_request() const;
};

/// A worker's name, copied, with its NUL: what a request id is derived from.
struct WorkerName {
    char text[136];
    std::uint32_t length;

    std::string_view view() const { return {text, length}; }
};

/// Looks up the accessors.
/// @return false where one is missing: no RPC can be recorded
bool find_accessors(const SlotSet& libraries);

MessageView view_message(void* message);

/// The other end's name of a tensorpipe::Pipe.
WorkerName pipe_peer(void* pipe);

/// The agent's own name; empty where WorkerInfo's layout is not known.
WorkerName agent_name(void* agent);
std::int16_t agent_id(void* agent);

/// Name and id of a WorkerInfo, as agent_name().
WorkerName destination_name(const char* worker_info);
std::int16_t destination_id(const char* worker_info);

/// At a call: the destination's name as we read it must be the pipe's; else the layout is looked for again, and given up for good.
/// @return false where it has just been given up
bool confirm_worker_layout(const char* destination, const WorkerName& peer);

/// Whether agent_name() works, as far as is known.
bool own_name_known();

}  // namespace ringside::inject::torch
