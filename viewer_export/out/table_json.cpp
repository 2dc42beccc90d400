// The table's rows and totals as one JSON object, for scripts. Times in microseconds, memory in bytes.
#include <algorithm>

#include "viewer_export/out/cost.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export {

namespace {

/// The distinct texts that the row's attribute sets have in one field; left out where there are none.
void write_labels(JsonWriter& json, const model::Job& job, const TableRow& row, const char* key,
                  model::Index model::Attributes::*field) {
    std::vector<model::Index> labels;
    for (const model::Index attributes : row.attributes) {
        const model::Index label = job.attributes[attributes].*field;
        if (label != model::kNone &&
            std::find(labels.begin(), labels.end(), label) == labels.end()) {
            labels.push_back(label);
        }
    }
    if (labels.empty()) return;
    json.key(key);
    json.begin_array();
    for (const model::Index label : labels) json.value(job.names[label]);
    json.end_array();
}

double average_us(std::int64_t ns, const TableRow& row) {
    return row.count == 0 ? 0.0 : static_cast<double>(ns) / 1e3 / static_cast<double>(row.count);
}

void write_row(JsonWriter& json, const model::Job& job, const TableRow& row,
               const TableColumns& columns) {
    json.begin_object();
    json.field("name", row.name);
    json.field("node_id", row.node_id);
    json.field("count", row.count);
    json.field("async", row.is_async);
    json.field_us("self_cpu_time_total_us", row.self_cpu_ns);
    json.field_us("cpu_time_total_us", row.cpu_ns);
    json.field("cpu_time_us", average_us(row.cpu_ns, row));
    if (columns.cuda) {
        json.field("device_type", row.on_device ? "cuda" : "cpu");
        json.field_us("self_cuda_time_total_us", row.self_cuda_ns);
        json.field_us("cuda_time_total_us", row.cuda_ns);
        json.field("cuda_time_us", average_us(row.cuda_ns, row));
    }
    if (columns.memory) {
        json.field("cpu_memory_usage", row.memory.cpu);
        json.field("self_cpu_memory_usage", row.self_memory.cpu);
    }
    if (columns.cuda_memory) {
        json.field("cuda_memory_usage", row.memory.cuda);
        json.field("self_cuda_memory_usage", row.self_memory.cuda);
    }
    if (!row.input_shapes.empty()) json.field("input_shapes", row.input_shapes);
    write_labels(json, job, row, "domains", &model::Attributes::domain);
    write_labels(json, job, row, "categories", &model::Attributes::category);
    json.end_object();
}

void write_totals(JsonWriter& json, const model::Job& job) {
    const model::Totals& totals = job.totals;
    bool lost_known = true;
    for (const model::Node& node : job.nodes)
        lost_known = lost_known && (node.complete || node.dump.empty());
    json.key("totals");
    json.begin_object();
    json.field("events", totals.events);
    json.field("records", totals.records);
    json.field("written", totals.written);
    json.field("outside", totals.outside);
    json.field("lost", totals.lost);
    json.field("passed_over", totals.passed_over);
    json.field("attributes_lost", attributes_lost(job));
    json.field("lost_known", lost_known);
    json.field("open", totals.open);
    json.field("unfinished", totals.unfinished);
    json.field("ends_without_begin", totals.ends_without_begin);
    json.field("duplicates", totals.duplicates);
    json.field("unknown_records", totals.unknown_records);
    json.field("outside_iterations", totals.outside_iterations);
    json.end_object();
    json.key("rpcs");
    json.begin_object();
    json.field("index", job.has_index);
    json.field("joined_requests", totals.joined_requests);
    json.field("joined_replies", totals.joined_replies);
    json.field("cut", totals.cut);
    json.field("orphans", totals.orphans);
    json.field("unfinished", totals.calls_unfinished);
    json.field("unjoined", totals.unjoined);
    json.field("ambiguous", job.ambiguous);
    json.field("order_violations", job.order_violations);
    json.end_object();
}

void write_nodes(JsonWriter& json, const model::Job& job) {
    json.key("nodes");
    json.begin_array();
    for (model::Index i = 0; i < job.nodes.size(); ++i) {
        const model::Node& node = job.nodes[i];
        json.begin_object();
        json.field("name", node.name);
        json.field("host", node.host);
        json.field("dump", node.dump);
        json.field("complete", node.complete);
        if (node.has_clock) {
            json.field("clock_offset_ns", node.clock.offset_ns);
            json.field("clock_drift_ppb", node.clock.drift_ppb);
            json.field("clock_bound_ns", node.clock.bound_ns);
        }
        write_cost(json, job, i);
        json.end_object();
    }
    json.end_array();
}

/// Of the processes whose capture was asked for some.
void write_iterations(JsonWriter& json, const model::Job& job) {
    json.key("iterations");
    json.begin_array();
    for (const model::Process& process : job.processes) {
        if (!process.iterations) continue;
        const model::Iterations& had = *process.iterations;
        json.begin_object();
        json.field("node", job.nodes[process.node].name);
        json.field("pid", static_cast<std::int64_t>(process.pid));
        json.field("rank", static_cast<std::int64_t>(process.rank));
        json.field("name", had.name);
        json.field("asked", static_cast<std::uint64_t>(had.asked));
        json.field("count", static_cast<std::uint64_t>(had.count));
        json.field("first", had.first);
        json.field("beside", had.beside);
        json.end_object();
    }
    json.end_array();
}

}  // namespace

schema::Result<std::string> table_json(const model::Job& job, const TableOptions& options) {
    const auto rows = table_rows(job, options);
    if (!rows) return rows.error();
    StringSink sink;
    JsonWriter json(sink, 1u << 14);
    const TableColumns columns = table_columns(job, *rows);
    const TableSums sums = table_sums(*rows);
    json.begin_object();
    json.field("job", job.name);
    json.field_us("self_cpu_time_total_us", sums.self_cpu_ns);
    if (columns.cuda) json.field_us("self_cuda_time_total_us", sums.self_cuda_ns);
    json.field("rows_total", static_cast<std::uint64_t>(rows->size()));
    json.key("rows");
    json.begin_array();
    const std::size_t limit =
        options.row_limit == 0 ? rows->size() : std::min(rows->size(), options.row_limit);
    for (std::size_t i = 0; i < limit; ++i) write_row(json, job, (*rows)[i], columns);
    json.end_array();
    write_totals(json, job);
    write_nodes(json, job);
    write_iterations(json, job);
    json.field("corrected", job.corrected);
    json.field("clock_bound_ns", job.clock_bound_ns());
    json.key("damage");
    json.begin_array();
    for (const model::Damage& damage : job.damage) json.value(damage.text);
    json.end_array();
    json.end_object();
    json.text("\n");
    json.flush();
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
