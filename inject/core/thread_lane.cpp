// ThreadLane beyond its hot path: records that are not ranges, and everything that is rare.
#include <errno.h>

#include "inject/core/budget.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/intern.hpp"

namespace ringside::inject {

using schema::RecordHeader;
using schema::RecordKind;

void ThreadLane::open(schema::LaneHeader* header, const Room& room, InlineTexts* texts) {
    ring_ = schema::RingWriter(header, room);
    room_ = room;
    texts_ = texts;
    ticks_source_ = g_process.ticks_source;
    fast_depth_ = ticks_source_ == schema::TicksSource::kTsc ? schema::kOpenStackDepth : 0;
    depth_ = 0;
    growth_pause_ = 0;
    // A thread that ended while it served left its context on: take it back before this thread's first record.
    attention_ = header->context_state.load(std::memory_order_relaxed) ==
                         static_cast<std::uint32_t>(schema::ContextState::kNone)
                     ? 0
                     : kContextDirty;
    update_fast_end();
    pending_valid_ = false;
    context_ = {};
    header->open_depth.store(0, std::memory_order_relaxed);
    publish_context(schema::ContextState::kNone);
}

void ThreadLane::update_fast_end() {
    fast_end_ = attention_ != 0 ? 0 : ring_.free_end();
}

/// Room for a record, in the lane's next ring where this one is full. Once a round of the ring, so that the hot path need not look at the tail.
schema::Cell* ThreadLane::make_room(std::uint32_t cells) {
    schema::Cell* out = ring_.reserve(cells);
    if (out == nullptr && grow()) out = ring_.reserve(cells);
    update_fast_end();
    return out;
}

/// @return false: it is as large as it may get, or memory is short; records are dropped until the agent has come
bool ThreadLane::grow() {
    const std::uint32_t next = header()->ring.load(std::memory_order_relaxed) + 1;
    if (next >= room_.ring_count) return false;
    if (growth_pause_ != 0) {
        --growth_pause_;
        return false;
    }
    const std::uint64_t cells = schema::ring_cells(room_.first_cells, next);
    std::atomic<std::uint64_t>& real = header()->rings[next].real_cells;
    // Real since it was last used: a file system that takes no memory back.
    if (real.load(std::memory_order_relaxed) == 0) {
        const int saved_errno = errno;
        const bool made = populate_within_limits(
            room_.cells + schema::ring_offset(room_.first_cells, next), cells * schema::kCellBytes);
        errno = saved_errno;
        if (!made) {
            growth_pause_ = kDropsBetweenTries;
            return false;
        }
        real.store(cells, std::memory_order_relaxed);
    }
    ring_.grow(room_);
    return true;
}

void ThreadLane::start_generation() {
    depth_ = 0;
    pending_valid_ = false;
    // SYNC(open): as in push_open().
    header()->open_depth.store(0, std::memory_order_release);
    // A context that the last capture left on would be taken for this one's: take it back before the first record.
    if (context_.key != 0) attention_ |= kContextDirty;
    update_fast_end();
    context_ = {};
    publish_context(schema::ContextState::kNone);
}

// --- names ---

NameId ThreadLane::intern(const char* text, std::size_t length, schema::AttributeId attribute) {
    if (length > schema::kMaxNameLength) {
        length = schema::kMaxNameLength;
        count_loss(schema::Loss::kNamesFull);
    }
    const NameId id = intern_name(text, static_cast<std::uint32_t>(length), attribute);
    if (id != schema::kNoName) return id;
    count_loss(schema::Loss::kNamesFull);
    texts_->pending.length = static_cast<std::uint32_t>(
        length < schema::kMaxInlineNameBytes ? length : schema::kMaxInlineNameBytes);
    std::memcpy(texts_->pending.bytes, text, texts_->pending.length);
    pending_valid_ = true;
    attention_ |= kInlineSeen;
    update_fast_end();
    return schema::kInlineName;
}

NameId ThreadLane::intern_and_keep(const char* text, schema::AttributeId attribute) {
    const std::size_t length = std::strlen(text);
    const NameId id = intern(text, length, attribute);
    if (id != schema::kInlineName) g_name_cache.keep(text, length, attribute, id);
    return id;
}

NameId ThreadLane::intern_stranger(const char* text) {
    const NameId id = intern_cached(text);
    if (id != schema::kInlineName) g_address_cache.keep(text, id);
    return id;
}

// --- the open stack ---

/// A range whose name is inline, on a clock that is not the TSC, or with no place left for it.
/// @param begin  0: now
void ThreadLane::begin_with_care(const OpenRange& range, Ticks begin) {
    if (depth_ == schema::kOpenStackDepth) return begin_too_deep();
    if (range.name == schema::kInlineName) keep_inline_text(depth_);
    push_open(range, begin.value != 0 ? begin : ticks());
}

bool ThreadLane::end_with_care(std::uint64_t key, Ticks end) {
    const std::uint32_t entry = find_open(key);
    if (entry == schema::kOpenStackDepth) return false;
    const schema::OpenEntry& open = open_entry(entry);
    const std::uint64_t what = open.what.load(std::memory_order_relaxed);
    put(schema::RangeRecord{what, open.begin.load(std::memory_order_relaxed), end.value,
                            open.argument.load(std::memory_order_relaxed)},
        end, inline_text(what, entry));
    pop(entry);
    return true;
}

bool ThreadLane::end_operator(std::uint64_t key, const OperatorEnd& known) {
    const Ticks end = ticks();
    const std::uint32_t entry = find_open(key);
    if (entry == schema::kOpenStackDepth) return false;
    const schema::OpenEntry& open = open_entry(entry);
    const std::uint64_t what = open.what.load(std::memory_order_relaxed);
    put(schema::OperatorRecord{operator_header(what), open.begin.load(std::memory_order_relaxed),
                               end.value, known.sequence,
                               schema::OperatorRecord::pack_threads(known.thread,
                                                                    known.forward_thread),
                               known.scope, 0, open.argument.load(std::memory_order_relaxed)},
        end, inline_text(what, entry));
    pop(entry);
    return true;
}

void ThreadLane::begin_too_deep() {
    header()->too_deep.fetch_add(1, std::memory_order_relaxed);
    count_loss(schema::Loss::kStackTooDeep);
}

void ThreadLane::keep_inline_text(std::uint32_t entry) {
    if (pending_valid_) {
        texts_->open[entry] = texts_->pending;
    } else {
        texts_->open[entry].length = 0;
    }
    pending_valid_ = false;
}

void ThreadLane::remove_from_middle(std::uint32_t entry) {
    for (std::uint32_t i = entry; i + 1 < depth_; ++i) {
        schema::OpenEntry& to = open_entry(i);
        const schema::OpenEntry& from = open_entry(i + 1);
        const std::uint64_t what = from.what.load(std::memory_order_relaxed);
        to.begin.store(from.begin.load(std::memory_order_relaxed), std::memory_order_relaxed);
        to.key.store(from.key.load(std::memory_order_relaxed), std::memory_order_relaxed);
        to.argument.store(from.argument.load(std::memory_order_relaxed), std::memory_order_relaxed);
        to.what.store(what, std::memory_order_relaxed);
        if (RecordHeader::unpack(what).name == schema::kInlineName)
            texts_->open[i] = texts_->open[i + 1];
    }
    --depth_;
    // SYNC(open): as in push_open().
    header()->open_depth.store(depth_, std::memory_order_release);
}

bool ThreadLane::end_range_late(std::uint64_t key, Ticks end) {
    const std::uint32_t entry = find_open(key);
    if (entry == schema::kOpenStackDepth ||
        open_entry(entry).begin.load(std::memory_order_relaxed) >= end.value)
        return false;
    return end_with_care(key, end);
}

// --- records ---

/// Writes what put() could not: the context first where it must be said again, the name's bytes first where it has no id.
/// @param text  the bytes of an inline name; null: those last interned
bool ThreadLane::put_slow(const void* record, std::uint32_t cells, Ticks ticks,
                          const InlineText* text) {
    if ((attention_ & kContextDirty) != 0 && !record_context(schema::kContextAgain)) {
        drop(ticks);
        return false;
    }
    schema::Cell local[schema::kMaxRecordCells];
    std::memcpy(local, record, cells * schema::kCellBytes);
    RecordHeader header = RecordHeader::unpack(local[0].words[0]);
    std::uint32_t name_cells = 0;
    if (header.name == schema::kInlineName) {
        if (text == nullptr && pending_valid_) text = &texts_->pending;
        pending_valid_ = false;
        if (text == nullptr || text->length == 0) {
            header.name = schema::kNoName;
            local[0].words[0] = header.pack();
        } else {
            name_cells = schema::name_inline_cells(text->length);
        }
    }
    schema::Cell* out = make_room(name_cells + cells);
    if (out == nullptr) {
        drop(ticks);
        return false;
    }
    if (name_cells > 0) {
        schema::NameInlineRecord name{};
        name.header = RecordHeader{
            RecordKind::kNameInline,
            static_cast<std::uint8_t>(name_cells),
            0,
            {}}.pack();
        name.length = text->length;
        name.hash = schema::hash_bytes(text->bytes, text->length);
        auto* bytes = reinterpret_cast<char*>(out);
        std::memset(bytes, 0, name_cells * schema::kCellBytes);
        std::memcpy(bytes, &name, offsetof(schema::NameInlineRecord, bytes));
        std::memcpy(bytes + offsetof(schema::NameInlineRecord, bytes), text->bytes, text->length);
    }
    std::memcpy(out + name_cells, local, cells * schema::kCellBytes);
    ring_.commit(name_cells + cells);
    return true;
}

/// Counts a record that found the lane full. What the reader knows of the context may be wrong from here on, so the header says
/// "unknown" until it has been recorded again.
void ThreadLane::drop(Ticks ticks) {
    ring_.drop(ticks);
    attention_ |= kContextDirty;
    update_fast_end();
    header()->context_state.store(static_cast<std::uint32_t>(schema::ContextState::kUnknown),
                                  std::memory_order_relaxed);
}

bool ThreadLane::record_context(std::uint8_t detail) {
    const bool on = context_.key != 0;
    const auto flags = static_cast<std::uint8_t>(detail | (on ? schema::kContextOn : 0));
    const schema::ContextRecord record{
        RecordHeader{RecordKind::kContext, 2, schema::record_flags(SourceId::kNone, flags), {}}
            .pack(),
        ticks().value,
        context_.key,
        0,
        context_.trace.hi,
        context_.trace.lo,
        context_.span.value,
        0};
    schema::Cell* out = make_room(2);
    if (out == nullptr) return false;
    std::memcpy(out, &record, sizeof record);
    ring_.commit(2);
    attention_ &= static_cast<std::uint8_t>(~kContextDirty);
    update_fast_end();
    publish_context(on ? schema::ContextState::kServing : schema::ContextState::kNone);
    return true;
}

/// Tells the header what the lane serves. "Unknown" stands there while the words change.
void ThreadLane::publish_context(schema::ContextState state) {
    header()->context_state.store(static_cast<std::uint32_t>(schema::ContextState::kUnknown),
                                  std::memory_order_relaxed);
    // SYNC(context): the words change only after "unknown" and before the last store; the agent reads the state on both sides of them.
    header()->context_key.store(context_.key, std::memory_order_release);
    header()->context_trace_hi.store(context_.trace.hi, std::memory_order_release);
    header()->context_trace_lo.store(context_.trace.lo, std::memory_order_release);
    header()->context_span.store(context_.span.value, std::memory_order_release);
    header()->context_state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void ThreadLane::set_context(const Context& context) {
    if (context.key == context_.key && context.span == context_.span &&
        context.trace == context_.trace) {
        return;
    }
    context_ = context;
    // What must be said again says the new one, and at once.
    const std::uint8_t again = (attention_ & kContextDirty) != 0 ? schema::kContextAgain : 0;
    if (!record_context(again)) drop(ticks());
}

void ThreadLane::async_begin(SourceId source, std::uint8_t detail, NameId name, std::uint64_t key,
                             std::uint64_t argument) {
    const Ticks ticks = this->ticks();
    put(schema::AsyncRecord{RecordHeader{RecordKind::kAsyncBegin, 1,
                                         schema::record_flags(source, detail), name}
                                .pack(),
                            ticks.value, key, argument},
        ticks);
}

void ThreadLane::async_end(SourceId source, std::uint8_t detail, NameId name, std::uint64_t key,
                           std::uint64_t argument) {
    const Ticks ticks = this->ticks();
    put(schema::AsyncRecord{RecordHeader{RecordKind::kAsyncEnd, 1,
                                         schema::record_flags(source, detail), name}
                                .pack(),
                            ticks.value, key, argument},
        ticks);
}

void ThreadLane::value(RecordKind kind, std::uint8_t flags, NameId name, std::uint64_t value,
                       std::uint64_t argument) {
    const Ticks ticks = this->ticks();
    put(schema::ValueRecord{RecordHeader{kind, 1, flags, name}.pack(), ticks.value, value,
                            argument},
        ticks);
}

void ThreadLane::iteration(SourceId source, NameId name, std::uint64_t value,
                           std::uint64_t argument) {
    this->value(RecordKind::kIteration, schema::record_flags(source, 0), name, value, argument);
}

void ThreadLane::mark(SourceId source, std::uint8_t detail, NameId name, std::uint64_t value,
                      std::uint64_t argument) {
    this->value(RecordKind::kMark, schema::record_flags(source, detail), name, value, argument);
}

void ThreadLane::counter(SourceId source, std::uint8_t detail, NameId name, std::uint64_t value,
                         std::uint64_t argument) {
    this->value(RecordKind::kCounter, schema::record_flags(source, detail), name, value, argument);
}

}  // namespace ringside::inject
