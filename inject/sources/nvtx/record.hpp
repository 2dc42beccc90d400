// NVTX events as records: a name with its attribute set, and the payload as the record's argument.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/core/intern.hpp"
#include "inject/sources/nvtx/abi.hpp"
#include "inject/sources/nvtx/handles.hpp"

namespace ringside::inject::nvtx {

/// All that a record needs of an event.
struct Event {
    NameId name;
    std::uint64_t payload = 0;
};

/// @param attributes  as the program passes them; fields beyond its `size` are not there
Event read_event(ThreadLane& lane, const Domain* domain, const EventAttributes* attributes);
/// The id of an event that is a registered string of `domain` and nothing else, where it has been interned.
inline bool find_known_name(const Domain* domain, const EventAttributes* event, NameId& name) {
    if (event == nullptr || event->size < sizeof *event ||
        event->message_type != kMessageRegistered || event->message == nullptr ||
        (event->category | static_cast<std::uint32_t>(event->colour_type) |
         static_cast<std::uint32_t>(event->payload_type)) != 0)
        return false;
    const auto* string = static_cast<const RegisteredString*>(event->message);
    return string->domain == domain &&
           find_kept_name(string->plain_name.load(std::memory_order_relaxed), name);
}

Event read_event(ThreadLane& lane, const char* message);
Event read_event(ThreadLane& lane, const wchar_t* message);

void record_push(ThreadLane& lane, const Domain* domain, const Event& event);
void record_pop(ThreadLane& lane, const Domain* domain);
void record_mark(ThreadLane& lane, const Event& event);

/// @param next_id  the other tool's; 0: there is none
/// @return the id for the program: it ends the range with it, on any thread
RangeId record_start(ThreadLane& lane, const Event& event, RangeId next_id);
/// What the other tool is to be told of an id: 0, as it gave for this range, where the id is ours.
RangeId id_for_next(RangeId id);
void record_end(ThreadLane& lane, RangeId id);

}  // namespace ringside::inject::nvtx
