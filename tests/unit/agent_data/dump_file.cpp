#include "tests/unit/agent_data/dump_file.hpp"

#include <xxhash.h>
#include <zstd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "schema/block_codec.hpp"
#include "schema/frame.hpp"

namespace ringside::agent::testing {
namespace {

struct Reader {
    DumpFile& dump;
    bool footer_seen = false;

    bool process(const fbs::Process& chunk) {
        fbs::ProcessT process;
        chunk.UnPackTo(&process);
        if (dump.processes.size() <= process.index) dump.processes.resize(process.index + 1);
        dump.processes[process.index] = process;
        return true;
    }

    bool names(const fbs::Names& chunk) {
        for (const fbs::Name* name : *chunk.names())
            dump.names[{chunk.process(), name->id()}] = name->text()->str();
        return true;
    }

    bool block(const fbs::Block& block) {
        schema::BlockDecoder decoder(block.data()->data(), block.data()->size(),
                                     block.base_ticks());
        schema::DecodedRecord record;
        std::uint64_t position = block.first();
        std::uint32_t records = 0;
        while (decoder.next(record)) {
            const schema::RecordHeader header = record.header();
            if (header.kind != schema::RecordKind::kPad) {
                DumpRecord out{block.process(), block.lane(), position, header, {}, {}};
                out.words.assign(record.words, record.words + record.cells * 4);
                const auto name = dump.names.find({block.process(), header.name.value});
                if (name != dump.names.end()) {
                    out.name = name->second;
                } else if (header.name != schema::kNoName && header.name != schema::kInlineName) {
                    dump.unnamed.push_back(position);
                }
                if (header.kind != schema::RecordKind::kNameInline) ++records;
                dump.records.push_back(std::move(out));
            }
            position += record.cells;
        }
        auto& open = dump.open[{block.process(), block.lane()}];
        open.clear();
        for (const fbs::OpenRange* range : *block.open()) open.push_back(*range);
        fbs::ContextT context;
        block.context()->UnPackTo(&context);
        dump.contexts.push_back(context);
        dump.positions.emplace_back(block.first(), block.last());
        return !decoder.damaged() && position <= block.last() && records == block.records();
    }

    bool chunk(const std::uint8_t* bytes, std::size_t size, bool first) {
        flatbuffers::Verifier verifier(bytes, size);
        if (!fbs::VerifyChunkBuffer(verifier) || footer_seen) return false;
        const fbs::Chunk* chunk = fbs::GetChunk(bytes);
        if (first != (chunk->body_type() == fbs::Body::FileHeader)) return false;
        switch (chunk->body_type()) {
            case fbs::Body::FileHeader:
                chunk->body_as_FileHeader()->UnPackTo(&dump.header);
                return true;
            case fbs::Body::Process:
                return process(*chunk->body_as_Process());
            case fbs::Body::Names:
                return names(*chunk->body_as_Names());
            case fbs::Body::Blocks:
                for (const fbs::Block* one : *chunk->body_as_Blocks()->blocks()) {
                    if (!block(*one)) return false;
                }
                return true;
            case fbs::Body::Packed: {
                const fbs::Packed& packed = *chunk->body_as_Packed();
                std::vector<std::uint8_t> bytes(packed.bytes());
                ++dump.packed;
                return ZSTD_decompress(bytes.data(), bytes.size(), packed.data()->data(),
                                       packed.data()->size()) == bytes.size() &&
                       this->chunk(bytes.data(), bytes.size(), false);
            }
            case fbs::Body::Footer:
                chunk->body_as_Footer()->UnPackTo(&dump.footer);
                footer_seen = true;
                return true;
            default:
                return false;
        }
    }
};

}  // namespace

std::uint64_t DumpFile::kept(std::uint32_t process, std::uint32_t lane) const {
    std::uint64_t count = 0;
    for (const DumpRecord& record : records) {
        if (record.process == process && record.lane == lane &&
            record.header.kind != schema::RecordKind::kNameInline)
            ++count;
    }
    return count;
}

DumpFile read_dump(const std::string& path) {
    DumpFile dump;
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    Reader reader{dump};
    std::size_t at = 0;
    while (at < bytes.size()) {
        schema::FrameHeader frame{};
        if (bytes.size() - at < sizeof frame) return dump.fault = "short header", dump;
        std::memcpy(&frame, bytes.data() + at, sizeof frame);
        // Copied out: a FlatBuffer wants alignment.
        const std::vector<std::uint8_t> body(
            bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof frame),
            bytes.begin() + static_cast<std::ptrdiff_t>(
                                std::min(bytes.size(), at + sizeof frame + frame.length)));
        if (frame.magic != schema::kDumpFrameMagic || body.size() != frame.length ||
            XXH3_64bits(body.data(), body.size()) != frame.checksum)
            return dump.fault = "bad frame at " + std::to_string(at), dump;
        if (!reader.chunk(body.data(), body.size(), at == 0))
            return dump.fault = "bad chunk at " + std::to_string(at), dump;
        at += sizeof frame + frame.length + schema::frame_padding(frame.length);
    }
    dump.good = reader.footer_seen && at == bytes.size();
    if (!dump.good) dump.fault = "no footer";
    return dump;
}

}  // namespace ringside::agent::testing
