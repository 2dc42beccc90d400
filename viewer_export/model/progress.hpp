// How far a long piece of work is, for whoever shows it: the command makes its bar of it.
#pragma once

#include <cstdint>
#include <functional>

namespace ringside::viewer_export::model {

/// Told now and then what is under way, and how much of it is done, in whatever unit. Empty: nobody wants to know.
using Tell = std::function<void(const char* what, std::uint64_t done, std::uint64_t total)>;

}  // namespace ringside::viewer_export::model
