#include "agent/dump/partial_dump.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>

#include "agent/dump/chunk_facts.hpp"
#include "schema/aligned.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// Far beyond what a node runs: a dump that claims more is damaged.
constexpr std::uint32_t kMostProcesses = 1u << 20;
constexpr flatbuffers::uoffset_t kDeepest = 64, kMostTables = 1u << 24;

/// @return null: it is damaged
const fbs::Chunk* verified(const std::vector<std::uint8_t>& bytes) {
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kDeepest, kMostTables);
    if (!fbs::VerifyChunkBuffer(verifier)) return nullptr;
    const fbs::Chunk* chunk = fbs::GetChunk(bytes.data());
    return schema::is_aligned_chunk(*chunk) ? chunk : nullptr;
}

class PartialReader {
public:
    explicit PartialReader(PartialDump& dump) : dump_(dump) {}

    /// @return false: it contradicts what stands before
    bool take(const fbs::Chunk& chunk) {
        if (dump_.has_header != (chunk.body_type() != fbs::Body::FileHeader)) return false;
        if (chunk.body() == nullptr) return false;  // the verifier lets a kind without a body pass
        switch (chunk.body_type()) {
            case fbs::Body::FileHeader:
                return take(*chunk.body_as_FileHeader());
            case fbs::Body::Process:
                return take(*chunk.body_as_Process());
            case fbs::Body::Names:
                return take(*chunk.body_as_Names());
            case fbs::Body::Blocks:
                return take(*chunk.body_as_Blocks());
            case fbs::Body::Packed:
                return take(*chunk.body_as_Packed());
            case fbs::Body::Footer:
                return dump_.has_footer = true;
            default:
                return true;
        }
    }

private:
    bool take(const fbs::FileHeader& header) {
        if (header.min_reader() > schema::kDumpVersion || header.calibration() == nullptr)
            return false;
        dump_.has_header = true;
        dump_.header = facts_of(header);
        return true;
    }

    bool take(const fbs::Process& from) {
        if (from.index() >= kMostProcesses || from.index() > dump_.processes.size()) return false;
        if (from.index() == dump_.processes.size()) dump_.processes.emplace_back();
        dump_.processes[from.index()].facts = facts_of(from);
        return true;
    }

    bool take(const fbs::Names& from) {
        if (from.process() >= dump_.processes.size()) return false;
        NamesBatch& known = dump_.processes[from.process()].names;
        NamesBatch more = facts_of(from);
        known.process = from.process();
        std::move(more.names.begin(), more.names.end(), std::back_inserter(known.names));
        known.attributes.insert(known.attributes.end(), more.attributes.begin(),
                                more.attributes.end());
        return true;
    }

    bool take(const fbs::Packed& packed) {
        const std::size_t bytes = packed.bytes();
        if (packed.data() == nullptr || bytes > schema::kMaxFrameBytes) return false;
        std::vector<std::uint8_t> whole(bytes);
        if (ZSTD_decompress(whole.data(), bytes, packed.data()->data(), packed.data()->size()) !=
            bytes)
            return false;
        const fbs::Chunk* chunk = verified(whole);
        const auto* blocks = chunk == nullptr ? nullptr : chunk->body_as_Blocks();
        return blocks != nullptr && take(*blocks);
    }

    bool take(const fbs::Blocks& from) {
        if (from.blocks() == nullptr) return true;
        return std::all_of(from.blocks()->begin(), from.blocks()->end(),
                           [&](const fbs::Block* block) { return take(*block); });
    }

    bool take(const fbs::Block& stored) {
        if (stored.process() >= dump_.processes.size() || stored.lane() >= schema::kMaxLanes)
            return false;
        const Block block = facts_of(stored);
        PartialProcess& process = dump_.processes[block.process];
        auto account = std::find_if(
            process.accounts.rbegin(), process.accounts.rend(),
            [&](const LaneAccount& candidate) { return candidate.lane == block.lane; });
        if (account == process.accounts.rend()) {
            process.accounts.emplace_back().lane = block.lane;
            account = process.accounts.rbegin();
        }
        account->tid = block.thread.tid;
        account->kept += block.records;
        process.bytes += block.data.size();
        LaneCarry& carry = process.carries[block.lane.index];
        if (block.last < carry.position) return false;
        carry = {
            block.lane,        block.last,
            block.base_ticks,  {},
            block.end_context, static_cast<std::size_t>(process.accounts.rend() - account) - 1};
        // Of an agent that did not know it yet: what was lost and outside is not told.
        if (stored.tally() == nullptr) return true;
        carry.tally = block.tally;
        account->outside = block.tally.outside;
        account->lost = block.tally.lost;
        account->first_lost_ticks = block.tally.first_lost_ticks;
        account->last_lost_ticks = block.tally.last_lost_ticks;
        return true;
    }

    PartialDump& dump_;
};

/// @return the next frame's payload; empty: the file ends, or what follows is no whole frame
std::vector<std::uint8_t> read_frame(int file, std::uint64_t at, std::uint64_t size) {
    schema::FrameHeader header{};
    if (size - at < sizeof header ||
        ::pread(file, &header, sizeof header, static_cast<off_t>(at)) != sizeof header ||
        header.magic != schema::kDumpFrameMagic || header.length > schema::kMaxFrameBytes)
        return {};
    const std::uint64_t padded = header.length + schema::frame_padding(header.length);
    if (size - at - sizeof header < padded) return {};
    std::vector<std::uint8_t> body(header.length);
    if (::pread(file, body.data(), body.size(), static_cast<off_t>(at + sizeof header)) !=
            static_cast<ssize_t>(body.size()) ||
        XXH3_64bits(body.data(), body.size()) != header.checksum)
        return {};
    return body;
}

}  // namespace

schema::Result<PartialDump> read_partial(int file, const std::string& path) {
    struct stat status {};
    const auto size = ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
    PartialDump dump;
    PartialReader reader(dump);
    while (!dump.has_footer) {
        const auto body = read_frame(file, dump.bytes, size);
        if (body.empty()) break;
        const fbs::Chunk* chunk = verified(body);
        if (chunk == nullptr || !reader.take(*chunk)) {
            return Error{ErrorCode::kInput,
                         "go on with dump " + path + ": the chunk at byte " +
                             std::to_string(dump.bytes) +
                             " is none that this agent can go on behind; what stands before it can "
                             "be shown as it is"};
        }
        dump.bytes += FrameFile::frame_bytes(body.size());
    }
    dump.cut = size - dump.bytes;
    return dump;
}

}  // namespace ringside::agent
