// Torch's layout to the character (`_build_table` of torch/autograd/profiler_util.py), then lines of our own.
#include "viewer_export/out/table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export {

namespace {

constexpr std::size_t kNameWidth = 55;
constexpr std::size_t kColumnWidth = 12;
constexpr std::size_t kShapesWidth = 80;

/// Characters as Python counts them: code points.
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

/// A name comes from the job: what would move the cursor doesn't reach the terminal.
std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return text;
}

std::string format_share(std::int64_t ns, std::int64_t total_ns) {
    if (total_ns == 0) return "NaN";
    char text[64];
    std::snprintf(text, sizeof text, "%.2f%%",
                  static_cast<double>(ns) * 100.0 / static_cast<double>(total_ns));
    return text;
}

/// As torch's `_format_memory`.
std::string format_memory(std::int64_t bytes) {
    constexpr std::array<std::pair<std::int64_t, const char*>, 3> kUnits = {
        {{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}}};
    for (const auto& [size, unit] : kUnits) {
        if (std::abs(bytes) < size) continue;
        char text[64];
        std::snprintf(text, sizeof text, "%.2f %s",
                      static_cast<double>(bytes) / static_cast<double>(size), unit);
        return text;
    }
    return std::to_string(bytes) + " B";
}

/// The columns that only some tables have.
struct Columns {
    bool memory = false;
    bool node_id = false;
    bool shapes = false;
    std::size_t shapes_width = 0;
};

const char* shapes_of(const TableRow& row) {
    return row.input_shapes.empty() ? "[]" : row.input_shapes.c_str();
}

using Cells = std::vector<std::string>;

class Text {
public:
    Text(std::size_t name_width, std::size_t columns, const Columns& shown)
        : widths_(columns, kColumnWidth) {
        widths_.front() = name_width;
        if (shown.shapes) widths_.back() = shown.shapes_width;
    }
    void separator() {
        for (const std::size_t width : widths_) out_.append(width, '-').append("  ");
        out_ += '\n';
    }
    void row(const Cells& cells) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::size_t length = length_of(cells[i]);
            if (length < widths_[i]) out_.append(widths_[i] - length, ' ');
            out_.append(cells[i]).append("  ");
        }
        out_ += '\n';
    }
    std::string take() { return std::move(out_); }

private:
    std::vector<std::size_t> widths_;
    std::string out_;
};

Cells cells_of(const TableRow& row, std::int64_t total_ns, bool full_names, const Columns& shown) {
    std::string name = printable(row.name);
    // Torch marks a name as cut from 52 characters on, even where nothing is cut off.
    if (!full_names && length_of(name) >= kNameWidth - 3)
        name = first_characters(name, kNameWidth - 3) + "...";
    const double average = static_cast<double>(row.cpu_ns) /
                           static_cast<double>(std::max<std::uint64_t>(row.count, 1));
    Cells cells = {std::move(name),
                   format_share(row.self_cpu_ns, total_ns),
                   format_time(static_cast<double>(row.self_cpu_ns)),
                   row.is_async ? "0" : format_share(row.cpu_ns, total_ns),
                   format_time(static_cast<double>(row.cpu_ns)),
                   format_time(average)};
    if (shown.memory) {
        cells.push_back(format_memory(row.cpu_memory_bytes));
        cells.push_back(format_memory(row.self_cpu_memory_bytes));
    }
    cells.push_back(std::to_string(row.count));
    if (shown.node_id) cells.push_back(std::to_string(row.node_id));
    if (shown.shapes)
        cells.push_back(first_characters(printable(shapes_of(row)), shown.shapes_width));
    return cells;
}

Columns columns_of(const std::vector<TableRow>& rows, bool memory) {
    Columns shown;
    shown.memory = memory;
    std::size_t longest = 0;
    for (const TableRow& row : rows) {
        shown.node_id = shown.node_id || row.node_id != -1;
        shown.shapes = shown.shapes || !row.input_shapes.empty();
        longest = std::max(longest, length_of(shapes_of(row)));
    }
    shown.shapes_width = std::min(longest + 4, kShapesWidth);
    return shown;
}

Cells headers_of(const Columns& shown) {
    Cells headers = {"Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"};
    if (shown.memory) headers.insert(headers.end(), {"CPU Mem", "Self CPU Mem"});
    headers.emplace_back("# of Calls");
    if (shown.node_id) headers.emplace_back("Node ID");
    if (shown.shapes) headers.emplace_back("Input Shapes");
    return headers;
}

std::string torch_table(const std::vector<TableRow>& rows, const TableOptions& options,
                        bool memory) {
    if (rows.empty()) return {};
    std::size_t longest = 0;
    std::int64_t total_ns = 0;
    for (const TableRow& row : rows) {
        longest = std::max(longest, length_of(row.name));
        model::add_to(total_ns, row.self_cpu_ns);
    }
    const Columns shown = columns_of(rows, memory);
    const Cells headers = headers_of(shown);
    const std::size_t width = options.full_names ? longest + 4 : std::min(longest + 4, kNameWidth);
    Text text(width, headers.size(), shown);
    text.separator();
    text.row(headers);
    text.separator();
    const std::size_t limit =
        options.row_limit == 0 ? rows.size() : std::min(rows.size(), options.row_limit);
    for (std::size_t i = 0; i < limit; ++i)
        text.row(cells_of(rows[i], total_ns, options.full_names, shown));
    text.separator();
    return text.take() + "Self CPU time total: " + format_time(static_cast<double>(total_ns)) +
           "\n";
}

}  // namespace

schema::Result<std::string> render_table(const model::Job& job, const TableOptions& options) {
    const auto rows = table_rows(job, options);
    if (!rows) return rows.error();
    std::string text = torch_table(*rows, options, has_memory(job));
    for (const std::string& line : table_footer(job, *rows, options))
        text += printable(line) + "\n";
    return text;
}

}  // namespace ringside::viewer_export
