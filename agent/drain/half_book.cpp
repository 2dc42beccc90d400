#include "agent/drain/half_book.hpp"

#include <cstring>

namespace ringside::agent {

RawHalf parse_rpc_begin(const std::uint64_t* words, schema::LaneId lane, std::uint64_t position) {
    schema::RpcBeginRecord record;
    std::memcpy(&record, words, sizeof record);
    RawHalf half;
    half.lane = lane;
    half.position = position;
    half.server = record.side == static_cast<std::uint8_t>(schema::RpcSide::kServer);
    half.id = {{record.trace_hi, record.trace_lo}, {record.span}};
    half.key = record.key;
    half.parent_key = record.parent_key;
    half.begin_ticks = record.ticks;
    half.self = {record.self};
    half.peer = {record.peer};
    half.wire_type = record.wire_type;
    half.wire_id = record.wire_id;
    return half;
}

void HalfBook::note_end(const std::uint64_t* words) {
    ends_.push_back({words[2], words[1], static_cast<schema::RpcStatus>(words[3] >> 56)});
}

void HalfBook::close(RawHalf& half, const End& end) {
    half.ended = true;
    half.end_ticks = end.ticks;
    half.status = end.status;
}

void HalfBook::settle(bool kept) {
    if (kept) {
        for (const RawHalf& begin : begins_) {
            halves_.push_back(begin);
            if (const auto early = early_.find(begin.key); early != early_.end()) {
                close(halves_.back(), early->second);
                early_.erase(early);
            } else {
                open_[begin.key] = halves_.size() - 1;
            }
        }
        for (const End& end : ends_) {
            if (const auto at = open_.find(end.key); at != open_.end()) {
                close(halves_[at->second], end);
                open_.erase(at);
            } else {
                early_[end.key] = end;
            }
        }
    }
    begins_.clear();
    ends_.clear();
}

void HalfBook::forget_before(std::uint64_t ticks) {
    std::erase_if(halves_, [&](const RawHalf& half) { return half.begin_ticks < ticks; });
    std::erase_if(early_, [&](const auto& early) { return early.second.ticks < ticks; });
    open_.clear();
    for (std::size_t i = 0; i < halves_.size(); ++i) {
        if (!halves_[i].ended) open_[halves_[i].key] = i;
    }
}

void HalfBook::clear() {
    begins_.clear();
    ends_.clear();
    halves_.clear();
    open_.clear();
    early_.clear();
}

}  // namespace ringside::agent
