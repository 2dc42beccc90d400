// What the tests of an armed engine share: numbered ranges, bounds, a trace with history.
#pragma once

#include <vector>

#include "agent/window/piece_file.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

namespace ringside::agent::testing {

inline constexpr std::int64_t kSecond = 1'000'000'000;

/// A range of no length whose argument is its number.
inline bool put(FakeLane& lane, std::uint32_t name, std::uint64_t number) {
    const std::uint64_t now = ticks_now();
    const schema::RangeRecord record{
        schema::RecordHeader{
            schema::RecordKind::kRange, 1, schema::record_flags(schema::SourceId::kApi, 0), {name}}
            .pack(),
        now, now, number};
    return lane.put(&record, 1, now);
}

inline ArmRequest bounds(std::int64_t keep_ns, std::uint64_t max_bytes = 64 << 20) {
    ArmRequest request;
    request.keep = {keep_ns};
    request.max_bytes = max_bytes;
    return request;
}

inline CaptureRequest wanted(std::int64_t history_ns, std::uint64_t id = 0xc0ffee) {
    CaptureRequest request = Node::request(id);
    request.history = {history_ns};
    return request;
}

inline CaptureReport trace(Node& node, const CaptureRequest& request) {
    const auto prepared = node.engine->prepare(request);
    REQUIRE_MESSAGE(prepared, (prepared ? "" : prepared.error().message));
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
    return node.stop(request.id);
}

inline std::vector<std::uint64_t> numbers(const DumpFile& dump) {
    std::vector<std::uint64_t> found;
    for (const DumpRecord& record : dump.records) {
        if (record.header.kind == schema::RecordKind::kRange) found.push_back(record.words[3]);
    }
    return found;
}

inline std::size_t pieces_in(const std::string& job) {
    std::size_t count = 0;
    for (std::uint64_t sequence = 1; sequence < 1000; ++sequence)
        count += exists(job + "/" + piece_name(sequence)) ? 1 : 0;
    return count;
}

}  // namespace ringside::agent::testing
