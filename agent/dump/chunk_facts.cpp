#include "agent/dump/chunk_facts.hpp"

#include <algorithm>
#include <cstring>

#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

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

}  // namespace

DumpHeader facts_of(const fbs::FileHeader& header) {
    const fbs::Calibration& clock = *header.calibration();
    return {text(header.job()),
            header.capture_id(),
            {clock.reference_ticks(), clock.reference_ns(), clock.ticks_per_second(),
             clock.error_ppb(), static_cast<schema::TicksSource>(clock.ticks_source())},
            header.start_ticks(),
            header.options(),
            header.min_reader() > schema::kPlainDumpVersion};
}

ProcessFacts facts_of(const fbs::Process& process) {
    ProcessFacts facts;
    facts.index = process.index();
    facts.host_pid = process.host_pid();
    facts.worker_name = text(process.worker_name());
    facts.segment = segment_of(process);
    facts.losses_before = numbers(process.losses_before());
    facts.start_delay_ns = process.start_delay_ns();
    if (process.end() != nullptr) facts.end = end_of(*process.end());
    facts.end_reason = text(process.end_reason());
    return facts;
}

NamesBatch facts_of(const fbs::Names& names) {
    NamesBatch batch;
    batch.process = names.process();
    if (names.names() != nullptr) {
        for (const fbs::Name* name : *names.names())
            batch.names.push_back(
                {name->id(), text(name->text()), name->flags(), name->attribute()});
    }
    if (names.attributes() != nullptr) {
        for (const fbs::Attribute* attribute : *names.attributes())
            batch.attributes.push_back({attribute->id(), attribute->domain(), attribute->category(),
                                        attribute->colour(), attribute->payload()});
    }
    return batch;
}

Block facts_of(const fbs::Block& stored) {
    Block block;
    block.process = stored.process();
    block.lane = {stored.lane(), stored.generation()};
    block.thread.tid = stored.tid();
    if (stored.thread_name() != nullptr) {
        auto& name = block.thread.thread_name;
        std::memcpy(name.data(), stored.thread_name()->data(),
                    std::min<std::size_t>(stored.thread_name()->size(), name.size() - 1));
    }
    block.first = stored.first();
    block.last = stored.last();
    block.base_ticks = stored.base_ticks();
    block.records = stored.records();
    block.context = context_of(stored.context());
    block.end_context = context_of(stored.end_context());
    if (const fbs::LaneTally* tally = stored.tally()) {
        block.tally = {tally->records(), tally->dropped(),          tally->outside(),
                       tally->lost(),    tally->first_lost_ticks(), tally->last_lost_ticks()};
    }
    if (stored.open() != nullptr) {
        for (const fbs::OpenRange* open : *stored.open())
            block.open.push_back({open->begin(), open->key(), open->argument(), open->what()});
    }
    if (stored.data() != nullptr) block.data.assign(stored.data()->begin(), stored.data()->end());
    return block;
}

}  // namespace ringside::agent
