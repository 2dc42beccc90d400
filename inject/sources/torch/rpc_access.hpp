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

/// A worker's name, kept for later.
struct KeptName {
    char text[136];
    std::uint32_t length;

    std::string_view view() const { return {text, length}; }
};

/// Looks up the accessors.
/// @return false where one is missing: no RPC can be recorded
bool find_accessors(const SlotSet& libraries);

MessageView view_message(void* message);

// Names of workers, of which request ids are made: torch's own text, NUL-terminated, never null, at most kMaxWorkerName long.

/// The other end's name of a tensorpipe::Pipe; valid while the pipe is.
std::string_view pipe_peer(void* pipe);
KeptName keep_name(std::string_view name);

/// The agent's own name, valid while the agent is; empty where WorkerInfo's layout is not known.
std::string_view agent_name(void* agent);
std::int16_t agent_id(void* agent);

/// The id of a WorkerInfo, as agent_id().
std::int16_t destination_id(const char* worker_info);

/// At a call: the destination's name as we read it must be the pipe's; else the layout is looked for again, and given up for good.
/// @return false where it has just been given up
bool confirm_worker_layout(const char* destination, std::string_view peer);

/// Whether agent_name() works, as far as is known.
bool own_name_known();

}  // namespace ringside::inject::torch
