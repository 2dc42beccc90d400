// The segment's attribute sets, from the writer's side: what a framework says of an event beside its name (domain, category, colour, the
// kind of its payload), interned as names are. A set belongs to a name: ThreadLane::intern(text, length, attribute).
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"
#include "schema/names.hpp"

namespace ringside::inject {

struct AttributeSet {
    NameId domain;
    NameId category;
    std::uint32_t colour = 0;  ///< ARGB; 0: none
    schema::PayloadType payload = schema::PayloadType::kNone;

    bool empty() const {
        return domain.value == 0 && category.value == 0 && colour == 0 &&
               payload == schema::PayloadType::kNone;
    }
};

/// Where the table is full the colour is given up first (programs may compute one for each event), then the whole set; both are counted.
/// @return 0 for an empty set
/// @thread thread-safe, async-signal-safe; only inside a HookScope
schema::AttributeId intern_attributes(const AttributeSet& set);

/// What a record says by a name's id alone (a domain, a category, input shapes, an RPC's module or peer): there is no room for the text itself.
/// @param interned  what ThreadLane::intern() has returned
/// @return the same; where the table is full unknown_name(), and it is counted: such records differ from those that have none
NameId label_of(NameId interned);

/// label_of() ThreadLane::intern_cached(); none for no text.
NameId intern_label(ThreadLane& lane, const char* text);

/// The process has another segment: nothing of its table is real yet.
void forget_attributes();

/// As copy_names(), which calls it: ids in the copied names stay right.
/// @return bytes made real for it
std::size_t copy_attributes(std::byte* to_segment, const std::byte* from_segment);

}  // namespace ringside::inject
