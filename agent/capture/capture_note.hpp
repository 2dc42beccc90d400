// What a job directory says of the capture that runs in it: which it is and where its dump grows. Made before the order, removed when the
// dump has its name, so that one that is there without an agent tells whoever comes next what to finish.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/capture/selection.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct CaptureNote {
    std::uint64_t id = 0;
    std::string node;
    std::string output_root;
    std::string name;  ///< of the dump's folder beneath it
    std::uint64_t max_bytes = 0;
    std::uint32_t options = 0;
    Selection selection;
    bool from_start = false;
    bool compress = false;
    bool window = false;  ///< what an armed agent's window has become: its pieces go with this note
    bool operator==(const CaptureNote&) const = default;
};

/// Writes it whole under its name, replacing one that is there.
/// @param directory  the job directory, ours alone
/// @errors Usage: it can't be written
schema::Result<void> write_note(const std::string& directory, const CaptureNote& note);
/// @return nothing where none is there, or what is there is none of ours
std::optional<CaptureNote> read_note(const std::string& directory);
void remove_note(const std::string& directory);

}  // namespace ringside::agent
