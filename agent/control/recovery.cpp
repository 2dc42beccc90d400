#include "agent/control/recovery.hpp"

#include "agent/control/endpoint.hpp"
#include "agent/control/lead_desk.hpp"

namespace ringside::agent {

schema::Result<Recovery> recover_directory(const std::string& root, const std::string& job,
                                           const std::string& output_root,
                                           const std::string& node) {
    EngineOptions options;
    options.root = root;
    options.job = job;
    options.output_root = output_root;
    options.node = node.empty() ? default_node() : node;
    options.recover.id = new_capture_id();
    options.recover.name =
        "recovered-" + job + "-" + std::to_string(options.recover.id % 1'000'000);
    const auto engine = Engine::open(options);
    if (!engine) {
        return engine.error();
    }
    Recovery recovery;
    recovery.job = job;
    recovery.capture = (*engine)->recovered();
    recovery.dump = (*engine)->status().found_dump;
    if (!recovery.capture && recovery.dump.empty()) {
        CaptureRequest request;
        request.id = options.recover.id;
        request.name = options.recover.name;
        const auto left = (*engine)->take_left_behind(request);
        if (!left) {
            return left.error();
        }
        recovery.capture = *left;
    }
    if (recovery.capture) recovery.dump = recovery.capture->path;
    const EngineStatus status = (*engine)->status();
    recovery.directory = status.directory;
    recovery.found = status.recovered;
    recovery.living = status.processes;
    recovery.removed = (*engine)->removed_segments();
    return recovery;
}

}  // namespace ringside::agent
