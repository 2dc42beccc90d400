#include "tools/ringside/waits_report.hpp"

#include <filesystem>
#include <vector>

#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/waits_view.hpp"

namespace ringside::tools {

std::string waits_in(const fbs::TraceReplyT& reply, bool json) {
    std::vector<std::filesystem::path> dumps;
    for (const auto& node : reply.nodes) {
        if (!node->path.empty()) dumps.emplace_back(node->path);
    }
    const auto job = viewer_export::load_processes(dumps);
    if (!job) return "";
    const auto waits = viewer_export::model::waits_of(*job);
    if (!json) return viewer_export::render_waits(*job, waits);
    viewer_export::StringSink sink;
    {
        viewer_export::JsonWriter writer(sink);
        viewer_export::write_waits(writer, *job, waits);
    }
    return std::move(sink.text());
}

}  // namespace ringside::tools
