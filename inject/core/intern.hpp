// The segment's name table, from the writer's side: lock-free, by content, shared by all threads of the process.
#pragma once

#include <cstdint>

#include "inject/core/process.hpp"
#include "schema/ids.hpp"
#include "schema/names.hpp"

namespace ringside::inject {

/// Makes the table's entries and the first `text_bytes` of its text real in a segment of this process.
bool populate_names(std::byte* segment, std::uint32_t text_bytes);
/// Whether that was done in the present segment.
bool names_ready();
/// Does that, and sees to unknown_name().
/// @return false: memory is refused
bool make_names_ready();
/// The name "?", for what a record says by a name's id alone, where the table has no room for the text. It is in the table from the first lane on, so that
/// it has its place when all others are taken.
/// @thread thread-safe, async-signal-safe; only with a lane
schema::NameId unknown_name();
/// The process has another segment: nothing of its table is real yet.
void forget_names();
/// Changes with each forget_names(): ids that were kept under another number are another table's. In the high half of the word; never 0.
extern std::atomic<std::uint64_t> g_names_epoch;
inline std::uint32_t names_epoch() {
    return static_cast<std::uint32_t>(g_names_epoch.load(std::memory_order_relaxed) >> 32);
}

/// The id of a text as somebody keeps it beside that, in a word that is 0 at first.
/// @return false: none, or one of another table
[[gnu::always_inline]] inline bool find_kept_name(std::uint64_t kept, schema::NameId& name) {
    const std::uint64_t id = kept ^ g_names_epoch.load(std::memory_order_relaxed);
    name = {static_cast<std::uint32_t>(id)};
    return id <= schema::kNameEntries;
}
/// @return for find_kept_name(): 0 for an id that stands for no entry of the table
inline std::uint64_t keep_name(schema::NameId name) {
    return name == schema::kInlineName || name == schema::kNoName
               ? 0
               : g_names_epoch.load(std::memory_order_relaxed) | name.value;
}

/// @return kNoName where neither an entry nor bytes are left
/// @thread thread-safe, async-signal-safe; only with a lane (its creation populates the table's pages)
schema::NameId intern_name(const char* text, std::uint32_t length, schema::AttributeId attribute);

/// The interned bytes, NUL-terminated; the empty string for kNoName and what is no table entry.
/// @thread thread-safe
inline const char* name_text(schema::NameId id) {
    if (id.value - 1 >= schema::kNameEntries) return "";
    const auto* entries =
        reinterpret_cast<const schema::NameEntry*>(segment_base() + schema::kNamesOffset);
    return reinterpret_cast<const char*>(segment_base() + schema::kNameBytesOffset) +
           entries[id.value - 1].offset.load(std::memory_order_relaxed);
}

/// Copies a process's names into its forked child's segment: ids that sources remember stay right. Entries that were being filled by
/// another thread are free again.
/// @thread the forked child's only one
void copy_names(std::byte* to_segment, const std::byte* from_segment);

}  // namespace ringside::inject
