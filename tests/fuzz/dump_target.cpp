#include "tests/fuzz/dump_target.hpp"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "agent/attach/file_handle.hpp"
#include "agent/dump/partial_dump.hpp"
#include "schema/frame.hpp"
#include "tests/unit/viewer_export/dump_maker.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

namespace ringside::tests::fuzz {

Loaded load_dump(const std::vector<std::uint8_t>& bytes) {
    static const TemporaryDirectory kDirectory;
    static const auto kDump = kDirectory / "fuzz.rsd", kTrace = kDirectory / "fuzz.json";
    write_file(kDump, bytes);
    const auto job = viewer_export::load_job({{kDump}, true, {}});
    Loaded loaded;
    const agent::FileHandle file(::open(kDump.c_str(), O_RDONLY | O_CLOEXEC));
    if (const auto partial = agent::read_partial(file.get(), kDump); partial)
        loaded.resumable = partial->bytes;
    loaded.refused = !job;
    if (!job) return loaded;
    loaded.damages = job->damage.size();
    if (!job->damage.empty()) loaded.damage_at = job->damage[0].offset;
    loaded.ranges = job->totals.ranges;
    static_cast<void>(viewer_export::render_table(*job, {}));
    static_cast<void>(viewer_export::write_chrome(*job, kTrace));
    static_cast<void>(viewer_export::write_perfetto(*job, kTrace));
    return loaded;
}

void mend_frames(std::vector<std::uint8_t>& bytes) {
    std::size_t at = 0;
    schema::FrameHeader frame{};
    while (bytes.size() - at >= sizeof frame) {
        std::memcpy(&frame, bytes.data() + at, sizeof frame);
        const std::size_t left = bytes.size() - at - sizeof frame;
        frame.magic = schema::kDumpFrameMagic;
        frame.length = static_cast<std::uint32_t>(std::min<std::size_t>(frame.length, left));
        frame.checksum = XXH3_64bits(bytes.data() + at + sizeof frame, frame.length);
        std::memcpy(bytes.data() + at, &frame, sizeof frame);
        at += sizeof frame + frame.length + schema::frame_padding(frame.length);
        if (at > bytes.size()) return;
    }
}

std::vector<std::uint8_t> sample_dump(std::vector<std::size_t>& edges) {
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    for (std::uint64_t i = 0; i < 4; ++i) {
        lane.serve(1000 * i, 7);
        lane.range("aten::add", 1000 * i + 10, 1000 * i + 50);
        lane.async_begin("copy", 1000 * i + 60, i + 1);
        lane.memory(1000 * i + 70, 4096, i % 2 == 0 ? 512 : -512);
        lane.stop_serving(1000 * i + 100);
        if (i > 0) lane.async_end(1000 * i + 110, i);
        lane.lose(1, 1000 * i + 120, 1000 * i + 130);
        lane.flush();
    }
    lane.open("never ended", 3900);
    lane.flush();
    dump.end(0, fbs::Fate::Killed, 5000);
    dump.footer(6000);
    edges = dump.edges();
    return dump.bytes();
}

}  // namespace ringside::tests::fuzz
