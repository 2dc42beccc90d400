#include "agent/dump/chunks.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

#include "schema/dump_generated.h"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using flatbuffers::FlatBufferBuilder;
template <class T>
using Offsets = std::vector<flatbuffers::Offset<T>>;

template <class Body>
void finish(FlatBufferBuilder& builder, fbs::Body type, flatbuffers::Offset<Body> body) {
    fbs::FinishChunkBuffer(builder, fbs::CreateChunk(builder, type, body.Union()));
}

fbs::Clock clock_of(const schema::ClockSnapshot& clock) {
    return {clock.ticks, clock.monotonic_ns, clock.realtime_ns, clock.width_ticks};
}

flatbuffers::Offset<fbs::Context> build_context(FlatBufferBuilder& builder,
                                                const LaneContext& context) {
    return fbs::CreateContext(builder, static_cast<fbs::ContextState>(context.state), context.key,
                              context.trace_hi, context.trace_lo, context.span);
}

flatbuffers::Offset<fbs::ProcessEnd> build_end(FlatBufferBuilder& builder,
                                               const ProcessEndFacts& end) {
    flatbuffers::Offset<fbs::Iterations> iterations;
    if (end.iterations) {
        const IterationReport& report = *end.iterations;
        iterations = fbs::CreateIterationsDirect(builder, report.name.c_str(), report.asked,
                                                 report.count, report.first, report.begin_ticks,
                                                 report.end_ticks, report.beside);
    }
    Offsets<fbs::OpenCall> calls;
    for (const OpenCallFacts& call : end.open.calls) {
        calls.push_back(fbs::CreateOpenCallDirect(
            builder, call.tid, static_cast<std::uint8_t>(call.source), call.function.c_str(),
            call.begin_ticks, call.group, call.sequence, call.peer, call.tag));
    }
    Offsets<fbs::Group> groups;
    for (const GroupFacts& group : end.open.groups) {
        groups.push_back(fbs::CreateGroupDirect(
            builder, group.id, static_cast<std::uint8_t>(group.source), group.label.c_str(),
            group.size, group.rank, group.job_rank, group.last));
    }
    return fbs::CreateProcessEndDirect(builder, end.process, static_cast<fbs::Fate>(end.fate),
                                       end.ticks, &end.losses, end.violations, end.start_delay_ns,
                                       iterations, calls.empty() ? nullptr : &calls,
                                       groups.empty() ? nullptr : &groups);
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

}  // namespace

void build_header(FlatBufferBuilder& builder, const DumpHeader& header, const std::string& node) {
    const Calibration& clock = header.calibration;
    const auto calibration = fbs::CreateCalibration(
        builder, clock.reference_ticks, clock.reference_ns, clock.ticks_per_second, clock.error_ppb,
        static_cast<fbs::TicksSource>(clock.source));
    const std::string host = host_name(), boot = boot_id();
    finish(builder, fbs::Body::FileHeader,
           fbs::CreateFileHeaderDirect(
               builder, schema::kDumpVersion,
               header.packed ? schema::kDumpVersion : schema::kPlainDumpVersion, node.c_str(),
               host.c_str(), boot.c_str(), header.job.c_str(), RINGSIDE_VERSION,
               static_cast<std::uint32_t>(::getpid()), header.capture_id, calibration,
               header.start_ticks, header.options));
}

void build_process(FlatBufferBuilder& builder, const ProcessFacts& facts) {
    const SegmentFacts& segment = facts.segment;
    Offsets<fbs::Source> sources;
    for (const SourceFacts& source : segment.sources) {
        sources.push_back(fbs::CreateSourceDirect(builder, static_cast<std::uint8_t>(source.id),
                                                  static_cast<fbs::SourceLevel>(source.level),
                                                  source.reason.c_str()));
    }
    const auto worker = builder.CreateString(facts.worker_name);
    const auto executable = builder.CreateString(segment.executable);
    const auto arguments = builder.CreateVectorOfStrings(segment.command_line);
    const auto job = builder.CreateString(segment.job);
    const auto source_vector = builder.CreateVector(sources);
    const auto losses_before = builder.CreateVector(facts.losses_before);
    const auto end = facts.end ? build_end(builder, *facts.end) : 0;
    const auto end_reason = builder.CreateString(facts.end_reason);
    const fbs::Clock load = clock_of(segment.load_clock), capture = clock_of(segment.capture_clock);
    fbs::ProcessBuilder process(builder);
    process.add_index(facts.index);
    process.add_pid_namespace(segment.id.pid_namespace);
    process.add_pid(static_cast<std::int32_t>(segment.id.pid));
    process.add_host_pid(facts.host_pid);
    process.add_parent_pid(segment.parent_pid);
    process.add_uid(segment.uid);
    process.add_start_ticks(segment.id.start_ticks);
    process.add_rank(segment.rank);
    process.add_worker_name(worker);
    process.add_worker_id(segment.worker_id);
    process.add_executable(executable);
    process.add_command_line(arguments);
    process.add_job(job);
    process.add_ticks_source(static_cast<fbs::TicksSource>(segment.ticks_source));
    process.add_load_clock(&load);
    process.add_capture_clock(&capture);
    process.add_sources(source_vector);
    process.add_losses_before(losses_before);
    process.add_start_delay_ns(facts.start_delay_ns);
    process.add_end(end);
    process.add_end_reason(end_reason);
    finish(builder, fbs::Body::Process, process.Finish());
}

