// What an agent reads again of its own files, when somebody has put its numbers where they can't lie.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <fstream>

#include "agent/dump/partial_dump.hpp"
#include "agent/window/piece_file.hpp"
#include "schema/frame.hpp"
#include "tests/unit/agent_data/fake_job.hpp"
#include "tests/unit/misaligned.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;
using ringside::tests::Misaligned;
using ringside::tests::misaligned_chunks;

namespace {

std::string framed(const std::vector<std::uint8_t>& payload) {
    schema::FrameHeader header{};
    header.magic = schema::kDumpFrameMagic;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.checksum = XXH3_64bits(payload.data(), payload.size());
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
           std::string(payload.begin(), payload.end()) +
           std::string(schema::frame_padding(header.length), '\0');
}

std::string framed(fbs::BodyUnion body) {
    fbs::ChunkT chunk;
    chunk.body = std::move(body);
    flatbuffers::FlatBufferBuilder builder;
    fbs::FinishChunkBuffer(builder, fbs::Chunk::Pack(builder, &chunk));
    return framed(std::vector<std::uint8_t>(builder.GetBufferPointer(),
                                            builder.GetBufferPointer() + builder.GetSize()));
}

/// A header and process 0.
std::string beginning() {
    fbs::BodyUnion header, process;
    fbs::FileHeaderT facts;
    facts.calibration = std::make_unique<fbs::CalibrationT>();
    header.Set(std::move(facts));
    process.Set(fbs::ProcessT());
    return framed(std::move(header)) + framed(std::move(process));
}

FileHandle opened(const TemporaryDirectory& top, const std::string& bytes) {
    const std::string path = top.sub(piece_name(1));
    std::ofstream(path, std::ios::binary) << bytes;
    return FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

TEST_CASE(
    "partial dump: 8-byte numbers that lie at a multiple of 4 alone end what can be gone on with") {
    const TemporaryDirectory top;
    for (const Misaligned& chunk : misaligned_chunks()) {
        CAPTURE(chunk.what);
        CHECK(read_partial(opened(top, beginning() + framed(chunk.good)).get(), "partial"));
        CHECK_FALSE(read_partial(opened(top, beginning() + framed(chunk.bad)).get(), "partial"));
    }
}

TEST_CASE("window: a list without a number may lie anywhere") {
    const TemporaryDirectory top;
    int elsewhere = 0;
    for (std::size_t length = 0; length < 16; ++length) {
        flatbuffers::FlatBufferBuilder builder;
        const auto name = builder.CreateString(std::string(length, 'x'));
        const auto none = builder.CreateVectorOfStructs<fbs::OpenRange>(nullptr, 0);
        fbs::BlockBuilder block(builder);
        block.add_thread_name(name);
        block.add_open(none);
        block.add_first(
            1);  // so that the whole is aligned, and what is in it lies as its neighbours' lengths say
        const auto blocks = builder.CreateVector(std::vector{block.Finish()});
        const auto body = fbs::CreateBlocks(builder, blocks).Union();
        fbs::FinishChunkBuffer(builder, fbs::CreateChunk(builder, fbs::Body::Blocks, body));
        const std::vector<std::uint8_t> payload(builder.GetBufferPointer(),
                                                builder.GetBufferPointer() + builder.GetSize());
        const auto* open =
            fbs::GetChunk(payload.data())->body_as_Blocks()->blocks()->Get(0)->open();
        elsewhere += reinterpret_cast<std::uintptr_t>(open->Data()) % 8 != 0;
        std::vector<std::uint8_t> buffer;
        std::uint64_t bytes = 0;
        CHECK(read_frame(opened(top, framed(payload)).get(), 0, buffer, bytes) != nullptr);
    }
    CHECK(elsewhere > 0);
}

TEST_CASE("window: a frame with 8-byte numbers that lie at a multiple of 4 alone is none") {
    const TemporaryDirectory top;
    for (const Misaligned& chunk : misaligned_chunks()) {
        CAPTURE(chunk.what);
        std::vector<std::uint8_t> buffer;
        std::uint64_t bytes = 0;
        CHECK(read_frame(opened(top, framed(chunk.good)).get(), 0, buffer, bytes) != nullptr);
        CHECK(read_frame(opened(top, framed(chunk.bad)).get(), 0, buffer, bytes) == nullptr);
    }
}
