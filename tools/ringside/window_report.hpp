// An armed agent's window, for people and for programs: what `arm`, `disarm` and `status` say of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "schema/control_generated.h"

namespace ringside::tools {

/// "keeps 10 s / 256.0 MiB, holds 7.8 s, 31.0 MiB, 1,234 records".
std::string window_text(const fbs::WindowStatusT& window);
nlohmann::json window_json(const fbs::WindowStatusT& window);
/// Of a dead agent's pieces, as they lie in the job directory; empty where there are none.
std::string left_text(std::uint32_t pieces, std::uint64_t bytes);

}  // namespace ringside::tools
