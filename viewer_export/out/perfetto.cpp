// The file of Perfetto's packets.
#include <string>

#include "viewer_export/out/file_sink.hpp"
#include "viewer_export/out/perfetto_writer.hpp"

namespace ringside::viewer_export {

schema::Result<TraceCounts> write_perfetto(const model::Job& job, const std::filesystem::path& path,
                                           const TraceOptions& options) {
    FileSink file(path);
    if (auto opened = file.open(); !opened) return opened.error();
    const trace::Plan plan(job, options);
    trace::PerfettoWriter writer(plan, file);
    TraceCounts counts = trace::Walk(plan, writer, options.tell).write();
    writer.flush();
    counts.bytes = writer.bytes();
    if (auto committed = file.commit(); !committed) return committed.error();
    return counts;
}

}  // namespace ringside::viewer_export
