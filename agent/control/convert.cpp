#include "agent/control/convert.hpp"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "schema/frame.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent {
namespace {

constexpr std::uint32_t kMostAttachMs = 10'000;

/// Orders wait for each other: a process that never attaches must not hold them up for as long as somebody likes.
Nanoseconds attach_timeout(std::uint32_t ms) {
    return {std::min(ms, kMostAttachMs) * schema::kNsPerMillisecond};
}

std::unique_ptr<fbs::CalibrationT> calibration_table(const Calibration& calibration) {
    auto table = std::make_unique<fbs::CalibrationT>();
    table->reference_ticks = calibration.reference_ticks;
    table->reference_ns = calibration.reference_ns;
    table->ticks_per_second = calibration.ticks_per_second;
    table->error_ppb = calibration.error_ppb;
    table->ticks_source = static_cast<fbs::TicksSource>(calibration.source);
    return table;
}

std::unique_ptr<fbs::PerturbationT> perturbation_table(const Perturbation& perturbation) {
    if (perturbation.agent_cpu_ns < 0) return nullptr;
    auto table = std::make_unique<fbs::PerturbationT>();
    table->records = perturbation.records;
    table->cost_ns = perturbation.cost_ns;
    table->job_time_ns = perturbation.job_time_ns;
    table->slowest_start_ns = perturbation.slowest_start_ns;
    table->agent_cpu_ns = perturbation.agent_cpu_ns;
    return table;
}

std::vector<SourceReport> sources_of(const std::vector<std::unique_ptr<fbs::SourceT>>& tables) {
    std::vector<SourceReport> sources;
    sources.reserve(tables.size());
    for (const auto& table : tables) {
        sources.push_back({static_cast<schema::SourceId>(table->id),
                           static_cast<schema::SourceLevel>(table->level), table->reason});
    }
    return sources;
}

std::unique_ptr<fbs::ProcessResultT> process_result(const ProcessReport& report) {
    const ProcessOutcome outcome = outcome_of(report);
    auto table = std::make_unique<fbs::ProcessResultT>();
    put_outcome(*table, outcome);
    table->index = outcome.index;
    table->fate = static_cast<fbs::Fate>(outcome.fate);
    table->end_ticks = outcome.end_ticks;
    table->workers = outcome.workers;
    return table;
}

std::unique_ptr<fbs::ProcessT> process_table(const Engine& engine, const ProcessReport& report) {
    auto table = std::make_unique<fbs::ProcessT>();
    table->index = report.index;
    table->pid_namespace = report.segment.pid_namespace;
    table->pid = static_cast<std::int32_t>(report.segment.pid);
    table->host_pid = report.host_pid;
    table->parent_pid = report.parent_pid;
    table->uid = ::getuid();  // a directory's segments are all of its owner
    table->start_ticks = report.segment.start_ticks;
    table->rank = report.rank;
    table->worker_name = report.worker_name;
    table->worker_id = report.worker_id;
    table->executable = report.executable;
    table->command_line = report.command_line;
    table->job = engine.options().job;
    table->sources = source_tables(report.sources);
    return table;
}

std::unique_ptr<fbs::WindowStatusT> window_table(const std::optional<WindowReport>& report) {
    if (!report) return nullptr;
    auto table = std::make_unique<fbs::WindowStatusT>();
    table->keep_ms =
        static_cast<std::uint32_t>(report->asked.keep.value / schema::kNsPerMillisecond);
    table->max_bytes = report->asked.max_bytes;
    table->pids.assign(report->asked.pids.begin(), report->asked.pids.end());
    table->source_mask = report->asked.source_mask;
    table->options = report->asked.options;
    table->armed_ns = report->armed_ns;
    table->holds_ns = report->holds_ns;
    table->bytes = report->bytes;
    table->records = report->records;
    table->pieces = report->pieces;
    table->aged_records = report->aged_records;
    table->aged_until_ns = report->aged_until.value;
    table->lost = report->lost;
    table->error = report->error;
    return table;
}

void put_own_cost(fbs::StatusReplyT& reply) {
    reply.cpu_ns = schema::read_clock(CLOCK_PROCESS_CPUTIME_ID).value;
    std::uint64_t all_pages = 0, resident_pages = 0;
    std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
    reply.resident_bytes = resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<std::unique_ptr<fbs::SourceT>> source_tables(std::span<const SourceReport> sources) {
    std::vector<std::unique_ptr<fbs::SourceT>> tables;
    for (const SourceReport& source : sources) {
        auto table = std::make_unique<fbs::SourceT>();
        table->id = static_cast<std::uint8_t>(source.id);
        table->level = static_cast<fbs::SourceLevel>(source.level);
        table->reason = source.reason;
        tables.push_back(std::move(table));
    }
    return tables;
}

fbs::StatusReplyT status_reply(const Engine& engine, const AgentIdentity& identity) {
    const EngineStatus status = engine.status();
    fbs::StatusReplyT reply;
    reply.node = engine.options().node;
    reply.host = identity.host;
    reply.version = identity.version;
    reply.pid = static_cast<std::uint32_t>(::getpid());
    reply.job = engine.options().job;
    reply.directory = status.directory;
    reply.output = engine.options().output_root;
    reply.endpoint = identity.endpoint;
    reply.capturing = status.capturing;
    reply.capture_id = status.capture_id;
    reply.asker = status.asker;
    reply.processes = status.processes;
    reply.uptime_ns = schema::read_clock(CLOCK_MONOTONIC).value - identity.started_monotonic_ns;
    reply.events = status.events;
    reply.lost = status.lost;
    reply.bytes = status.bytes;
    reply.record_cost_ns = status.record_cost_ns;
    reply.window = window_table(status.window);
    reply.left_pieces = static_cast<std::uint32_t>(status.left_pieces);
    reply.left_bytes = status.left_bytes;
    reply.notice = status.notice;
    reply.recovered = status.recovered;
    reply.counts_iterations = true;
    reply.relays = kMostRelayed;
    reply.total_events = status.totals.events;
    reply.total_lost = status.totals.lost;
    reply.total_bytes = status.totals.bytes;
    reply.total_iterations = status.totals.iterations;
    reply.iteration_ns = status.iteration_ns;
    put_own_cost(reply);
    return reply;
}

fbs::ProcessesReplyT processes_reply(Engine& engine) {
    fbs::ProcessesReplyT reply;
    reply.node = engine.options().node;
    reply.window = window_table(engine.status().window);
    for (const ProcessReport& report : engine.processes()) {
        auto entry = std::make_unique<fbs::ProcessStatusT>();
        entry->process = process_table(engine, report);
        entry->lanes = report.lanes;
        entry->events = report.events;
        entry->lost = report.lost;
        entry->alive = report.fate == Fate::kRunning;
        entry->attached = report.attached;
        entry->verdict = static_cast<fbs::Verdict>(report.verdict);
        entry->reason = report.reason;
        entry->bytes = report.bytes;
        entry->iterations = report.iterations_seen;
        entry->iteration_ns = report.iteration_ns;
        reply.processes.push_back(std::move(entry));
    }
    return reply;
}

fbs::PrepareReplyT prepare_reply(const Engine& engine, const AgentIdentity& identity,
                                 const PrepareReport& report) {
    fbs::PrepareReplyT reply;
    reply.node = engine.options().node;
    reply.host = identity.host;
    reply.processes = report.processes;
    reply.attached = report.attached;
    reply.slowest_attach_ns = report.slowest_attach_ns;
    return reply;
}

fbs::StopReplyT stop_reply(const Engine& engine, const AgentIdentity& identity,
                           const CaptureReport& report, std::uint64_t halves_count) {
    fbs::StopReplyT reply;
    reply.node = engine.options().node;
    reply.host = identity.host;
    reply.path = report.path;
    reply.bytes = report.bytes;
    reply.records = report.records;
    reply.lost = report.lost;
    reply.complete = report.complete;
    reply.error = report.error;
    reply.calibration = calibration_table(report.calibration);
    reply.start_ticks = report.start_ticks;
    reply.stop_ticks = report.stop_ticks;
    reply.record_cost_ns = report.record_cost_ns;
    reply.perturbation = perturbation_table(report.perturbation);
    for (const ProcessReport& process : report.processes)
        reply.processes.push_back(process_result(process));
    reply.halves_count = halves_count;
    reply.history_ns = report.history_ns;
    reply.window_note = report.window_note;
    reply.left_out = report.left_out;
    return reply;
}

fbs::ArmReplyT arm_reply(const Engine& engine, const AgentIdentity& identity,
                         const ArmReport& report) {
    fbs::ArmReplyT reply;
    reply.node = engine.options().node;
    reply.host = identity.host;
    reply.changed = report.changed;
    reply.processes = report.attach.processes;
    reply.attached = report.attach.attached;
    reply.slowest_attach_ns = report.attach.slowest_attach_ns;
    reply.window = window_table(report.window);
    return reply;
}

fbs::DisarmReplyT disarm_reply(const Engine& engine, const AgentIdentity& identity,
                               const DisarmReport& report) {
    fbs::DisarmReplyT reply;
    reply.node = engine.options().node;
    reply.host = identity.host;
    reply.window = window_table(report.window);
    reply.left_pieces = static_cast<std::uint32_t>(report.left_pieces);
    return reply;
}

namespace {

/// Told once for all halves, as a reader allows it (`messages`): one that is longer would be refused.
flatbuffers::Offset<flatbuffers::String> name_in(flatbuffers::FlatBufferBuilder& builder,
                                                 const std::string& name) {
    constexpr std::size_t kMostShared = 200;
    return name.size() <= kMostShared ? builder.CreateSharedString(name)
                                      : builder.CreateString(name);
}

}  // namespace

MessageBytes pack_halves(std::uint64_t id, std::span<const Half> halves, std::uint64_t first,
                         std::uint32_t most) {
    flatbuffers::FlatBufferBuilder builder(1 << 16);
    const std::uint64_t total = halves.size();
    const std::uint64_t from = std::min(first, total);
    const std::uint64_t count = std::min<std::uint64_t>({most, kHalvesInPage, total - from});
    std::vector<flatbuffers::Offset<fbs::Half>> page;
    page.reserve(count);
    for (const Half& half : halves.subspan(from, count)) {
        const auto self = name_in(builder, half.self);
        const auto peer = name_in(builder, half.peer);
        page.push_back(fbs::CreateHalf(
            builder, half.process, half.lane.index, half.lane.generation, half.position,
            half.server, half.id.span.value, half.id.trace.hi, half.id.trace.lo, half.key,
            half.parent_key, half.begin_ticks, half.end_ticks, half.ended,
            static_cast<std::uint8_t>(half.status), self, peer, half.wire_type, half.wire_id));
    }
    const auto reply =
        fbs::CreateHalvesReply(builder, from, total, builder.CreateVector(page)).Union();
    fbs::FinishMessageBuffer(builder, fbs::CreateMessage(builder, schema::kProtocolVersion, id,
                                                         fbs::Content::HalvesReply, reply));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

ArmRequest arm_request(const fbs::ArmRequestT& request) {
    ArmRequest result;
    result.keep = {request.keep_ms * schema::kNsPerMillisecond};
    result.max_bytes = request.max_bytes;
    result.pids.assign(request.pids.begin(), request.pids.end());
    result.source_mask = request.source_mask;
    result.options = request.options;
    result.attach_timeout = attach_timeout(request.attach_timeout_ms);
    return result;
}

CaptureRequest capture_request(const fbs::PrepareRequestT& request) {
    CaptureRequest result;
    result.id = request.capture_id;
    result.selection.pids.assign(request.pids.begin(), request.pids.end());
    result.selection.ranks.assign(request.ranks.begin(), request.ranks.end());
    result.selection.executables = request.executables;
    result.selection.limit = request.limit;
    result.source_mask = request.source_mask;
    result.options = request.options;
    result.max_bytes = request.max_bytes;
    result.compress = request.compress;
    result.name = request.name;
    result.asker = request.asker;
    result.attach_timeout = attach_timeout(request.attach_timeout_ms);
    result.history = {request.history_ms * schema::kNsPerMillisecond};
    result.iterations = {request.iterations, request.start_roundup, request.iterations_of};
    return result;
}

fbs::IterationsReplyT iterations_reply(const IterationProgress& progress) {
    fbs::IterationsReplyT reply;
    reply.done = progress.done;
    reply.under_way = progress.under_way;
    reply.none = progress.none;
    reply.ended = progress.ended;
    reply.least = progress.least;
    reply.slowest_ns = progress.slowest_ns;
    return reply;
}

std::string early_text(std::int64_t early_ns, const std::string& cause) {
    return "record until the trace's end: this node's capture ended " +
           std::to_string(early_ns / schema::kNsPerMillisecond) + " ms before it, for " + cause +
           "; what came later is in no dump; look at the network between the two";
}

Calibration calibration_of(const fbs::StopReplyT& reply) {
    Calibration calibration;
    if (!reply.calibration) return calibration;
    calibration.reference_ticks = reply.calibration->reference_ticks;
    calibration.reference_ns = reply.calibration->reference_ns;
    calibration.ticks_per_second = reply.calibration->ticks_per_second;
    calibration.error_ppb = reply.calibration->error_ppb;
    calibration.source = static_cast<schema::TicksSource>(reply.calibration->ticks_source);
    return calibration;
}

ProcessOutcome outcome_of(const fbs::ProcessResultT& result) {
    ProcessOutcome outcome;
    outcome.index = result.index;
    outcome.pid = result.pid;
    outcome.rank = result.rank;
    outcome.command = result.command;
    outcome.fate = static_cast<Fate>(result.fate);
    outcome.end_ticks = result.end_ticks;
    outcome.verdict = static_cast<Verdict>(result.verdict);
    outcome.reason = result.reason;
    outcome.events = result.events;
    outcome.lost = result.lost;
    outcome.start_delay_ns = result.start_delay_ns;
    outcome.workers = result.workers;
    if (result.iterations) outcome.iterations = iterations_of(*result.iterations);
    outcome.host_pid = result.host_pid;
    outcome.bytes = result.bytes;
    outcome.sources = sources_of(result.sources);
    outcome.executable = result.executable;
    return outcome;
}

Half half_of(const fbs::HalfT& half) {
    Half result;
    result.process = half.process;
    result.lane = {half.lane, half.generation};
    result.position = half.position;
    result.server = half.server;
    result.id = {{half.trace_hi, half.trace_lo}, {half.span}};
    result.key = half.key;
    result.parent_key = half.parent_key;
    result.begin_ticks = half.begin_ticks;
    result.end_ticks = half.end_ticks;
    result.ended = half.ended;
    result.status = static_cast<schema::RpcStatus>(half.status);
    result.self = half.self;
    result.peer = half.peer;
    result.wire_type = half.wire_type;
    result.wire_id = half.wire_id;
    return result;
}

}  // namespace ringside::agent
