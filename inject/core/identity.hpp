// Who this process is, read once at load: what its segment's header says and the file's name is made of.
#pragma once

#include <cstdint>

#include "inject/core/fixed_text.hpp"
#include "schema/control_page.hpp"

namespace ringside::inject {

struct Identity {
    FixedText<256>
        executable;  ///< absolute path, as the program was started where that is known, else the file's; may be empty without /proc
    char command_line[512];  ///< arguments, each ended by a NUL; cut
    std::int32_t rank = -1;
    std::uint64_t pid_namespace = 0;  ///< inode; 0 without /proc
};

/// @param arguments  main's argv, null-terminated; may be null
/// @thread main thread, at load
void read_identity(Identity& identity, const char* const* arguments);

/// The inode of the caller's pid namespace; 0 without /proc.
std::uint64_t pid_namespace();
/// The same, without a look into the process's /proc where the control page makes that unnecessary.
std::uint64_t pid_namespace(const schema::ControlPage& control);

/// What a new control page says: ControlPage::machine_proc.
std::uint64_t machine_proc();

/// A decimal number out of the environment.
/// @return false where `text` is null or anything else
bool parse_number(const char* text, std::int32_t& value);

}  // namespace ringside::inject
