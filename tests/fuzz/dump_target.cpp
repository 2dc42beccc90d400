#include "tests/fuzz/dump_target.hpp"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "agent/attach/file_handle.hpp"
#include "agent/dump/partial_dump.hpp"
#include "schema/frame.hpp"
#include "schema/gpu_record.hpp"
#include "tests/unit/viewer_export/dump_maker.hpp"
#include "tools/ringside/offline_join.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/load/job_reader.hpp"
#include "viewer_export/out/ranges_view.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/steps_view.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

namespace ringside::tests::fuzz {

namespace {

void show(const viewer_export::model::Job& job, const std::filesystem::path& trace) {
    static_cast<void>(viewer_export::render_table(job, {}));
    static_cast<void>(viewer_export::table_json(job, {}));
    static_cast<void>(viewer_export::render_steps(job, {}));
    static_cast<void>(viewer_export::steps_json(job, {}));
    static_cast<void>(viewer_export::render_ranges(job, {}));
    static_cast<void>(viewer_export::ranges_json(job, {}));
    static_cast<void>(viewer_export::render_rpc(job, {.internal = true}));
    static_cast<void>(viewer_export::rpc_json(job, {.internal = true}));
    // How most ids of hand-made calls begin, and those of none.
    static_cast<void>(viewer_export::request_json(job, "0000000000000001", {}));
    static_cast<void>(viewer_export::render_request(job, "0000000000000001", {}));
    static_cast<void>(viewer_export::write_chrome(job, trace));
    static_cast<void>(viewer_export::write_perfetto(job, trace));
}

}  // namespace

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
    agent::IndexWriter index;
    static_cast<void>(tools::join_offline({kDump}, true, index));
    show(*job, kTrace);
    return loaded;
}

std::vector<std::uint8_t> sample_index() {
    const TemporaryDirectory directory;
    const auto dump = directory / "alpha.rsd";
    std::vector<std::size_t> edges;
    write_file(dump, sample_dump(edges));
    agent::IndexWriter index;
    static_cast<void>(tools::join_offline({dump}, true, index));
    return index.take_bytes();
}

void load_index(const std::vector<std::uint8_t>& bytes, bool corrected) {
    // Most are no index at all, and told so quickly.
    if (!viewer_export::load::JobIndexFile::from_memory(bytes)) return;
    static const TemporaryDirectory kDirectory;
    static const auto kDump = kDirectory / "alpha.rsd", kIndex = kDirectory / "job.rsj",
                      kTrace = kDirectory / "fuzz.json";
    static const bool kMade = [] {
        std::vector<std::size_t> edges;
        write_file(kDump, sample_dump(edges));
        return true;
    }();
    static_cast<void>(kMade);
    write_file(kIndex, bytes);
    const auto job = viewer_export::load_job({{kDump, kIndex}, corrected, {}});
    if (job) show(*job, kTrace);
}

void mend_frames(std::vector<std::uint8_t>& bytes, std::uint32_t magic) {
    std::size_t at = 0;
    schema::FrameHeader frame{};
    while (bytes.size() - at >= sizeof frame) {
        std::memcpy(&frame, bytes.data() + at, sizeof frame);
        const std::size_t left = bytes.size() - at - sizeof frame;
        frame.magic = magic;
        frame.length = static_cast<std::uint32_t>(std::min<std::size_t>(frame.length, left));
        frame.checksum = XXH3_64bits(bytes.data() + at + sizeof frame, frame.length);
        std::memcpy(bytes.data() + at, &frame, sizeof frame);
        at += sizeof frame + frame.length + schema::frame_padding(frame.length);
        if (at > bytes.size()) return;
    }
}

namespace {

/// Each parameter is twice the one before it.
constexpr const char* kDoubling =
    "_Z1f1AIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_E";

/// Each kind of the GPU's, as from CUPTI: calls with what they launched, on two streams, one of which is twice busy; one record whose times were lost.
void add_gpu(LaneMaker& lane, std::uint64_t t, std::uint32_t correlation) {
    using schema::RecordKind;
    constexpr std::uint64_t kThread = 100;
    lane.gpu(RecordKind::kGpuApi, "cudaLaunchKernel", {t, t + 20, correlation, pair(kThread, 211)});
    lane.gpu(RecordKind::kGpuApi, "cuLaunchKernel",
             {t + 5, t + 15, correlation, pair(kThread, 307)}, 1);
    for (std::uint64_t stream = 7; stream < 9; ++stream) {
        lane.gpu(RecordKind::kGpuKernel, stream == 7 ? "_Z6kernelPf" : kDoubling,
                 {t + 30, t + 60, pair(correlation, 0), pair(1, stream), pair(264, 1), pair(1, 256),
                  pair(1, 1), pair(1024, 0), pair(32, 9), 77, t + 25});
    }
    lane.gpu(RecordKind::kGpuMemset, "",
             {t + 40, t + 90, pair(correlation, 0), pair(1, 8), 512, pair(7, 0), 0}, 3);
    lane.gpu(RecordKind::kGpuCopy, "",
             {0, 0, pair(correlation, 0), pair(1, 7), 4096, 1 | 3 << 8 | 1 << 16}, 1);
    lane.gpu(RecordKind::kGpuCopy, "",
             {t + 95, t + 99, pair(correlation, 0), pair(1, 7), 4096, 1 | 3 << 8 | 1 << 16}, 1);
    lane.gpu(RecordKind::kGpuSync, "", {t + 20, t + 99, pair(correlation, 17), pair(1, ~0u)}, 4);
    lane.gpu(RecordKind::kGpuSync, "", {t + 80, t + 99, pair(correlation + 1, 17), pair(1, 8)}, 2);
    lane.gpu(RecordKind::kGpuOverhead, "", {t + 21, t + 22, pair(2, 1), pair(1, kThread)});
    lane.gpu(RecordKind::kGpuEvent, "", {t + 70, 17, pair(correlation, 0), pair(1, 7)});
    lane.gpu(RecordKind::kGpuLink, "", {t, 4711, correlation}, 3);
    lane.gpu(RecordKind::kGpuDevice, "Test GPU",
             {1, 80ull << 30, pair(0, 132), pair(9, 0), pair(1024, 2048), pair(65536, 65536),
              pair(49152, 233472), pair(232448, 32), pair(32, 0)});
}

}  // namespace

std::vector<std::uint8_t> sample_dump(std::vector<std::size_t>& edges) {
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    for (std::uint64_t i = 0; i < 4; ++i) {
        lane.serve(1000 * i, 7);
        lane.rpc_begin(1000 * i + 2, {i % 2 == 0, i + 1, 1, 7, "f", "m", "worker0", "worker1"});
        lane.value(schema::RecordKind::kIteration, "step", 1000 * i + 11, i);
        lane.range("aten::add", 1000 * i + 10, 1000 * i + 50);
        if (i < 3) lane.rpc_end(1000 * i + 55, i + 1);
        lane.async_begin("copy", 1000 * i + 60, i + 1);
        lane.memory(1000 * i + 70, 4096, i % 2 == 0 ? 512 : -512);
        add_gpu(lane, 1000 * i + 12, static_cast<std::uint32_t>(i + 1));
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
