// Chunks and messages that the verifier takes although their 8-byte numbers lie at a multiple of 4 alone (schema/aligned.hpp).
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "schema/dump_generated.h"

namespace ringside::tests {

/// The same bytes with a vector four bytes further on: its length is then the low half of its first number.
/// @param vector  where it begins in `bytes`; one offset leads there
template <class Vector>
std::vector<std::uint8_t> with_moved(const std::vector<std::uint8_t>& bytes, const Vector* vector) {
    const auto* word = reinterpret_cast<const std::uint8_t*>(vector);
    const auto end = static_cast<std::size_t>(word - bytes.data());
    std::vector<std::uint8_t> moved = bytes;
    bool found = false;
    for (std::size_t i = 0; i + 4 <= end && !found; i += 2) {
        std::uint32_t offset = 0;
        std::memcpy(&offset, bytes.data() + i, sizeof offset);
        if (i + offset != end) continue;
        offset += 4;
        std::memcpy(moved.data() + i, &offset, sizeof offset);
        found = true;
    }
    REQUIRE(found);
    return moved;
}

struct Misaligned {
    std::string what;
    std::vector<std::uint8_t> good, bad;
};

/// Each vector of a dump that holds such numbers, in a chunk of its own about process 0 and its lane 0.
inline std::vector<Misaligned> misaligned_chunks() {
    std::vector<Misaligned> all;
    const auto add = [&](const std::string& what, auto body, auto vector_of) {
        fbs::ChunkT chunk;
        chunk.body.Set(std::move(body));
        flatbuffers::FlatBufferBuilder builder;
        fbs::FinishChunkBuffer(builder, fbs::Chunk::Pack(builder, &chunk));
        const std::vector<std::uint8_t> good(builder.GetBufferPointer(),
                                             builder.GetBufferPointer() + builder.GetSize());
        const auto bad = with_moved(good, vector_of(*fbs::GetChunk(good.data())));
        flatbuffers::Verifier verifier(bad.data(), bad.size());
        REQUIRE(fbs::VerifyChunkBuffer(verifier));
        all.push_back({what, good, bad});
    };
    fbs::ProcessT before;
    before.losses_before = {1, 2, 3};
    add("Process.losses_before", std::move(before),
        [](const fbs::Chunk& chunk) { return chunk.body_as_Process()->losses_before(); });
    fbs::ProcessT ended;
    ended.end = std::make_unique<fbs::ProcessEndT>();
    ended.end->losses = {1, 2, 3};
    add("Process.end.losses", std::move(ended),
        [](const fbs::Chunk& chunk) { return chunk.body_as_Process()->end()->losses(); });
    fbs::BlocksT blocks;
    blocks.blocks.push_back(std::make_unique<fbs::BlockT>());
    blocks.blocks[0]->open = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    add("Block.open", std::move(blocks),
        [](const fbs::Chunk& chunk) { return chunk.body_as_Blocks()->blocks()->Get(0)->open(); });
    fbs::FooterT footer;
    footer.processes.push_back(std::make_unique<fbs::ProcessEndT>());
    footer.processes[0]->losses = {1, 2, 3};
    add("Footer.processes.losses", std::move(footer), [](const fbs::Chunk& chunk) {
        return chunk.body_as_Footer()->processes()->Get(0)->losses();
    });
    return all;
}

}  // namespace ringside::tests
