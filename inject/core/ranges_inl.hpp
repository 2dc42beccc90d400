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
    if (name != schema::kInlineName && begin_plain(range)) [[likely]]
        return;
    const OpenRange copy = range;  // its address leaves, the original's must not
    begin_with_care(copy);
}

inline void ThreadLane::begin_range_at(const OpenRange& range, Ticks begin) {
    if (depth_ < fast_depth_ && range.name != schema::kInlineName) [[likely]]
        return push_open(range, begin);
    begin_with_care(range, begin);
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

/// @param write  (cells, the open entry, its end) -> nothing; `kCells` of them in one piece
template <std::uint32_t kCells, class Write>
[[gnu::always_inline]] inline bool ThreadLane::end_innermost(std::uint64_t key,
                                                             const Write& write) {
    const std::uint32_t entry = depth_ - 1;
    if (entry >= fast_depth_) [[unlikely]]  // so too where there is none
        return false;
    const std::uint64_t end = __rdtsc();
    const std::uint64_t position = ring_.position();
    schema::Cell* const out = ring_.next_cell();
    // Before the end of what is fast no name is inline, and nothing waits to be said.
    if (position + (kCells - 1) >= fast_end_ || (kCells > 1 && !ring_.in_one_piece(kCells)))
        [[unlikely]]
        return false;
    schema::LaneHeader* const lane = header();
    const schema::OpenEntry& open = lane->open[entry];
    if (open.key.load(std::memory_order_relaxed) != key) [[unlikely]]
        return false;
    write(out, open, end);
    ring_.commit_at(lane, position, kCells);
    depth_ = entry;
    // SYNC(open): the range's record is committed before its entry goes, so no kill loses both; pairs as in push_open().
    lane->open_depth.store(entry, std::memory_order_release);
    return true;
}

/// A word of a record. Word by word, so that no register must be saved for it.
[[gnu::always_inline]] inline void put_word(schema::Cell* out, std::size_t offset,
                                            std::uint64_t word) {
    std::atomic_ref(out[offset / sizeof *out].words[offset % sizeof *out / 8])
        .store(word, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline bool ThreadLane::end_plain(std::uint64_t key) {
    using schema::RangeRecord;
    return end_innermost<1>(
        key, [](schema::Cell* out, const schema::OpenEntry& open, std::uint64_t end) {
            put_word(out, offsetof(RangeRecord, header), open.what.load(std::memory_order_relaxed));
            put_word(out, offsetof(RangeRecord, begin), open.begin.load(std::memory_order_relaxed));
            put_word(out, offsetof(RangeRecord, end), end);
            put_word(out, offsetof(RangeRecord, argument),
                     open.argument.load(std::memory_order_relaxed));
        });
}

inline bool ThreadLane::end_range(std::uint64_t key) {
    if (end_plain(key)) [[likely]]
        return true;
    return end_with_care(key, ticks());
}

/// What an open range becomes as an operator.
inline std::uint64_t operator_header(std::uint64_t what) {
    schema::RecordHeader header = schema::RecordHeader::unpack(what);
    header.kind = schema::RecordKind::kOperator;
    header.cells = sizeof(schema::OperatorRecord) / schema::kCellBytes;
    return header.pack();
}

[[gnu::always_inline]] inline bool ThreadLane::end_operator_plain(std::uint64_t key,
                                                                  const OperatorEnd& known) {
    using schema::OperatorRecord;
    return end_innermost<sizeof(OperatorRecord) / schema::kCellBytes>(
        key, [&known](schema::Cell* out, const schema::OpenEntry& open, std::uint64_t end) {
            put_word(out, offsetof(OperatorRecord, header),
                     operator_header(open.what.load(std::memory_order_relaxed)));
            put_word(out, offsetof(OperatorRecord, begin),
                     open.begin.load(std::memory_order_relaxed));
            put_word(out, offsetof(OperatorRecord, end), end);
            put_word(out, offsetof(OperatorRecord, sequence),
                     static_cast<std::uint64_t>(known.sequence));
            put_word(out, offsetof(OperatorRecord, threads),
                     OperatorRecord::pack_threads(known.thread, known.forward_thread));
            put_word(out, offsetof(OperatorRecord, scope), known.scope);
            put_word(out, offsetof(OperatorRecord, correlation), 0);
            put_word(out, offsetof(OperatorRecord, shapes),
                     open.argument.load(std::memory_order_relaxed));
        });
}

}  // namespace ringside::inject
