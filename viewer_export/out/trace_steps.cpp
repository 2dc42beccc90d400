#include "viewer_export/out/trace_steps.hpp"

namespace ringside::viewer_export::trace {

std::vector<Steps> steps_of(const model::Job& job, const std::vector<model::Steps>& steps,
                            Tracks& tracks) {
    std::vector<Steps> all;
    for (const model::Steps& each : steps) {
        // Readers count steps by their name, so only one kind of boundary a process may bear it.
        const std::string name =
            each.chosen ? "iterations" : "iterations of " + job.names[each.boundary];
        all.push_back({each, tracks.add_row(each.process, name)});
    }
    return all;
}

}  // namespace ringside::viewer_export::trace
