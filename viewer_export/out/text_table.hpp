// Rows of cells as text, right-aligned; and what a job's names may do to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ringside::viewer_export {

/// Characters as Python counts them: code points.
std::size_t length_of(std::string_view text);

/// The first of them.
std::string first_characters(const std::string& text, std::size_t count);

/// A name comes from the job: what would move the cursor doesn't reach the terminal.
std::string printable(std::string text);

using Cells = std::vector<std::string>;

/// Each column as wide as its widest cell, two spaces apart, between lines: the header, and each of `blocks`.
std::string right_aligned(const Cells& header, const std::vector<std::vector<Cells>>& blocks);

/// Takes out the columns from `first` on in which no row says anything: nothing but `0` and `-`.
void drop_silent_columns(Cells& header, std::vector<Cells>& rows, std::size_t first);

/// The line below a table that lacks rows; nothing where it lacks none.
/// @param of  what they are of: " of iterations"
std::string left_out_line(std::size_t rows, std::string_view of = {});

}  // namespace ringside::viewer_export
