// What the tests of the lanes share: a segment in this process, and a drainer whose blocks are kept.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <memory>
#include <vector>

#include "agent/drain/process_drainer.hpp"
#include "schema/block_codec.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

namespace ringside::agent::testing {

inline constexpr TickRange kAll{0, ~0ull};

struct Rig {
    TemporaryDirectory directory;
    FakeSegment fake{directory.path(), {}};
    FileHandle handle{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    std::unique_ptr<MappedSegment> segment = [&] {
        auto opened =
            MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
        REQUIRE(opened);
        REQUIRE(*opened != nullptr);
        return std::move(*opened);
    }();
    ProcessDrainer drainer{*segment};
    std::unique_ptr<DrainBuffers> buffers = std::make_unique<DrainBuffers>();

    Rig() { drainer.start(0); }
    std::uint64_t drain(const TickRange& range = kAll) {
        return drainer.drain(*buffers, range, ticks_now(), true).cells;
    }
    /// Seals, decodes, settles.
    std::vector<schema::DecodedRecord> take(bool last = false) {
        drainer.seal(*buffers, kAll, ticks_now(), last);
        std::vector<schema::DecodedRecord> records;
        for (const Block& block : drainer.sealed()) {
            blocks.push_back(block);
            schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
            schema::DecodedRecord record{};
            while (decoder.next(record)) {
                if (record.header().kind != schema::RecordKind::kPad) records.push_back(record);
            }
            CHECK_FALSE(decoder.damaged());
        }
        drainer.settle_all(*buffers, true, ticks_now());
        return records;
    }
    const LaneAccount& account(std::size_t index = 0) { return drainer.accounts().at(index); }

    std::vector<Block> blocks;
};

}  // namespace ringside::agent::testing
