// The functions that ITT's static part calls in place of nothing, and the tool that stood there before us.
#pragma once

#include <cstdint>

#include "inject/sources/itt/abi.hpp"

namespace ringside::inject::itt {

/// What we do where another collector has a function for the same call.
enum class Beside : std::uint8_t {
    kForward,  ///< ours, which hands on
    kMakes,    ///< theirs, or ours where they have none: it makes what has one layout for all
    kTheirs,   ///< theirs or nothing: what it takes is what they have made
};

struct Call {
    const char* name;  ///< as in Api
    AnyFunction function;
    Beside beside;
};

/// All calls that we take part in.
inline constexpr std::uint32_t kMostCalls = 64;
const Call* calls_begin();
const Call* calls_end();

/// Remembers another collector's function for the call with this number in the list.
/// @return false: it has given another one in another copy; that is left alone, and counted
bool remember_next(std::uint32_t call, AnyFunction function);

}  // namespace ringside::inject::itt
