// The halves of RPCs and messages, as a thread's lane records them.
#include "inject/core/emit.hpp"

namespace ringside::inject {

namespace {

schema::RpcBeginRecord record_of(const RpcBegin& begin, Ticks ticks) {
    NameId names[4] = {begin.function, begin.module, begin.self, begin.peer};
    // Only one inline text is kept, and only the function's can be written before a record: with several nobody knows whose it is.
    std::uint32_t inline_names = 0;
    for (const NameId name : names) inline_names += name == schema::kInlineName ? 1 : 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
        if (names[i] == schema::kInlineName && (i != 0 || inline_names > 1))
            names[i] = schema::kNoName;
    }
    schema::RpcBeginRecord record{};
    record.header = schema::RecordHeader{schema::RecordKind::kRpcBegin, 3,
                                         schema::record_flags(begin.source, 0), names[0]}
                        .pack();
    record.ticks = ticks.value;
    record.key = begin.key;
    record.bytes = begin.bytes;
    record.trace_hi = begin.id.trace.hi;
    record.trace_lo = begin.id.trace.lo;
    record.span = begin.id.span.value;
    record.parent_key = begin.parent_key;
    record.peer = names[3].value;
    record.self = names[2].value;
    record.module = names[1].value;
    record.wire_type = begin.wire_type;
    record.wire_id = begin.wire_id;
    record.mode = static_cast<std::uint8_t>(begin.mode);
    record.side = static_cast<std::uint8_t>(begin.side);
    record.self_id = begin.self_id;
    record.peer_id = begin.peer_id;
    return record;
}

schema::RpcEndRecord record_of(SourceId source, std::uint64_t key, schema::RpcStatus status,
                               std::uint64_t bytes, Ticks ticks) {
    return {
        schema::RecordHeader{schema::RecordKind::kRpcEnd, 1, schema::record_flags(source, 0), {}}
            .pack(),
        ticks.value, key, schema::RpcEndRecord::pack(status, bytes)};
}

}  // namespace

void ThreadLane::rpc_begin(const RpcBegin& begin) {
    const Ticks ticks = begin.ticks.value != 0 ? begin.ticks : this->ticks();
    put(record_of(begin, ticks), ticks);
}

void ThreadLane::rpc_end(SourceId source, std::uint64_t key, schema::RpcStatus status,
                         std::uint64_t bytes, Ticks at) {
    const Ticks ticks = at.value != 0 ? at : this->ticks();
    put(record_of(source, key, status, bytes, ticks), ticks);
}

void ThreadLane::rpc_whole(const RpcBegin& begin, schema::RpcStatus status, Ticks end) {
    struct Whole {
        schema::RpcBeginRecord begin;
        schema::RpcEndRecord end;
    };
    const Ticks ticks = begin.ticks.value != 0 ? begin.ticks : this->ticks();
    const Ticks ended = end.value != 0 ? end : this->ticks();
    put(Whole{record_of(begin, ticks), record_of(begin.source, begin.key, status, 0, ended)},
        ticks);
}

}  // namespace ringside::inject
