// Torch's layout to the character (`_build_table` of torch/autograd/profiler_util.py), then lines of our own.
#include "viewer_export/out/table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "schema/control_page.hpp"
#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/text_table.hpp"

namespace ringside::viewer_export {

namespace {

constexpr std::size_t kNameWidth = 55;
constexpr std::size_t kColumnWidth = 12;
constexpr std::size_t kShapesWidth = 80;

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
    TableColumns of_torch;
    bool node_id = false;
    bool shapes = false;
    std::size_t shapes_width = 0;
};

const char* shapes_of(const TableRow& row) {
    return row.input_shapes.empty() ? "[]" : row.input_shapes.c_str();
}

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

Cells cells_of(const TableRow& row, const TableSums& sums, bool full_names, const Columns& shown) {
    std::string name = printable(row.name);
    // Torch marks a name as cut from 52 characters on, even where nothing is cut off.
    if (!full_names && length_of(name) >= kNameWidth - 3)
        name = first_characters(name, kNameWidth - 3) + "...";
    const auto average = [&](std::int64_t ns) {
        return format_time(static_cast<double>(ns) /
                           static_cast<double>(std::max<std::uint64_t>(row.count, 1)));
    };
    Cells cells = {std::move(name),
                   format_share(row.self_cpu_ns, sums.self_cpu_ns),
                   format_time(static_cast<double>(row.self_cpu_ns)),
                   row.is_async ? "0" : format_share(row.cpu_ns, sums.self_cpu_ns),
                   format_time(static_cast<double>(row.cpu_ns)),
                   average(row.cpu_ns)};
    if (shown.of_torch.cuda) {
        cells.push_back(format_time(static_cast<double>(row.self_cuda_ns)));
        cells.push_back(format_share(row.self_cuda_ns, sums.self_cuda_ns));
        cells.push_back(format_time(static_cast<double>(row.cuda_ns)));
        cells.push_back(average(row.cuda_ns));
    }
    if (shown.of_torch.memory) {
        cells.push_back(format_memory(row.memory.cpu));
        cells.push_back(format_memory(row.self_memory.cpu));
    }
    if (shown.of_torch.cuda_memory) {
        cells.push_back(format_memory(row.memory.cuda));
        cells.push_back(format_memory(row.self_memory.cuda));
    }
    cells.push_back(std::to_string(row.count));
    if (shown.node_id) cells.push_back(std::to_string(row.node_id));
    if (shown.shapes)
        cells.push_back(first_characters(printable(shapes_of(row)), shown.shapes_width));
    return cells;
}

Columns columns_of(const std::vector<TableRow>& rows, const TableColumns& of_torch) {
    Columns shown;
    shown.of_torch = of_torch;
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
    if (shown.of_torch.cuda)
        headers.insert(headers.end(), {"Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"});
    if (shown.of_torch.memory) headers.insert(headers.end(), {"CPU Mem", "Self CPU Mem"});
    if (shown.of_torch.cuda_memory) headers.insert(headers.end(), {"CUDA Mem", "Self CUDA Mem"});
    headers.emplace_back("# of Calls");
    if (shown.node_id) headers.emplace_back("Node ID");
    if (shown.shapes) headers.emplace_back("Input Shapes");
    return headers;
}

std::string torch_table(const std::vector<TableRow>& rows, const TableOptions& options,
                        const TableColumns& of_torch) {
    if (rows.empty()) return {};
    std::size_t longest = 0;
    for (const TableRow& row : rows) longest = std::max(longest, length_of(row.name));
    const TableSums sums = table_sums(rows);
    const Columns shown = columns_of(rows, of_torch);
    const Cells headers = headers_of(shown);
    const std::size_t width = options.full_names ? longest + 4 : std::min(longest + 4, kNameWidth);
    Text text(width, headers.size(), shown);
    text.separator();
    text.row(headers);
    text.separator();
    const std::size_t limit =
        options.row_limit == 0 ? rows.size() : std::min(rows.size(), options.row_limit);
    for (std::size_t i = 0; i < limit; ++i)
        text.row(cells_of(rows[i], sums, options.full_names, shown));
    text.separator();
    std::string totals =
        "Self CPU time total: " + format_time(static_cast<double>(sums.self_cpu_ns)) + "\n";
    if (of_torch.cuda) {
        totals +=
            "Self CUDA time total: " + format_time(static_cast<double>(sums.self_cuda_ns)) + "\n";
    }
    return text.take() + totals;
}

}  // namespace

TableColumns table_columns(const model::Job& job, const std::vector<TableRow>& rows) {
    constexpr auto kBit = static_cast<std::uint32_t>(schema::CaptureOption::kProfileMemory);
    const auto any = [&](auto&& has) { return std::any_of(rows.begin(), rows.end(), has); };
    TableColumns columns;
    columns.memory = std::any_of(job.nodes.begin(), job.nodes.end(), [](const model::Node& node) {
        return (node.options & kBit) != 0;
    });
    columns.cuda = any([](const TableRow& row) { return row.self_cuda_ns > 0; });
    columns.cuda_memory =
        columns.memory && any([](const TableRow& row) { return row.self_memory.cuda > 0; });
    return columns;
}

TableSums table_sums(const std::vector<TableRow>& rows) {
    TableSums sums;
    for (const TableRow& row : rows) {
        model::add_to(sums.self_cpu_ns, row.self_cpu_ns);
        if (row.on_device) model::add_to(sums.self_cuda_ns, row.self_cuda_ns);
    }
    return sums;
}

schema::Result<std::string> render_table(const model::Job& job, const TableOptions& options) {
    const auto rows = table_rows(job, options);
    if (!rows) return rows.error();
    std::string text = torch_table(*rows, options, table_columns(job, *rows));
    for (const std::string& line : table_footer(job, *rows, options))
        text += printable(line) + "\n";
    return text;
}

}  // namespace ringside::viewer_export
