// What draining costs: records a second from a ring into encoded blocks, into a dump on disk, and end to end from a producer that
// writes as fast as the engine drains; the stored bytes a range. Prints one line each; the floor is two tick reads and one record.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "agent/capture/engine.hpp"
#include "agent/capture/record_cost.hpp"
#include "agent/drain/process_drainer.hpp"
#include "agent/dump/dump_writer.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

constexpr std::uint32_t kCells = 1u << 19;
constexpr TickRange kAll{0, ~0ull};

double seconds_since(clockid_t clock, std::int64_t start_ns) {
    return static_cast<double>(schema::read_clock(clock).value - start_ns) / 1e9;
}

/// Ranges as a steady program makes them: begins some microseconds apart, 200 names.
void fill(FakeLane& lane, std::uint64_t& ticks) {
    for (std::uint32_t i = 0; i < kCells; ++i) {
        ticks += 2000 + (i * 2654435761u >> 22);
        lane.range(1 + i % 200, ticks, ticks + 700 + (i * 40503u & 1023));
    }
}

/// The median of nine fillings, drained and sealed in chunks as the engine does it; of this thread's CPU, for the machine may be busy.
double drain_rate(Sink* sink, double& bytes_a_record) {
    TemporaryDirectory directory;
    FakeSegment fake(directory.path(), {.bytes = 64ull << 20});
    FakeLane& lane = fake.add_lane(kCells);
    for (int i = 0; i < 200; ++i) fake.intern("aten::operator_" + std::to_string(i));
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto segment = MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
    ProcessDrainer drainer(**segment);
    drainer.start(0);
    const auto buffers = std::make_unique<DrainBuffers>();
    std::vector<double> rates;
    std::uint64_t ticks = 1, bytes = 0;
    for (int round = 0; round < 9; ++round) {
        fill(lane, ticks);
        const std::int64_t start = schema::read_clock(CLOCK_THREAD_CPUTIME_ID).value;
        std::uint64_t cells = 0;
        while (cells < kCells) {
            cells += drainer.drain(*buffers, kAll, ticks, true).cells;
            drainer.seal(*buffers, kAll, ticks, false);
            std::vector<const Block*> blocks;
            for (const Block& block : drainer.sealed()) {
                blocks.push_back(&block);
                bytes += block.data.size();
            }
            drainer.settle(sink == nullptr || sink->blocks(blocks), ticks);
        }
        rates.push_back(kCells / seconds_since(CLOCK_THREAD_CPUTIME_ID, start) / 1e6);
    }
    std::sort(rates.begin(), rates.end());
    bytes_a_record = static_cast<double>(bytes) / (9.0 * kCells);
    return rates[rates.size() / 2];
}

void end_to_end() {
    TemporaryDirectory top;
    EngineOptions options{top.sub("root"), "job", top.sub("out"), "bench"};
    auto engine = Engine::open(options);
    CaptureRequest request;
    request.id = 1;
    request.name = "bench";
    if (!engine || !(*engine)->capture_from_start(request)) return;
    FakeSegment fake(top.sub("root/job"), {.bytes = 64ull << 20});
    FakeLane& lane = fake.add_lane(kCells);
    const auto name = fake.intern("aten::add");
    constexpr std::uint64_t kRecords = 20'000'000;
    const std::int64_t start = schema::read_clock(CLOCK_MONOTONIC).value;
    const std::int64_t all = schema::read_clock(CLOCK_PROCESS_CPUTIME_ID).value;
    const std::int64_t own = schema::read_clock(CLOCK_THREAD_CPUTIME_ID).value;
    schema::RingWriter& writer = lane.writer();
    const std::uint64_t what =
        schema::RecordHeader{schema::RecordKind::kRange, 1, 0x10, {name}}.pack();
    for (std::uint64_t i = 0; i < kRecords; ++i) {
        const std::uint64_t begin = ticks_now();
        schema::Cell* cell = writer.reserve(1);
        while (cell == nullptr) {
            std::this_thread::yield();
            cell = writer.reserve(1);
        }
        cell->words[0] = what;
        cell->words[1] = begin;
        cell->words[2] = ticks_now();
        cell->words[3] = 0;
        writer.commit(1);
    }
    const double produced = seconds_since(CLOCK_MONOTONIC, start);
    while (lane.header()->tail.load() != lane.header()->committed.load()) std::this_thread::yield();
    const double drained = seconds_since(CLOCK_MONOTONIC, start);
    const auto report = (*engine)->stop(1, (*engine)->node_now());
    const double drain_cpu =
        seconds_since(CLOCK_PROCESS_CPUTIME_ID, all) - seconds_since(CLOCK_THREAD_CPUTIME_ID, own);
    if (!report) return;
    std::printf("end to end, lossless by waiting     %6.1f M records/s (wall)\n",
                kRecords / drained / 1e6);
    std::printf("    producer %.1f ns a record (wall), drain thread %.2f ns CPU a record\n",
                produced * 1e9 / kRecords, drain_cpu * 1e9 / kRecords);
    std::printf("    kept %llu, lost %llu, %.2f bytes a range in the file\n",
                static_cast<unsigned long long>(report->records),
                static_cast<unsigned long long>(report->lost),
                static_cast<double>(report->bytes) / kRecords);
}

}  // namespace

int main() {
    double bytes = 0;
    const double floor = measure_record_cost_ns(schema::TicksSource::kTsc, 2.6e9);
    std::printf("floor (as at 2.6 GHz)               %6.1f ns a record\n", floor);
    const double encoded = drain_rate(nullptr, bytes);
    std::printf(
        "drained and encoded                 %6.1f M records/s  %5.2f ns  %5.2f bytes a range\n",
        encoded, 1e3 / encoded, bytes);
    {
        TemporaryDirectory top;
        auto writer = DumpWriter::create({top.sub("out"), "bench", "node", 0});
        (*writer)->header({});
        const double written = drain_rate(writer->get(), bytes);
        std::printf("... framed, checksummed, written    %6.1f M records/s  %5.2f ns\n", written,
                    1e3 / written);
    }
    end_to_end();
    return 0;
}
