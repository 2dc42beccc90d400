// What communicators are called in records. Equal at all members.
#pragma once

#include <cstdint>

#include "inject/core/fixed_text.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject::mpi {

/// What a label may have, with its NUL.
inline constexpr std::uint32_t kLabelBytes = 32;
using Label = FixedText<kLabelBytes>;

/// Of one without a parent that counts it, and where a label would be too long.
inline Label hashed_label(std::uint64_t id) {
    char digits[17] = {};
    schema::write_hex(digits, id, 16);
    Label label;
    label.append("comm-").append(digits);
    return label;
}

/// Of the `nth` communicator made on the one labelled `parent`, whose lowest rank of the world is `lowest`.
inline Label child_label(const char* parent, std::uint64_t nth, std::int32_t lowest,
                         std::uint64_t id) {
    Label label;
    label.append(parent).append("/").append_number(nth).append(".").append_number(
        static_cast<std::uint64_t>(lowest));
    return label.cut() ? hashed_label(id) : label;
}

}  // namespace ringside::inject::mpi
