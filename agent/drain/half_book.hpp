// The RPC halves of one process: begins and ends find each other by key, on whatever lanes and in whatever order they are drained.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "schema/ids.hpp"
#include "schema/record.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {

struct RawHalf {
    schema::LaneId lane;
    std::uint64_t position = 0;
    bool server = false;
    schema::RequestId id;
    std::uint64_t key = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    bool ended = false;
    schema::RpcStatus status = schema::RpcStatus::kOk;
    schema::NameId self;
    schema::NameId peer;
    std::uint32_t wire_type = 0;
    std::uint64_t wire_id = 0;
};

/// A begin's record, taken apart. @param words  3 cells
RawHalf parse_rpc_begin(const std::uint64_t* words, schema::LaneId lane, std::uint64_t position);

class HalfBook {
public:
    /// Notes a record that was drained; it counts once its block is kept.
    void note_begin(const RawHalf& half) { begins_.push_back(half); }
    void note_end(const std::uint64_t* words);
    /// The blocks since the last settle() were kept, or not: then their halves are not in the dump either.
    void settle(bool kept);

    /// Forgets halves that began before `ticks`, and ends that came before it and found no begin: a window that is armed for days keeps
    /// what it reaches back to.
    void forget_before(std::uint64_t ticks);

    const std::vector<RawHalf>& halves() const { return halves_; }
    void clear();

private:
    struct End {
        std::uint64_t key = 0;
        std::uint64_t ticks = 0;
        schema::RpcStatus status = schema::RpcStatus::kOk;
    };
    static void close(RawHalf& half, const End& end);

    std::vector<RawHalf> begins_;
    std::vector<End> ends_;
    std::vector<RawHalf> halves_;
    std::unordered_map<std::uint64_t, std::size_t> open_;  ///< key -> halves_ without an end
    std::unordered_map<std::uint64_t, End> early_;  ///< ends that were drained before their begin
};

}  // namespace ringside::agent
