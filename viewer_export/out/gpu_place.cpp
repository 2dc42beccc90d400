#include "viewer_export/out/gpu_place.hpp"

#include "viewer_export/model/gpu_split.hpp"

namespace ringside::viewer_export {

Cells place_cells(const model::Job& job, model::Index index, std::uint32_t device) {
    const model::Process& process = job.processes[index];
    return {process.rank < 0 ? "-" : std::to_string(process.rank),
            printable(job.nodes[process.node].name), std::to_string(process.pid),
            device == model::kAllDevices ? "all" : std::to_string(device)};
}

std::string place_text(const model::Job& job, model::Index index) {
    const model::Process& process = job.processes[index];
    const std::string place = printable(job.nodes[process.node].name);
    const std::string pid = std::to_string(process.pid);
    return process.rank < 0
               ? "pid " + pid + " on " + place
               : "rank " + std::to_string(process.rank) + " on " + place + " (pid " + pid + ")";
}

void write_place(JsonWriter& json, const model::Job& job, model::Index index,
                 std::uint32_t device) {
    const model::Process& process = job.processes[index];
    if (process.rank >= 0) json.field("rank", process.rank);
    json.field("node", job.nodes[process.node].name);
    json.field("pid", process.pid);
    if (device == model::kAllDevices) {
        json.field("device", "all");
    } else {
        json.field("device", device);
    }
}

}  // namespace ringside::viewer_export
