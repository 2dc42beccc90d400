#include "viewer_export/out/ranges_view.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/gpu_projection.hpp"
#include "viewer_export/out/gpu_place.hpp"
#include "viewer_export/out/steps_view.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export {

namespace {

struct SortKey {
    std::string_view name;
    double (*value)(const RangesRow& row);
};

constexpr std::array kSortKeys = {
    SortKey{"gpu_time_total", [](const RangesRow& row) { return static_cast<double>(row.gpu_ns); }},
    SortKey{"gpu_time", [](const RangesRow& row) { return row.gpu_each_ns(); }},
    SortKey{"gpu_time_max", [](const RangesRow& row) { return static_cast<double>(row.max_ns); }},
    SortKey{"cpu_time_total", [](const RangesRow& row) { return static_cast<double>(row.cpu_ns); }},
    SortKey{"count", [](const RangesRow& row) { return static_cast<double>(row.count); }},
    SortKey{"kernels", [](const RangesRow& row) { return static_cast<double>(row.kernels); }}};

const Cells kHeader = {"Name",    "Rank",      "Node",      "PID",     "GPU",
                       "Stream",  "Calls",     "GPU total", "GPU avg", "GPU min",
                       "GPU max", "CPU total", "Kernels",   "Copies"};

std::size_t shown(const std::vector<RangesRow>& rows, const RangesOptions& options) {
    return options.row_limit == 0 ? rows.size() : std::min(rows.size(), options.row_limit);
}

Cells cells_of(const model::Job& job, const RangesRow& row, bool full_names) {
    constexpr std::size_t kMost = 55;  // the table's
    std::string name = printable(job.names[row.name]);
    if (!full_names && length_of(name) > kMost) name = first_characters(name, kMost - 3) + "...";
    Cells cells = {std::move(name)};
    for (std::string& cell : place_cells(job, row.process, row.device))
        cells.push_back(std::move(cell));
    cells.push_back(std::to_string(row.stream));
    cells.push_back(std::to_string(row.count));
    cells.push_back(format_time(static_cast<double>(row.gpu_ns)));
    cells.push_back(format_time(row.gpu_each_ns()));
    for (const std::int64_t ns : {row.min_ns, row.max_ns, row.cpu_ns})
        cells.push_back(format_time(static_cast<double>(ns)));
    cells.push_back(std::to_string(row.kernels));
    cells.push_back(std::to_string(row.copies));
    return cells;
}

void write_row(JsonWriter& json, const model::Job& job, const RangesRow& row) {
    json.begin_object();
    json.field("name", job.names[row.name]);
    write_place(json, job, row.process, row.device);
    json.field("stream", row.stream);
    json.field("count", row.count);
    json.field_us("gpu_time_total_us", row.gpu_ns);
    json.field("gpu_time_us", row.gpu_each_ns() / 1e3);
    json.field_us("gpu_time_min_us", row.min_ns);
    json.field_us("gpu_time_max_us", row.max_ns);
    json.field_us("cpu_time_total_us", row.cpu_ns);
    json.field("kernels", row.kernels);
    json.field("copies", row.copies);
    json.end_object();
}

}  // namespace

const std::vector<std::string_view>& ranges_sort_keys() {
    static const std::vector<std::string_view> kKeys = [] {
        std::vector<std::string_view> keys;
        keys.reserve(kSortKeys.size());
        for (const SortKey& key : kSortKeys) keys.push_back(key.name);
        return keys;
    }();
    return kKeys;
}

schema::Result<std::vector<RangesRow>> ranges_rows(const model::Job& job,
                                                   const RangesOptions& options) {
    const auto* const key =
        std::find_if(kSortKeys.begin(), kSortKeys.end(),
                     [&](const SortKey& each) { return each.name == options.sort_by; });
    if (key == kSortKeys.end()) {
        std::string known;
        for (const SortKey& each : kSortKeys)
            known.append(known.empty() ? "" : ", ").append(each.name);
        return schema::Error{schema::ErrorCode::kUsage,
                             "sort by " + options.sort_by + ": no such key; one of " + known};
    }
    std::map<std::tuple<model::Index, std::uint32_t, std::uint32_t, model::Index>, RangesRow> rows;
    const auto annotations = options.annotations ? model::is_users : nullptr;
    for (const model::Projection& each : model::project_ranges(job, options.tell, annotations)) {
        const model::Lane& lane = job.lanes[each.lane];
        const model::Range& range = lane.ranges[each.range];
        RangesRow& row =
            rows.try_emplace({lane.process, each.device, each.stream, range.name},
                             RangesRow{range.name, lane.process, each.device, each.stream})
                .first->second;
        const std::int64_t ns = each.duration_ns();
        row.min_ns = row.count == 0 ? ns : std::min(row.min_ns, ns);
        row.max_ns = std::max(row.max_ns, ns);
        ++row.count;
        model::add_to(row.gpu_ns, ns);
        model::add_to(row.cpu_ns, range.duration_ns());
        row.kernels += each.kernels;
        row.copies += each.copies;
    }
    std::vector<RangesRow> sorted;
    sorted.reserve(rows.size());
    for (const auto& [place, row] : rows) sorted.push_back(row);
    std::stable_sort(sorted.begin(), sorted.end(), [&](const RangesRow& a, const RangesRow& b) {
        return key->value(a) > key->value(b);
    });
    return sorted;
}

schema::Result<std::string> render_ranges(const model::Job& job, const RangesOptions& options) {
    const auto rows = ranges_rows(job, options);
    if (!rows) return rows.error();
    if (rows->empty())
        return job.gpu_work.empty()
                   ? no_gpu_work(job)
                   : std::string("No range launched GPU work that is in these dumps\n");
    std::vector<Cells> cells;
    const std::size_t count = shown(*rows, options);
    for (std::size_t i = 0; i < count; ++i)
        cells.push_back(cells_of(job, (*rows)[i], options.full_names));
    return right_aligned(kHeader, {cells}) + left_out_line(rows->size() - count) +
           "GPU time: from the begin of the first work that a range launched on a stream to the "
           "end of the last\n";
}

schema::Result<std::string> ranges_json(const model::Job& job, const RangesOptions& options) {
    const auto rows = ranges_rows(job, options);
    if (!rows) return rows.error();
    StringSink sink;
    {
        JsonWriter json(sink);
        json.begin_object();
        json.key("ranges");
        json.begin_array();
        for (std::size_t i = 0; i < shown(*rows, options); ++i) write_row(json, job, (*rows)[i]);
        json.end_array();
        json.end_object();
        json.text("\n");
    }
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
