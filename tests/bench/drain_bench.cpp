// What draining costs: records a second from a ring into encoded blocks, into a dump on disk, and end to end from a producer that
// writes as fast as the engine drains; the stored bytes a range. The floor is two tick reads and one record, measured before and after each block: the second is
// the first one's control. Prints a JSON object, numbers in nanoseconds a record; drain.py makes ratios of several processes' ones.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "agent/capture/calibration.hpp"
#include "agent/capture/engine.hpp"
#include "agent/capture/record_cost.hpp"
#include "agent/drain/process_drainer.hpp"
#include "agent/dump/dump_writer.hpp"
#include "tests/bench/core_probe.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

constexpr std::uint32_t kCells = 1u << 18;
constexpr TickRange kAll{0, ~0ull};
/// As the engine has it.
constexpr std::size_t kPieceBytes = 256 << 10;

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

constexpr int kRounds = 41;

/// A program's own price of a record, taken beside each block that it is compared with.
class Floor {
public:
    double ns() const { return measure_record_cost_ns(clock_.source, clock_.ticks_per_second); }

private:
    Calibration clock_ = measure_calibration(0, 0);
};

/// Blocks, each with a floor before and one after it; in ns a record.
struct Blocks {
    std::vector<double> before{}, cost{}, after{}, probes{};
    double bytes = 0;  ///< a record, encoded

    /// @param run  takes its own time: the CPU's of this thread, for the machine may be busy
    template <class Run>
    void add(const Floor& floor, const Run& run) {
        const double probe = bench::probe_core();
        before.push_back(floor.ns());
        cost.push_back(run() / kCells);
        after.push_back(floor.ns());
        probes.push_back(std::max(probe, bench::probe_core()));
    }
};

/// What comes out of the kernel's hands after this is the guest's own already: on some hosts the first touch of a page is 5 us of the host's,
/// more than all that a page of records costs.
void warm_memory() {
    constexpr std::size_t kBytes = 768 << 20;
    void* memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    ::madvise(memory, kBytes, MADV_NOHUGEPAGE);
    auto* bytes = static_cast<volatile char*>(memory);
    for (std::size_t at = 0; at < kBytes; at += 4096) bytes[at] = 1;
    ::munmap(memory, kBytes);
}

double thread_cpu_ns() {
    return static_cast<double>(schema::read_clock(CLOCK_THREAD_CPUTIME_ID).value);
}

/// All that `lane` holds, drained and sealed in chunks as the engine does it.
/// @return bytes of blocks
std::uint64_t drain_lane(ProcessDrainer& drainer, DrainBuffers& buffers, Sink* sink,
                         std::uint64_t ticks) {
    std::uint64_t cells = 0, bytes = 0;
    while (cells < kCells) {
        cells += drainer.drain(buffers, kAll, ticks, true, kPieceBytes).cells;
        drainer.seal(buffers, kAll, ticks, false);
        std::vector<const Block*> blocks;
        for (const Block& block : drainer.sealed()) {
            blocks.push_back(&block);
            bytes += block.data.size();
        }
        drainer.settle_all(buffers, sink == nullptr || sink->blocks(blocks), ticks);
    }
    return bytes;
}

/// Fillings of a lane, drained.
Blocks drain_blocks(const Floor& floor, Sink* sink) {
    TemporaryDirectory directory;
    FakeSegment fake(directory.path(), {.bytes = 64ull << 20});
    FakeLane& lane = fake.add_lane(kCells);
    for (int i = 0; i < 200; ++i) fake.intern("aten::operator_" + std::to_string(i));
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto segment = MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
    ProcessDrainer drainer(**segment);
    drainer.start(0);
    const auto buffers = std::make_unique<DrainBuffers>();
    Blocks blocks;
    std::uint64_t ticks = 1, bytes = 0;
    for (int round = 0; round < kRounds; ++round) {
        fill(lane, ticks);
        blocks.add(floor, [&] {
            const double start = thread_cpu_ns();
            bytes += drain_lane(drainer, *buffers, sink, ticks);
            return thread_cpu_ns() - start;
        });
    }
    blocks.bytes = static_cast<double>(bytes) / kRounds / kCells;
    return blocks;
}

