#include "viewer_export/out/text_table.hpp"

#include <algorithm>
#include <cstdint>

namespace ringside::viewer_export {

namespace {

void widen(std::vector<std::size_t>& widths, const Cells& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], length_of(cells[i]));
}

void append(std::string& text, const Cells& cells, const std::vector<std::size_t>& widths) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) text += "  ";
        text.append(widths[i] - length_of(cells[i]), ' ').append(cells[i]);
    }
    text += '\n';
}

}  // namespace

std::size_t length_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<std::uint8_t>(c) & 0xc0u) != 0x80u;
    }));
}

std::string first_characters(const std::string& text, std::size_t count) {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        if ((static_cast<std::uint8_t>(text[at]) & 0xc0u) != 0x80u && count-- == 0) break;
    }
    return text.substr(0, at);
}

std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return text;
}

std::string right_aligned(const Cells& header, const std::vector<std::vector<Cells>>& blocks) {
    std::vector<std::size_t> widths(header.size(), 0);
    widen(widths, header);
    for (const auto& block : blocks) {
        for (const Cells& cells : block) widen(widths, cells);
    }
    std::string line;
    for (const std::size_t width : widths) line.append(line.empty() ? "" : "  ").append(width, '-');
    line += '\n';
    std::string text = line;
    append(text, header, widths);
    text += line;
    for (const auto& block : blocks) {
        if (block.empty()) continue;
        for (const Cells& cells : block) append(text, cells, widths);
        text += line;
    }
    return text;
}

void drop_silent_columns(Cells& header, std::vector<Cells>& rows, std::size_t first) {
    for (std::size_t i = header.size(); i-- > first;) {
        const auto silent = [i](const Cells& row) { return row[i] == "0" || row[i] == "-"; };
        if (!std::all_of(rows.begin(), rows.end(), silent)) continue;
        const auto at = static_cast<std::ptrdiff_t>(i);
        header.erase(header.begin() + at);
        for (Cells& row : rows) row.erase(row.begin() + at);
    }
}

std::string left_out_line(std::size_t rows, std::string_view of) {
    if (rows == 0) return {};
    return std::to_string(rows) + (rows == 1 ? " row" : " rows") + std::string(of) +
           (rows == 1 ? " is" : " are") + " not shown (--row-limit 0 shows all)\n";
}

}  // namespace ringside::viewer_export
