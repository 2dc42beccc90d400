// Blocks into events, still in ticks: what each record kind becomes.
#include <algorithm>

#include "viewer_export/load/builder.hpp"

namespace ringside::viewer_export::load {

using model::Context;
using schema::ContextState;
using schema::DecodedRecord;
using schema::RecordHeader;
using schema::RecordKind;

namespace {

/// Ticks in a field that holds nanoseconds later.
std::int64_t as_ticks(std::uint64_t ticks) {
    return static_cast<std::int64_t>(ticks);
}

std::uint32_t low(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
}
std::uint32_t high(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
}

/// When a record was written: a range's end, else its only time.
std::uint64_t written_at(const DecodedRecord& record, RecordKind kind) {
    return schema::record_has_end(kind) ? record.words[2] : record.words[1];
}

Context context_of(const fbs::Context* context) {
    if (context == nullptr) return {};
    const auto state = static_cast<ContextState>(context->state());
    return {state, state == ContextState::kServing ? context->key() : 0};
}

}  // namespace

void JobBuilder::add_block(const fbs::Block& block) {
    const Index process = process_of(block.process());
    const Index lane = lane_of(process, block.lane(), block.generation());
    LaneIndexState& positions = lane_indices_[{process, block.lane()}];
    LaneState& state = lanes_[lane];
    if (block.tid() != 0) job_.lanes[lane].tid = block.tid();
    if (block.thread_name() != nullptr) job_.lanes[lane].thread_name = block.thread_name()->str();
    if (block.last() > state.blocks_end || !state.started) {
        state.open.clear();
        if (block.open() != nullptr) {
            for (const fbs::OpenRange* open : *block.open()) state.open.push_back(*open);
        }
    }
    if (!state.started) {
        state.contexts.set_initial(context_of(block.context()));
    } else if (block.first() > state.blocks_end) {
        // Something is missing before this block: what it says of its first record is all there is.
        state.contexts.switch_to(state.last_ticks, block.first() - 1, context_of(block.context()));
    }
    state.started = true;
    state.blocks_end = std::max(state.blocks_end, block.last());

    const std::uint64_t seen = positions.next_position;
    std::uint64_t position = block.first();
    DecodedRecord record;
    const std::size_t size = block.data() == nullptr ? 0 : block.data()->size();
    schema::BlockDecoder decoder(size == 0 ? nullptr : block.data()->data(), size,
                                 block.base_ticks());
    while (decoder.next(record)) {
        if (record.header().kind == RecordKind::kPad) {
            position += record.cells;
            continue;
        }
        if (position < seen) {
            if (record.header().kind != RecordKind::kNameInline) ++job_.totals.duplicates;
        } else {
            add_record(record, position, lane);
        }
        position += record.cells;
    }
    if (decoder.damaged() || position > block.last()) {
        if (++damaged_blocks_ <= 4) {
            note_damage("a block of process " + std::to_string(block.process()) + ", lane " +
                        std::to_string(block.lane()) + ", in the chunk after byte " +
                        std::to_string(dumps_.back().chunk_offset) + " is malformed at position " +
                        std::to_string(position) + "; its rest is left out");
        }
    }
    positions.next_position = std::max(seen, block.last());
}

void JobBuilder::add_record(const DecodedRecord& record, std::uint64_t position, Index lane) {
    const RecordHeader header = record.header();
    LaneState& state = lanes_[lane];
    if (header.kind == RecordKind::kNameInline) {
        const std::uint64_t room = record.cells * schema::kCellBytes - 24;
        const auto length = std::min<std::uint64_t>(record.words[1], room);
        state.inline_name.assign(reinterpret_cast<const char*>(record.words + 3), length);
        state.has_inline_name = true;
        return;
    }
    ++job_.lanes[lane].records;
    ++job_.totals.records;
    const schema::SourceId source = schema::record_source(header.flags);
    const std::uint8_t detail = schema::record_detail(header.flags);
    const std::uint32_t usual = schema::record_cells(header.kind);
    if (usual == 0 || record.cells < usual) {
        ++job_.totals.unknown_records;
        state.has_inline_name = false;
        return;
    }
    const Index process = job_.lanes[lane].process;
    const std::uint64_t* words = record.words;
    switch (header.kind) {
        case RecordKind::kRange:
        case RecordKind::kOperator:
            add_range(record, position, lane);
            break;
        case RecordKind::kAsyncBegin:
            processes_[process].asyncs.push_back({as_ticks(words[1]), 0, position, words[2],
                                                  words[3], record_name(header, lane), lane, kNone,
                                                  kNone, source, detail, model::End::kOpen,
                                                  attributes_of(process, header.name.value)});
            break;
        case RecordKind::kAsyncEnd:
            processes_[process].async_ends.push_back({words[1], words[2], words[3], lane});
            break;
        case RecordKind::kRpcBegin:
            add_rpc_begin(record, position, lane);
            break;
        case RecordKind::kRpcEnd:
            processes_[process].rpc_ends.push_back({words[1], words[2], words[3], lane});
            break;
        case RecordKind::kContext:
            add_context(record, position, lane);
            break;
        case RecordKind::kMark:
        case RecordKind::kIteration:
        case RecordKind::kCounter:
            job_.values.push_back({as_ticks(words[1]), position, words[2], words[3],
                                   record_name(header, lane), lane, kNone, header.kind, source,
                                   detail, attributes_of(process, header.name.value)});
            break;
        case RecordKind::kGpuKernel:
        case RecordKind::kGpuCopy:
        case RecordKind::kGpuMemset:
        case RecordKind::kGpuApi:
        case RecordKind::kGpuSync:
        case RecordKind::kGpuOverhead:
        case RecordKind::kGpuEvent:
        case RecordKind::kGpuDevice:
            add_gpu(record, position, lane);
            break;
        case RecordKind::kGpuLink:  // what a call was made for is known without it (decision 17)
        default:
            break;
    }
    state.has_inline_name = false;
    state.last_ticks = std::max(state.last_ticks, written_at(record, header.kind));
}

void JobBuilder::add_range(const DecodedRecord& record, std::uint64_t position, Index lane) {
    const RecordHeader header = record.header();
    const bool is_operator = header.kind == RecordKind::kOperator;
    const std::uint64_t* words = record.words;
    const Index process = job_.lanes[lane].process;
    const std::uint32_t shapes = is_operator ? low(words[7]) : 0;
    job_.lanes[lane].ranges.push_back(
        {as_ticks(words[1]), as_ticks(words[2]), position, static_cast<std::int64_t>(words[3]),
         record_name(header, lane), kNone, is_operator ? low(words[4]) : 0,
         is_operator ? high(words[4]) : 0, schema::record_source(header.flags),
         schema::record_detail(header.flags), model::End::kEnded, is_operator,
         attributes_of(process, header.name.value),
         shapes == 0 ? kNone : name_of(process, shapes)});
}

void JobBuilder::add_rpc_begin(const DecodedRecord& record, std::uint64_t position, Index lane) {
    const std::uint64_t* words = record.words;
    const RecordHeader header = record.header();
    const Index process = job_.lanes[lane].process;
    const auto name = [&](std::uint32_t id) { return id == 0 ? kNone : name_of(process, id); };
    model::Half half{};
    half.begin_ns = as_ticks(words[1]);
    half.begin_ticks = words[1];
    half.position = position;
    half.key = words[2];
    half.request_bytes = words[3];
    half.trace = {words[4], words[5]};
    half.span = words[6];
    half.parent_key = words[7];
    half.peer = name(low(words[8]));
    half.self = name(high(words[8]));
    half.module = name(low(words[9]));
    half.wire_type = high(words[9]);
    half.wire_id = words[10];
    half.mode = static_cast<schema::RpcMode>(words[11] & 0xff);
    half.side = (words[11] >> 8 & 0xff) == 0 ? schema::RpcSide::kClient : schema::RpcSide::kServer;
    half.self_id = static_cast<std::int16_t>(words[11] >> 16);
    half.peer_id = static_cast<std::int16_t>(words[11] >> 32);
    half.name = header.name == schema::kNoName ? kNone : record_name(header, lane);
    half.process = process;
    half.lane = lane;
    half.end_lane = kNone;
    half.call = kNone;
    half.source = schema::record_source(header.flags);
    half.end = model::End::kOpen;
    processes_[process].halves.push_back(half);
}

void JobBuilder::add_context(const DecodedRecord& record, std::uint64_t position, Index lane) {
    LaneState& state = lanes_[lane];
    const std::uint8_t detail = schema::record_detail(record.header().flags);
    const std::uint64_t ticks = record.words[1];
    // Records were lost between the one before and this one, switches perhaps among them.
    if ((detail & schema::kContextAgain) != 0) {
        state.contexts.switch_to(state.last_ticks, position == 0 ? 0 : position - 1,
                                 {ContextState::kUnknown, 0});
    }
    const bool on = (detail & schema::kContextOn) != 0;
    state.contexts.switch_to(ticks, position,
                             on ? Context{ContextState::kServing, record.words[2]} : Context{});
}

Index JobBuilder::record_name(const RecordHeader& header, Index lane) {
    const LaneState& state = lanes_[lane];
    if (header.name == schema::kInlineName) {
        return job_.names.add(state.has_inline_name ? std::string_view(state.inline_name)
                                                    : std::string_view("(name lost)"));
    }
    return name_of(job_.lanes[lane].process, header.name.value);
}

Index JobBuilder::name_of(Index process, std::uint32_t id) {
    const std::vector<Index>& table = processes_[process].names;
    if (id < table.size() && table[id] != kNone) [[likely]]
        return table[id];
    if (id == 0) return job_.names.add(model::kUnnamed);
    return job_.names.add("(name " + std::to_string(id) + ")");
}

}  // namespace ringside::viewer_export::load
