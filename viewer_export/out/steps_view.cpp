#include "viewer_export/out/steps_view.hpp"

#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "viewer_export/model/gpu_split.hpp"
#include "viewer_export/out/gpu_place.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/table_footer.hpp"
#include "viewer_export/out/text_table.hpp"

namespace ringside::viewer_export {

namespace {

using model::DeviceSplit;
using model::GpuSplit;
using model::GpuTime;

std::string with_decimals(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

double percent(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_text(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? "-" : with_decimals(percent(part, whole), 2);
}

std::string ms_text(std::int64_t ns) {
    return with_decimals(static_cast<double>(ns) / 1e6, 3);
}

const Cells kHeader = {"Rank",       "Node",       "PID",
                       "GPU",        "Iteration",  "Time ms",
                       "Compute ms", "%",          "Communication ms",
                       "%",          "Exposed ms", "%",
                       "Copies ms",  "%",          "Idle ms",
                       "%",          "Overlap %"};

Cells cells_of(const model::Job& job, const DeviceSplit& split, std::string iteration,
               const GpuTime& time) {
    Cells cells = place_cells(job, split.process, split.device);
    cells.push_back(std::move(iteration));
    cells.push_back(ms_text(time.time_ns));
    for (const std::int64_t part : {time.compute_ns, time.communication_ns, time.exposed_ns,
                                    time.copies_ns, time.idle_ns()}) {
        cells.push_back(ms_text(part));
        cells.push_back(percent_text(part, time.time_ns));
    }
    cells.push_back(percent_text(time.overlapped_ns(), time.communication_ns));
    return cells;
}

/// All of a process' devices as one, or its only one: a rank.
bool is_rank(const GpuSplit& split, std::size_t i) {
    const auto& devices = split.devices;
    return i + 1 == devices.size() || devices[i + 1].process != devices[i].process;
}

/// What a rank does itself: in exposed communication it waits for the others, or for the wire.
std::int64_t own_ns(const GpuTime& time) {
    return time.time_ns - time.exposed_ns;
}

struct Slowest {
    const DeviceSplit* iteration_of = nullptr;  ///< null: there are no iterations
    std::size_t iteration = 0;                  ///< of its steps
    const DeviceSplit* rank = nullptr;  ///< by its own time an iteration; null: fewer than two
    double mean_ns = 0;                 ///< of all iterations of all ranks
    double mean_own_ns = 0;
};

double each(std::int64_t sum_ns, std::size_t count) {
    return static_cast<double>(sum_ns) / static_cast<double>(count);
}

double own_each(const DeviceSplit& rank) {
    return each(own_ns(rank.in_steps), rank.steps.size());
}

Slowest slowest_of(const GpuSplit& split) {
    Slowest slowest;
    std::size_t iterations = 0;
    std::size_t ranks = 0;
    for (std::size_t i = 0; i < split.devices.size(); ++i) {
        const DeviceSplit& rank = split.devices[i];
        if (!is_rank(split, i) || rank.steps.empty()) continue;
        for (std::size_t k = 0; k < rank.steps.size(); ++k) {
            if (slowest.iteration_of == nullptr ||
                rank.steps[k].time_ns > slowest.iteration_of->steps[slowest.iteration].time_ns) {
                slowest.iteration_of = &rank;
                slowest.iteration = k;
            }
        }
        if (slowest.rank == nullptr || own_each(rank) > own_each(*slowest.rank))
            slowest.rank = &rank;
        iterations += rank.steps.size();
        slowest.mean_ns += static_cast<double>(rank.in_steps.time_ns);
        slowest.mean_own_ns += static_cast<double>(own_ns(rank.in_steps));
        ++ranks;
    }
    if (iterations > 0) {
        slowest.mean_ns /= static_cast<double>(iterations);
        slowest.mean_own_ns /= static_cast<double>(iterations);
    }
    if (ranks < 2) slowest.rank = nullptr;
    return slowest;
}

std::uint64_t number_of(const model::Job& job, const GpuSplit& split, const DeviceSplit& device,
                        std::size_t step) {
    return split.steps_of(device.process)->at(job, step).number;
}

std::string notes(const model::Job& job, const GpuSplit& split) {
    const Slowest slowest = slowest_of(split);
    if (slowest.iteration_of == nullptr)
        return "No iterations: no process with GPU work told two boundaries of one (optimizer "
               "steps, ringside_iteration); \"trace\" is from its first work to its last.\n";
    const DeviceSplit& of = *slowest.iteration_of;
    std::string text =
        "Slowest iteration: " + std::to_string(number_of(job, split, of, slowest.iteration)) +
        " of " + place_text(job, of.process) + ", " +
        format_time(static_cast<double>(of.steps[slowest.iteration].time_ns)) + "; the mean is " +
        format_time(slowest.mean_ns) + "\n";
    if (slowest.rank != nullptr)
        text += "Slowest rank: " + place_text(job, slowest.rank->process) + ", " +
                format_time(own_each(*slowest.rank)) +
                " an iteration beside exposed communication, in which a rank waits for the "
                "others; the mean is " +
                format_time(slowest.mean_own_ns) + "\n";
    GpuTime whole;
    GpuTime inside;
    for (std::size_t i = 0; i < split.devices.size(); ++i) {
        if (!is_rank(split, i) || split.devices[i].steps.empty()) continue;
        whole.add(split.devices[i].whole);
        inside.add(split.devices[i].in_steps);
    }
    if (whole.busy_ns() > inside.busy_ns())
        text += "Outside of iterations: GPUs were busy for " +
                format_time(static_cast<double>(whole.busy_ns() - inside.busy_ns())) + " more, " +
                percent_text(whole.busy_ns() - inside.busy_ns(), whole.busy_ns()) +
                "% of all (before the first boundary, or after the last: a CPU that ran ahead)\n";
    return text;
}

void write_time(JsonWriter& json, const GpuTime& time) {
    json.field_us("time_us", time.time_ns);
    json.field_us("compute_us", time.compute_ns);
    json.field_us("communication_us", time.communication_ns);
    json.field_us("exposed_communication_us", time.exposed_ns);
    json.field_us("copies_us", time.copies_ns);
    json.field_us("idle_us", time.idle_ns());
    json.field("overlap_percent", percent(time.overlapped_ns(), time.communication_ns));
}

void write_device(JsonWriter& json, const model::Job& job, const GpuSplit& split,
                  const DeviceSplit& device) {
    json.begin_object();
    write_place(json, job, device.process, device.device);
    json.key("trace");
    json.begin_object();
    write_time(json, device.whole);
    json.end_object();
    if (const model::Steps* steps = split.steps_of(device.process)) {
        json.field("iterations_of", job.names[steps->boundary]);
        json.key("sum");
        json.begin_object();
        write_time(json, device.in_steps);
        json.end_object();
        json.key("iterations");
        json.begin_array();
        for (std::size_t i = 0; i < device.steps.size(); ++i) {
            json.begin_object();
            json.field("number", steps->at(job, i).number);
            write_time(json, device.steps[i]);
            json.end_object();
        }
        json.end_array();
    }
    json.end_object();
}

void write_slowest(JsonWriter& json, const model::Job& job, const GpuSplit& split) {
    const Slowest slowest = slowest_of(split);
    if (slowest.iteration_of != nullptr) {
        json.key("slowest_iteration");
        json.begin_object();
        write_place(json, job, slowest.iteration_of->process, slowest.iteration_of->device);
        json.field("number", number_of(job, split, *slowest.iteration_of, slowest.iteration));
        json.field_us("time_us", slowest.iteration_of->steps[slowest.iteration].time_ns);
        json.end_object();
    }
    if (slowest.rank != nullptr) {
        json.key("slowest_rank");
        json.begin_object();
        write_place(json, job, slowest.rank->process, slowest.rank->device);
        json.field("own_time_us", own_each(*slowest.rank) / 1e3);
        json.field("mean_own_time_us", slowest.mean_own_ns / 1e3);
        json.end_object();
    }
}

}  // namespace

std::string no_gpu_work(const model::Job& job) {
    std::map<std::string, std::size_t> reasons;
    for (const model::Process& process : job.processes) {
        for (const model::SourceState& source : process.sources) {
            if (source.id == schema::SourceId::kCupti && !source.reason.empty())
                ++reasons[source.reason];
        }
    }
    std::string text = "No GPU work was recorded";
    const char* before = ": ";
    for (const auto& [reason, processes] : reasons) {
        text.append(before)
            .append(printable(reason))
            .append(" (")
            .append(std::to_string(processes));
        text += processes == 1 ? " process)" : " processes)";
        before = "; ";
    }
    return text + (reasons.empty() ? ": no process used CUDA\n" : "\n");
}

std::string render_steps(const model::Job& job, const StepsOptions& options) {
    const GpuSplit split = model::split_gpu(job, options.tell);
    if (split.devices.empty()) return no_gpu_work(job);
    std::vector<Cells> rows;
    std::vector<Cells> sums;
    std::size_t left_out = 0;
    for (const DeviceSplit& device : split.devices) {
        for (std::size_t i = 0; i < device.steps.size(); ++i) {
            if (options.row_limit != 0 && rows.size() == options.row_limit) {
                left_out += device.steps.size() - i;
                break;
            }
            rows.push_back(cells_of(job, device, std::to_string(number_of(job, split, device, i)),
                                    device.steps[i]));
        }
        if (!device.steps.empty())
            sums.push_back(cells_of(job, device, "all " + std::to_string(device.steps.size()),
                                    device.in_steps));
        sums.push_back(cells_of(job, device, "trace", device.whole));
    }
    return right_aligned(kHeader, {rows, sums}) + left_out_line(left_out, " of iterations") +
           notes(job, split);
}

std::string steps_json(const model::Job& job, const StepsOptions& options) {
    const GpuSplit split = model::split_gpu(job, options.tell);
    StringSink sink;
    {
        JsonWriter json(sink);
        json.begin_object();
        json.key("devices");
        json.begin_array();
        for (const DeviceSplit& device : split.devices) write_device(json, job, split, device);
        json.end_array();
        write_slowest(json, job, split);
        json.end_object();
        json.text("\n");
    }
    return std::move(sink.text());
}

}  // namespace ringside::viewer_export
