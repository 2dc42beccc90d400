#include "agent/capture/record_cost.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "schema/ring_writer.hpp"

namespace ringside::agent {

double measure_record_cost_ns(schema::TicksSource source, double ticks_per_second) {
    constexpr std::uint32_t kCells = 4096;
    constexpr int kRounds = 25;
    const auto header = std::make_unique<schema::LaneHeader>();
    std::vector<schema::Cell> cells(kCells);
    const std::uint64_t what = schema::RecordHeader{
        schema::RecordKind::kRange,
        1,
        schema::record_flags(schema::SourceId::kTorch, 0),
        {1}}.pack();
    std::uint64_t best = ~0ull;
    for (int round = 0; round < kRounds; ++round) {
        schema::RingWriter writer(header.get(), {cells.data(), kCells});
        const std::uint64_t start = schema::read_ticks(source).value;
        for (std::uint32_t i = 0; i < kCells; ++i) {
            const std::uint64_t begin = schema::read_ticks(source).value;
            schema::Cell* cell = writer.reserve(1);
            if (cell == nullptr) break;
            cell->words[0] = what;
            cell->words[1] = begin;
            cell->words[2] = schema::read_ticks(source).value;
            cell->words[3] = i;
            writer.commit(1);
        }
        best = std::min(best, schema::read_ticks(source).value - start);
        header->tail.store(writer.position(), std::memory_order_release);
    }
    return static_cast<double>(best) / kCells * 1e9 / ticks_per_second;
}

}  // namespace ringside::agent
