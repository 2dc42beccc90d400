// A window on a directory of its own, and blocks to put into it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/window/piece_file.hpp"
#include "agent/window/window.hpp"
#include "schema/block_codec.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

namespace ringside::agent::testing {

/// A block of `count` ranges that begin at base, base + step, ...; their arguments count from `first`.
inline Block make_block(std::uint64_t first, std::uint32_t count, std::uint64_t base,
                        std::int64_t step = 10) {
    Block block;
    block.first = first;
    block.last = first + count;
    block.base_ticks = block.earliest_ticks = base;
    block.records = count;
    block.data.resize(count * schema::kMaxEncodedRecordBytes);
    schema::BlockEncoder encoder(block.base_ticks);
    std::uint8_t* out = block.data.data();
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t begin = base + static_cast<std::uint64_t>(i * step);
        const std::uint64_t words[4] = {
            schema::RecordHeader{schema::RecordKind::kRange, 1, 0x10, {}}.pack(), begin, begin + 5,
            first + i};
        out = encoder.record(words, out);
    }
    block.data.resize(static_cast<std::size_t>(out - block.data.data()));
    return block;
}

/// A window on a directory of its own, whose clock the test turns.
struct WindowRig {
    TemporaryDirectory top;
    std::uint64_t now = 1000;
    std::unique_ptr<Window> window;
    std::uint64_t position = 0;

    FileHandle directory() const {
        return FileHandle(::open(top.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    void open(const WindowBounds& bounds) {
        DumpHeader header;
        header.calibration.ticks_per_second = 1e9;
        header.start_ticks = now;
        auto made = Window::create(directory(), header, "node", bounds, [this] { return now; });
        REQUIRE(made);
        window = std::move(*made);
    }
    bool put(std::uint32_t count) {
        const Block block = make_block(position, count, now);
        const Block* const list[] = {&block};
        position += count;
        return window->blocks(list);
    }
    std::vector<std::uint64_t> positions() const {
        std::vector<std::uint64_t> found;
        const FileHandle folder = directory();
        read_pieces(folder.get(), [&](std::uint64_t, const fbs::Chunk& chunk) {
            if (const auto* blocks = chunk.body_as_Blocks()) {
                for (const fbs::Block* block : *blocks->blocks()) found.push_back(block->first());
            }
            return true;
        });
        return found;
    }
};

}  // namespace ringside::agent::testing
