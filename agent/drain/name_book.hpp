// Which names of a process a capture has used, in the order of their first use: they go into the dump before the block that uses them.
// Names are fetched when a record mentions them, never by walking the table: a program with 8000 names that uses 10 costs 10.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "agent/attach/mapped_segment.hpp"
#include "agent/drain/sink.hpp"

namespace ringside::agent {

class NameBook {
public:
    bool used(std::uint32_t id) const { return id - 1 < schema::kNameEntries && used_[id - 1]; }
    /// Marks a name as used. An id beyond the table counts as a violation; a name that can't be read is announced as lost.
    void use(MappedSegment& segment, std::uint32_t id) {
        if (!used(id)) [[unlikely]]
            first_use(segment, id);
    }
    /// Names and attributes used since the last call.
    /// @return false: none
    bool take(NamesBatch& batch);
    /// Takes over what another agent has put into the dump.
    void restore(const NamesBatch& batch);
    /// The text of a used name; empty: unknown.
    const std::string& text(schema::NameId id) const;
    void clear();
    /// What was announced counts no more: each name is announced again with its next use. Texts stay.
    void announce_again();

private:
    void first_use(MappedSegment& segment, std::uint32_t id);
    bool use_attribute(MappedSegment& segment, std::uint16_t attribute);

    std::bitset<schema::kNameEntries> used_;
    std::bitset<schema::kAttributeEntries + 1> attributes_used_;
    std::unordered_map<std::uint32_t, std::string> texts_;
    NamesBatch pending_;
};

}  // namespace ringside::agent
