// What became of each process of a capture, a line each, for terminals of 80 to 200 columns.
#pragma once

#include <cstddef>
#include <string>

#include "schema/control_generated.h"

namespace ringside::tools {

/// Aligned columns: node, rank, pid, command, sources, events, lost, bytes, start, verdict and reason; sorted by node, rank, pid. Where they don't
/// fit, command, sources and reason go to a line of their own below. What is not good bears a `!`. Those that recorded nothing because no
/// framework was loaded are one line together; so are, of more than 256, those that are good and have lost nothing.
/// @param width  columns, 80 or more
std::string verdict_table(const fbs::TraceReplyT& reply, std::size_t width);

/// Of what stdout leads to: a terminal's columns, else COLUMNS, else 200; 80 at least.
std::size_t text_width();

}  // namespace ringside::tools
