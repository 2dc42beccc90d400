#include "agent/dump/partial_dump.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>

#include "schema/dump_generated.h"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// Far beyond what a node runs: a dump that claims more is damaged.
constexpr std::uint32_t kMostProcesses = 1u << 20;
constexpr flatbuffers::uoffset_t kDeepest = 64, kMostTables = 1u << 24;

std::string text(const flatbuffers::String* string) {
    return string == nullptr ? "" : string->str();
}

schema::ClockSnapshot clock_of(const fbs::Clock* clock) {
    if (clock == nullptr) return {};
    return {clock->ticks(), clock->monotonic_ns(), clock->realtime_ns(), clock->width_ticks()};
}

std::vector<std::uint64_t> numbers(const flatbuffers::Vector<std::uint64_t>* list) {
    return list == nullptr ? std::vector<std::uint64_t>()
                           : std::vector<std::uint64_t>(list->begin(), list->end());
}

LaneContext context_of(const fbs::Context* context) {
    if (context == nullptr) return {};
    return {static_cast<schema::ContextState>(context->state()), context->key(),
            context->trace_hi(), context->trace_lo(), context->span()};
}

ProcessEndFacts end_of(const fbs::ProcessEnd& end) {
    return {end.process(),    static_cast<Fate>(end.fate()), end.ticks(), numbers(end.losses()),
            end.violations(), end.start_delay_ns()};
}

SegmentFacts segment_of(const fbs::Process& from) {
    SegmentFacts facts;
    facts.id = {from.pid_namespace(), static_cast<std::uint32_t>(from.pid()), from.start_ticks()};
    facts.parent_pid = from.parent_pid();
    facts.uid = from.uid();
    facts.rank = from.rank();
    facts.worker_id = from.worker_id();
    facts.ticks_source = static_cast<schema::TicksSource>(from.ticks_source());
    facts.load_clock = clock_of(from.load_clock());
    facts.capture_clock = clock_of(from.capture_clock());
    facts.job = text(from.job());
    facts.executable = text(from.executable());
    if (from.command_line() != nullptr) {
        for (const auto* word : *from.command_line()) facts.command_line.push_back(word->str());
    }
    if (from.sources() != nullptr) {
        for (const fbs::Source* source : *from.sources()) {
            facts.sources.push_back({static_cast<schema::SourceId>(source->id()),
                                     static_cast<schema::SourceLevel>(source->level()),
                                     text(source->reason())});
        }
    }
    return facts;
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
        const fbs::Calibration& clock = *header.calibration();
        dump_.header = {text(header.job()),
                        header.capture_id(),
                        {clock.reference_ticks(), clock.reference_ns(), clock.ticks_per_second(),
                         clock.error_ppb(), static_cast<schema::TicksSource>(clock.ticks_source())},
                        header.start_ticks(),
                        header.options(),
                        header.min_reader() > schema::kPlainDumpVersion};
        return true;
    }

    bool take(const fbs::Process& from) {
        if (from.index() >= kMostProcesses || from.index() > dump_.processes.size()) return false;
        if (from.index() == dump_.processes.size()) dump_.processes.emplace_back();
        ProcessFacts& facts = dump_.processes[from.index()].facts;
        facts = {};
        facts.index = from.index();
        facts.host_pid = from.host_pid();
        facts.worker_name = text(from.worker_name());
        facts.segment = segment_of(from);
        facts.losses_before = numbers(from.losses_before());
        facts.start_delay_ns = from.start_delay_ns();
        if (from.end() != nullptr) facts.end = end_of(*from.end());
        facts.end_reason = text(from.end_reason());
        return true;
    }

    bool take(const fbs::Names& from) {
        if (from.process() >= dump_.processes.size()) return false;
        NamesBatch& names = dump_.processes[from.process()].names;
        names.process = from.process();
        if (from.names() != nullptr) {
            for (const fbs::Name* name : *from.names())
                names.names.push_back(
                    {name->id(), text(name->text()), name->flags(), name->attribute()});
        }
        if (from.attributes() != nullptr) {
            for (const fbs::Attribute* attribute : *from.attributes())
                names.attributes.push_back({attribute->id(), attribute->domain(),
                                            attribute->category(), attribute->colour(),
                                            attribute->payload()});
        }
        return true;
    }

    bool take(const fbs::Packed& packed) {
        const std::size_t bytes = packed.bytes();
        if (packed.data() == nullptr || bytes > schema::kMaxFrameBytes) return false;
        std::vector<std::uint8_t> whole(bytes);
        if (ZSTD_decompress(whole.data(), bytes, packed.data()->data(), packed.data()->size()) !=
            bytes)
            return false;
        flatbuffers::Verifier verifier(whole.data(), bytes, kDeepest, kMostTables);
        if (!fbs::VerifyChunkBuffer(verifier)) return false;
        const auto* blocks = fbs::GetChunk(whole.data())->body_as_Blocks();
        return blocks != nullptr && take(*blocks);
    }

    bool take(const fbs::Blocks& from) {
        if (from.blocks() == nullptr) return true;
        return std::all_of(from.blocks()->begin(), from.blocks()->end(),
                           [&](const fbs::Block* block) { return take(*block); });
    }

    bool take(const fbs::Block& block) {
        if (block.process() >= dump_.processes.size() || block.lane() >= schema::kMaxLanes)
            return false;
        PartialProcess& process = dump_.processes[block.process()];
        const schema::LaneId lane{block.lane(), block.generation()};
        auto account =
            std::find_if(process.accounts.rbegin(), process.accounts.rend(),
                         [&](const LaneAccount& candidate) { return candidate.lane == lane; });
        if (account == process.accounts.rend()) {
            process.accounts.emplace_back().lane = lane;
            account = process.accounts.rbegin();
        }
        account->tid = block.tid();
        account->kept += block.records();
        LaneCarry& carry = process.carries[block.lane()];
        if (block.last() < carry.position) return false;
        carry = {lane,
                 block.last(),
                 block.base_ticks(),
                 {},
                 context_of(block.end_context()),
                 static_cast<std::size_t>(process.accounts.rend() - account) - 1};
        // Of an agent that did not know it yet: what was lost and outside is not told.
        const fbs::LaneTally* tally = block.tally();
        if (tally == nullptr) return true;
        carry.tally = {tally->records(), tally->dropped(),          tally->outside(),
                       tally->lost(),    tally->first_lost_ticks(), tally->last_lost_ticks()};
        account->outside = tally->outside();
        account->lost = tally->lost();
        account->first_lost_ticks = tally->first_lost_ticks();
        account->last_lost_ticks = tally->last_lost_ticks();
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
        flatbuffers::Verifier verifier(body.data(), body.size(), kDeepest, kMostTables);
        if (!fbs::VerifyChunkBuffer(verifier) || !reader.take(*fbs::GetChunk(body.data()))) {
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