/// What the system takes for the same bytes without us: write(2) of them into a new file.
Blocks plain_write_blocks(const Floor& floor, double bytes_a_record) {
    TemporaryDirectory top;
    const FileHandle file(::open(top.sub("plain").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const std::vector<char> piece(kPieceBytes, 'x');
    Blocks blocks;
    for (int round = 0; round < kRounds; ++round) {
        blocks.add(floor, [&] {
            const double start = thread_cpu_ns();
            auto left = static_cast<std::size_t>(bytes_a_record * kCells);
            while (left > 0) {
                const ssize_t written =
                    ::write(file.get(), piece.data(), std::min(left, piece.size()));
                if (written <= 0) break;
                left -= static_cast<std::size_t>(written);
            }
            return thread_cpu_ns() - start;
        });
    }
    return blocks;
}

struct EndToEnd {
    double produced_ns = 0;   ///< wall
    double drained_ns = 0;    ///< wall
    double drain_cpu_ns = 0;  ///< of the engine's threads
    double bytes = 0;         ///< a record, in the file
    std::uint64_t kept = 0, lost = 0, waits = 0;
};

/// @return whether the capture was made
bool end_to_end(EndToEnd& out) {
    TemporaryDirectory top;
    EngineOptions options{top.sub("root"), "job", top.sub("out"), "bench"};
    auto engine = Engine::open(options);
    CaptureRequest request;
    request.id = 1;
    request.name = "bench";
    if (!engine || !(*engine)->capture_from_start(request)) return false;
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
            ++out.waits;
            std::this_thread::yield();
            cell = writer.reserve(1);
        }
        cell->words[0] = what;
        cell->words[1] = begin;
        cell->words[2] = ticks_now();
        cell->words[3] = 0;
        writer.commit(1);
    }
    out.produced_ns = seconds_since(CLOCK_MONOTONIC, start) * 1e9 / kRecords;
    // Into the file: the tail follows that, with a flush.
    const auto report = (*engine)->stop(1, (*engine)->node_now());
    out.drained_ns = seconds_since(CLOCK_MONOTONIC, start) * 1e9 / kRecords;
    out.drain_cpu_ns = (seconds_since(CLOCK_PROCESS_CPUTIME_ID, all) -
                        seconds_since(CLOCK_THREAD_CPUTIME_ID, own)) *
                       1e9 / kRecords;
    if (!report) return false;
    out.kept = report->records;
    out.lost = report->lost;
    out.bytes = static_cast<double>(report->bytes) / kRecords;
    return true;
}

void print_list(const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i)
        std::printf("%s%.3f", i == 0 ? "" : ", ", values[i]);
    std::printf("]");
}

void print_blocks(const char* name, const Blocks& blocks) {
    std::printf("\"%s\": {", name);
    print_list("floor", blocks.before);
    std::printf(", ");
    print_list("cost", blocks.cost);
    std::printf(", ");
    print_list("floor_again", blocks.after);
    std::printf(", ");
    print_list("probes", blocks.probes);
    std::printf("}, ");
}

}  // namespace

int main() {
    const Floor floor;
    const Blocks encoded = drain_blocks(floor, nullptr);
    Blocks written;
    {
        TemporaryDirectory top;
        auto writer = DumpWriter::create({top.sub("out"), "bench", "node", 0});
        if (!writer) return 2;
        (*writer)->header({});
        warm_memory();
        written = drain_blocks(floor, writer->get());
    }
    warm_memory();
    const Blocks plain = plain_write_blocks(floor, encoded.bytes);
    EndToEnd whole;
    warm_memory();
    const double floor_before = floor.ns();
    if (!end_to_end(whole)) return 2;
    std::printf("{");
    print_blocks("encoded", encoded);
    print_blocks("written", written);
    print_blocks("plain_write", plain);
    std::printf(
        "\"bytes\": %.3f, \"floor\": %.3f, \"floor_again\": %.3f, \"produced\": %.3f, "
        "\"drained\": %.3f, \"drain_cpu\": %.3f, \"file_bytes\": %.3f, \"kept\": %llu, "
        "\"lost\": %llu, \"waits\": %llu}\n",
        encoded.bytes, floor_before, floor.ns(), whole.produced_ns, whole.drained_ns,
        whole.drain_cpu_ns, whole.bytes, static_cast<unsigned long long>(whole.kept),
        static_cast<unsigned long long>(whole.lost), static_cast<unsigned long long>(whole.waits));
    return 0;
}
