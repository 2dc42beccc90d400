// The ranges of a thread as its hooks begin and end them: pushed onto the lane's open stack, written as one record when they end. Part of emit_inl.hpp.
#pragma once

#include "inject/core/emit_inl.hpp"

namespace ringside::inject {

[[gnu::always_inline]] inline void ThreadLane::push_open(const OpenRange& range, Ticks begin) {
    // Copies, here and in end_plain(): behind an atomic access the compiler would load them again.
    schema::LaneHeader* const lane = header();
    const std::uint32_t depth = depth_;
    schema::OpenEntry& open = lane->open[depth];
    // SYNC(open): who sees one of these words sees that its entry had gone before; pair with the agent's acquires.
    open.key.store(range.key, std::memory_order_release);
    open.argument.store(range.argument, std::memory_order_release);
    open.what.store(
        schema::RecordHeader{schema::RecordKind::kRange, 1,
                             schema::record_flags(range.source, range.detail), range.name}
            .pack(),
        std::memory_order_release);
    open.begin.store(begin.value, std::memory_order_release);
    depth_ = depth + 1;
    // SYNC(open): the entry is whole; pairs with the acquire of the agent that copies the stack.
    lane->open_depth.store(depth + 1, std::memory_order_release);
}

[[gnu::always_inline]] inline bool ThreadLane::begin_plain(const OpenRange& range) {
    if (depth_ >= fast_depth_) [[unlikely]]
        return false;
    push_open(range, {__rdtsc()});
    return true;
}

inline void ThreadLane::begin_range(SourceId source, std::uint8_t detail, NameId name,
                                    std::uint64_t key, std::uint64_t argument) {
    const OpenRange range{source, detail, name, key, argument};
    if (name == schema::kInlineName || !begin_plain(range)) [[unlikely]]
        begin_with_care(range);
}

/// @return the entry, or kOpenStackDepth
inline std::uint32_t ThreadLane::find_open(std::uint64_t key) const {
    for (std::uint32_t i = depth_; i-- > 0;) {
        if (open_entry(i).key.load(std::memory_order_relaxed) == key) return i;
    }
    return schema::kOpenStackDepth;
}

inline void ThreadLane::pop(std::uint32_t entry) {
    if (entry + 1 != depth_) [[unlikely]]
        return remove_from_middle(entry);
    depth_ = entry;
    // SYNC(open): the range's record is committed before its entry goes, so no kill loses both; pairs as in push_open().
    header()->open_depth.store(depth_, std::memory_order_release);
}

inline const ThreadLane::InlineText* ThreadLane::inline_text(std::uint64_t header,
                                                             std::uint32_t entry) const {
    return schema::RecordHeader::unpack(header).name == schema::kInlineName ? &texts_->open[entry]
                                                                            : nullptr;
}

[[gnu::always_inline]] inline bool ThreadLane::end_plain(std::uint64_t key) {
    const std::uint32_t entry = depth_ - 1;
    if (entry >= fast_depth_) [[unlikely]]  // so too where there is none
        return false;
    const std::uint64_t end = __rdtsc();
    const std::uint64_t position = ring_.position();
    schema::Cell* const out = ring_.next_cell();
    // Before the end of what is fast no name is inline, and nothing waits to be said.
    if (position >= fast_end_) [[unlikely]]
        return false;
    schema::LaneHeader* const lane = header();
    const schema::OpenEntry& open = lane->open[entry];
    if (open.key.load(std::memory_order_relaxed) != key) [[unlikely]]
        return false;
    // A RangeRecord, word by word, so that no register must be saved for it.
    const auto put_word = [out](std::uint32_t at, std::uint64_t word) {
        std::atomic_ref(out->words[at]).store(word, std::memory_order_relaxed);
    };
    put_word(offsetof(schema::RangeRecord, header) / 8, open.what.load(std::memory_order_relaxed));
    put_word(offsetof(schema::RangeRecord, begin) / 8, open.begin.load(std::memory_order_relaxed));
    put_word(offsetof(schema::RangeRecord, end) / 8, end);
    put_word(offsetof(schema::RangeRecord, argument) / 8,
             open.argument.load(std::memory_order_relaxed));
    ring_.commit_at(lane, position, 1);
    depth_ = entry;
    // SYNC(open): the range's record is committed before its entry goes, so no kill loses both; pairs as in push_open().
    lane->open_depth.store(entry, std::memory_order_release);
    return true;
}

inline bool ThreadLane::end_range(std::uint64_t key) {
    if (end_plain(key)) [[likely]]
        return true;
    return end_with_care(key, ticks());
}

inline bool ThreadLane::end_operator(std::uint64_t key, std::int64_t sequence, std::uint32_t thread,
                                     std::uint32_t forward_thread, std::uint64_t scope) {
    const Ticks end = ticks();
    const std::uint32_t entry = find_open(key);
    if (entry == schema::kOpenStackDepth) [[unlikely]]
        return false;
    const schema::OpenEntry& open = open_entry(entry);
    const std::uint64_t what = open.what.load(std::memory_order_relaxed);
    schema::RecordHeader header = schema::RecordHeader::unpack(what);
    header.kind = schema::RecordKind::kOperator;
    header.cells = 2;
    put(schema::OperatorRecord{header.pack(), open.begin.load(std::memory_order_relaxed), end.value,
                               sequence,
                               schema::OperatorRecord::pack_threads(thread, forward_thread), scope,
                               0, open.argument.load(std::memory_order_relaxed)},
        end, inline_text(what, entry));
    pop(entry);
    return true;
}

}  // namespace ringside::inject