void build_names(FlatBufferBuilder& builder, const NamesBatch& batch) {
    Offsets<fbs::Name> names;
    for (const NameFacts& name : batch.names) {
        names.push_back(fbs::CreateName(builder, name.id, builder.CreateString(name.text),
                                        name.flags, name.attribute));
    }
    Offsets<fbs::Attribute> attributes;
    for (const AttributeFacts& attribute : batch.attributes) {
        attributes.push_back(fbs::CreateAttribute(builder, attribute.id, attribute.domain,
                                                  attribute.category, attribute.colour,
                                                  attribute.payload));
    }
    finish(builder, fbs::Body::Names,
           fbs::CreateNamesDirect(builder, batch.process, &names, &attributes));
}

void build_blocks(FlatBufferBuilder& builder, std::span<const Block* const> blocks) {
    Offsets<fbs::Block> list;
    list.reserve(blocks.size());
    std::vector<fbs::OpenRange> open;
    for (const Block* block : blocks) {
        open.clear();
        for (const OpenRange& range : block->open)
            open.emplace_back(range.begin, range.key, range.argument, range.what);
        const auto data = builder.CreateVector(block->data.data(), block->data.size());
        const auto open_vector = builder.CreateVectorOfStructs(open);
        const auto name = builder.CreateString(block->thread.thread_name.data());
        const auto context_table = build_context(builder, block->context);
        const auto end_context = block->end_context.state == schema::ContextState::kNone
                                     ? flatbuffers::Offset<fbs::Context>()
                                     : build_context(builder, block->end_context);
        const LaneTally& tally = block->tally;
        const fbs::LaneTally counted(tally.records, tally.dropped, tally.outside, tally.lost,
                                     tally.first_lost_ticks, tally.last_lost_ticks);
        list.push_back(fbs::CreateBlock(
            builder, block->process, block->lane.index, block->lane.generation, block->thread.tid,
            name, block->first, block->last, block->base_ticks, block->records, context_table,
            open_vector, data, &counted, end_context));
    }
    finish(builder, fbs::Body::Blocks, fbs::CreateBlocksDirect(builder, &list));
}

void build_packed(FlatBufferBuilder& builder, std::size_t bytes,
                  std::span<const std::uint8_t> packed) {
    const auto data = builder.CreateVector(packed.data(), packed.size());
    finish(builder, fbs::Body::Packed,
           fbs::CreatePacked(builder, fbs::Packing::Zstd, static_cast<std::uint32_t>(bytes), data));
}

void build_footer(FlatBufferBuilder& builder, const DumpFooter& footer,
                  std::uint64_t bytes_before) {
    Offsets<fbs::LaneTotals> lanes;
    std::uint64_t records = 0, lost = 0;
    for (const DumpFooter::Lane& lane : footer.lanes) {
        const LaneAccount& account = lane.account;
        records += account.kept;
        lost += account.lost;
        lanes.push_back(fbs::CreateLaneTotals(
            builder, lane.process, account.lane.index, account.lane.generation, account.tid,
            account.written(), account.kept, account.outside, account.lost,
            account.first_lost_ticks, account.last_lost_ticks));
    }
    Offsets<fbs::ProcessEnd> ends;
    for (const ProcessEndFacts& end : footer.processes) ends.push_back(build_end(builder, end));
    const Perturbation& cost = footer.perturbation;
    // What is cut out of a window has no receipt: it was recorded for whoever would ask.
    flatbuffers::Offset<fbs::Perturbation> perturbation;
    if (cost.agent_cpu_ns >= 0) {
        perturbation =
            fbs::CreatePerturbation(builder, cost.records, cost.cost_ns, cost.job_time_ns,
                                    cost.slowest_start_ns, cost.agent_cpu_ns);
    }
    finish(builder, fbs::Body::Footer,
           fbs::CreateFooterDirect(builder, footer.start_ticks, footer.stop_ticks, &lanes, &ends,
                                   records, lost, footer.unknown_records, bytes_before,
                                   footer.record_cost_ns, perturbation));
}

}  // namespace ringside::agent
