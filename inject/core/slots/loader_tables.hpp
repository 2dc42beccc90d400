// The two tables of the loader's objects and slots, side by side: slots from their end, objects from their beginning, so that what a small process needs of
// both is one page, where each would cost its start one, and a page table's. Read and written under the loader's lock.
#pragma once

#include "inject/core/slots/objects.hpp"
#include "inject/core/slots/slot_table.hpp"
#include "schema/segment.hpp"

namespace ringside::inject {

struct alignas(schema::kPageBytes) LoaderTables {
    static constexpr std::size_t kOffset = 1024;  ///< so that the boundary lies within a page

    std::byte unused[kOffset];
    Slot slots[kMaxSlots];
    LoadedObject objects[kMaxObjects];
};
static_assert(offsetof(LoaderTables, objects) % schema::kPageBytes == LoaderTables::kOffset);

/// Zero pages until objects are looked at.
extern constinit LoaderTables g_loader_tables __attribute__((visibility("hidden")));

}  // namespace ringside::inject
