// What rows are sorted by: torch's attributes of an average, where the greatest comes first.
#include "viewer_export/out/table_order.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ringside::viewer_export {

namespace {

double average(std::int64_t ns, const TableRow& row) {
    return row.count == 0 ? 0.0 : static_cast<double>(ns) / static_cast<double>(row.count);
}

/// Numbers descend as torch's do; names and node ids ascend.
constexpr std::array<std::pair<std::string_view, RowOrder>, 14> kSortKeys = {{
    {"cpu_time_total", [](const TableRow& a, const TableRow& b) { return a.cpu_ns > b.cpu_ns; }},
    {"self_cpu_time_total",
     [](const TableRow& a, const TableRow& b) { return a.self_cpu_ns > b.self_cpu_ns; }},
    {"cpu_time", [](const TableRow& a,
                    const TableRow& b) { return average(a.cpu_ns, a) > average(b.cpu_ns, b); }},
    {"cuda_time_total", [](const TableRow& a, const TableRow& b) { return a.cuda_ns > b.cuda_ns; }},
    {"self_cuda_time_total",
     [](const TableRow& a, const TableRow& b) { return a.self_cuda_ns > b.self_cuda_ns; }},
    {"cuda_time", [](const TableRow& a,
                     const TableRow& b) { return average(a.cuda_ns, a) > average(b.cuda_ns, b); }},
    {"cpu_memory_usage",
     [](const TableRow& a, const TableRow& b) { return a.memory.cpu > b.memory.cpu; }},
    {"self_cpu_memory_usage",
     [](const TableRow& a, const TableRow& b) { return a.self_memory.cpu > b.self_memory.cpu; }},
    {"cuda_memory_usage",
     [](const TableRow& a, const TableRow& b) { return a.memory.cuda > b.memory.cuda; }},
    {"self_cuda_memory_usage",
     [](const TableRow& a, const TableRow& b) { return a.self_memory.cuda > b.self_memory.cuda; }},
    {"count", [](const TableRow& a, const TableRow& b) { return a.count > b.count; }},
    {"name", [](const TableRow& a, const TableRow& b) { return a.name < b.name; }},
    {"key", [](const TableRow& a, const TableRow& b) { return a.name < b.name; }},
    {"node_id", [](const TableRow& a, const TableRow& b) { return a.node_id < b.node_id; }},
}};

/// Torch's newer name of a key: `self_device_time_total` is `self_cuda_time_total`.
std::string cuda_name(std::string key) {
    constexpr std::string_view kDevice = "device";
    if (const auto at = key.find(kDevice); at != std::string::npos)
        key.replace(at, kDevice.size(), "cuda");
    return key;
}

}  // namespace

const std::vector<std::string_view>& table_sort_keys() {
    static const std::vector<std::string_view> kKeys = [] {
        std::vector<std::string_view> result;
        result.reserve(kSortKeys.size());
        for (const auto& [name, order] : kSortKeys) result.push_back(name);
        return result;
    }();
    return kKeys;
}

schema::Result<RowOrder> table_order(const std::string& key) {
    if (key.empty()) return RowOrder{nullptr};
    const auto found =
        std::find_if(kSortKeys.begin(), kSortKeys.end(),
                     [name = cuda_name(key)](const auto& entry) { return entry.first == name; });
    if (found != kSortKeys.end()) return found->second;
    std::string text = "sort the table by '" + key + "': no such column; use one of";
    for (const std::string_view name : table_sort_keys()) text.append(" ").append(name);
    return schema::Error{schema::ErrorCode::kUsage, std::move(text)};
}

}  // namespace ringside::viewer_export
