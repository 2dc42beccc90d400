// The inline half of emit.hpp: what a hook runs when everything is in order. What is rare (a thread's first record, a new capture, a
// full lane, a name without a table entry) is behind one predicted branch, in thread_lane.cpp and thread_entry.cpp.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "inject/core/address_cache.hpp"
#include "inject/core/name_cache.hpp"
#include "inject/core/process.hpp"
#include "inject/core/push_keys.hpp"
#include "schema/lane.hpp"
#include "schema/ring_writer.hpp"
#include "schema/ticks.hpp"

namespace ringside::inject {

inline Ticks now() {
    return schema::read_ticks(g_process.ticks_source);
}

class ThreadLane {
public:
    /// Interns `text` (cut at schema::kMaxNameLength). Where the table is full: schema::kInlineName, and the bytes are kept for the
    /// one record or range that is written with that id next.
    NameId intern(const char* text, std::size_t length, schema::AttributeId attribute = {});

    /// intern() of NUL-terminated text, through a small cache of what was interned lately (name_cache.hpp).
    [[gnu::always_inline]] NameId intern_cached(const char* text,
                                                schema::AttributeId attribute = {}) {
        const NameId known = g_name_cache.find(text, attribute);
        if (known != schema::kNoName) [[likely]]
            return known;
        return intern_and_keep(text, attribute);
    }
    /// The same of a text that g_address_cache does not have; it may have it the next time.
    NameId intern_stranger(const char* text);

    /// Pushes a range onto the lane's open stack, where an agent finds it should the process die.
    /// @param key  the framework's handle of the range, by which end_range() finds it; unique among the thread's open ranges
    void begin_range(SourceId source, std::uint8_t detail, NameId name, std::uint64_t key,
                     std::uint64_t argument);

    /// Ends the range `key`, wherever in the stack it lies, and writes its record.
    /// @return false: it is not on the stack (an async one, begun before the capture, or too deep: that was counted when it began);
    /// nothing is written or counted
    bool end_range(std::uint64_t key);

    /// A range as begin_range() takes it.
    struct OpenRange {
        SourceId source;
        std::uint8_t detail;
        NameId name;
        std::uint64_t key;
        std::uint64_t argument;
    };
    /// begin_range(), and end_range() of the innermost range, where nothing is in their way: no call is made.
    /// @param range  its name is not inline
    /// @return false: nothing has been done; use the other one
    bool begin_plain(const OpenRange& range);
    /// begin_range() of one that began at `begin`, which its source has looked at anyway.
    void begin_range_at(const OpenRange& range, Ticks begin);
    bool end_plain(std::uint64_t key);

    /// What an operator's end knows of it.
    struct OperatorEnd {
        std::int64_t sequence = -1;  ///< -1: none
        std::uint32_t thread = 0;
        std::uint32_t forward_thread = 0;
        std::uint64_t scope = 0;  ///< schema::TorchScope
    };
    /// As end_range(), written as an Operator; the argument of its begin_range() is the NameId of its input shapes, or 0.
    bool end_operator(std::uint64_t key, const OperatorEnd& known);
    /// As end_plain().
    bool end_operator_plain(std::uint64_t key, const OperatorEnd& known);

    /// Ends the range `key` as of `end`: another thread has ended it. For ranges that end elsewhere now and then; those that may end
    /// anywhere are async_begin()'s.
    /// @return false: none with this key that began before `end` is on the stack
    bool end_range_late(std::uint64_t key, Ticks end);
    /// @return how many ranges are open on this thread
    std::uint32_t open_ranges() const { return depth_; }

    /// A range that may end on another thread; `key` from next_key().
    void async_begin(SourceId source, std::uint8_t detail, NameId name, std::uint64_t key,
                     std::uint64_t argument);
    void async_end(SourceId source, std::uint8_t detail, NameId name, std::uint64_t key,
                   std::uint64_t argument);

    /// One half of an RPC begins. RpcBegin::ticks of 0 means now.
    void rpc_begin(const RpcBegin& begin);
    /// ... and ends, on any thread.
    /// @param at  when it did; 0: now
    void rpc_end(SourceId source, std::uint64_t key, schema::RpcStatus status, std::uint64_t bytes,
                 Ticks at = {});

    /// Both at once, of one that is over: they are published as one, and lost as one.
    /// @param end  0: now
    void rpc_whole(const RpcBegin& begin, schema::RpcStatus status, Ticks end);

    /// From here on this thread serves that request; key 0: none. Nothing is written where nothing changes.
    void set_context(const Context& context);
    const Context& context() const { return context_; }

    /// A record of another layout, whole, that begins at `ticks`; its name from intern().
    void put_whole(const void* record, std::uint32_t cells, Ticks ticks) {
        put_slow(record, cells, ticks, nullptr);
    }

    /// A boundary; `value` counts from 1 per name and process.
    void iteration(SourceId source, NameId name, std::uint64_t value, std::uint64_t argument);
    void mark(SourceId source, std::uint8_t detail, NameId name, std::uint64_t value,
              std::uint64_t argument);
    void counter(SourceId source, std::uint8_t detail, NameId name, std::uint64_t value,
                 std::uint64_t argument);

    /// Has the processor fetch the line of the next record, for writing: whoever records little finds it cold, and would wait for it at the
    /// next locked instruction of the program.
    [[gnu::always_inline]] void fetch_ahead() const { __builtin_prefetch(ring_.next_cell(), 1); }

    // --- for core/ alone ---

    using Room = schema::BasicLaneRoom<std::atomic, schema::Cell>;
    struct InlineText {
        std::uint32_t length;
        char bytes[schema::kMaxInlineNameBytes];
    };
    /// Names that have no id, until they are written. Large and hardly ever used, so not in the thread's own block.
    struct InlineTexts {
        InlineText pending;                        ///< the one interned last
        InlineText open[schema::kOpenStackDepth];  ///< of open ranges
    };
    /// Takes the lane `header` into use by the calling thread.
    void open(schema::LaneHeader* header, const Room& room, InlineTexts* texts);
    bool is_open() const { return ring_.header() != nullptr; }
    /// Of this object, from its beginning: what a usual range needs.
    static constexpr std::size_t hot_bytes();
    /// A capture has begun since the thread's last record: what was open belongs to the one before.
    void start_generation();
    schema::LaneHeader* header() const { return static_cast<schema::LaneHeader*>(ring_.header()); }

private:
    static constexpr std::uint8_t kContextDirty = 1;  ///< record the context before anything else
    static constexpr std::uint8_t kInlineSeen =
        2;  ///< the name table was full once: look at each name

    /// A lane that was refused more memory asks again after as many records: each question costs system calls.
    static constexpr std::uint32_t kDropsBetweenTries = 256;

    template <class Record>
    void put(const Record& record, Ticks ticks, const InlineText* text = nullptr);
    bool put_slow(const void* record, std::uint32_t cells, Ticks ticks, const InlineText* text);
    schema::Cell* make_room(std::uint32_t cells);
    bool grow();
    NameId intern_and_keep(const char* text, schema::AttributeId attribute);
    void update_fast_end();
    void drop(Ticks ticks);
    bool record_context(std::uint8_t detail);
    void publish_context(schema::ContextState state);
    void value(schema::RecordKind kind, std::uint8_t flags, NameId name, std::uint64_t value,
               std::uint64_t argument);
    std::uint32_t find_open(std::uint64_t key) const;
    void push_open(const OpenRange& range, Ticks begin);
    template <std::uint32_t kCells, class Write>
    bool end_innermost(std::uint64_t key, const Write& write);
    [[gnu::cold]] void begin_with_care(const OpenRange& range, Ticks begin = {});
    [[gnu::cold]] bool end_with_care(std::uint64_t key, Ticks end);
    void begin_too_deep();
    void keep_inline_text(std::uint32_t entry);
    void pop(std::uint32_t entry);
    void remove_from_middle(std::uint32_t entry);
    const InlineText* inline_text(std::uint64_t header, std::uint32_t entry) const;
    schema::Ticks ticks() const { return schema::read_ticks(ticks_source_); }
    schema::OpenEntry& open_entry(std::uint32_t entry) const { return header()->open[entry]; }

    // With the first words of ThreadSlot one cache line: all that a range needs of a thread.
    schema::RingWriter ring_;
    /// Records that begin before this position find room, and nothing waits to be said before them. 0: something does.
    std::uint64_t fast_end_ = 0;
    std::uint32_t depth_ = 0;  ///< entries of the open stack in use
    /// Ranges that lie less deep may take the fast way; 0 where the clock is not the TSC.
    std::uint32_t fast_depth_ = 0;
    // What is rarer.
    schema::TicksSource ticks_source_{};  ///< the process's
    std::uint32_t growth_pause_ = 0;      ///< drops until more memory is asked for again
    std::uint8_t attention_ = 0;
    bool pending_valid_ = false;
    InlineTexts* texts_ = nullptr;
    Room room_{nullptr, 0, 0, nullptr};
    Context context_;
};

/// A source as a bit of a mask of sources.
constexpr std::uint32_t bit_of(SourceId source) {
    return 1u << static_cast<std::uint32_t>(source);
}
constexpr std::uint32_t kEverySource = ~0u;

/// What a thread keeps in its TLS block. Its first line is all that a range needs of it: the lane's own state is here and not behind a pointer,
/// because in a program's work each line is cold. All zero at first.
struct alignas(64) ThreadSlot {
    static constexpr std::uint32_t kInside = 2;  ///< no capture word: those are odd, or 0

    /// The capture word under which a hook of this thread may record at once; kInside while one runs on it; 0: no lane, or none for now.
    std::uint32_t word = 0;
    std::uint32_t sources = 0;  ///< those that this capture wants, a bit each
    ThreadLane lane;
    std::uint32_t refused = 0;  ///< the capture word under which this thread records nothing
    /// `refused` for want of a lane: each record is counted as lost, until as many hooks have passed.
    std::uint32_t refused_lane = 0;
    PushKeys pushed;

    bool wants(SourceId source) const { return (sources & bit_of(source)) != 0; }
};

constexpr std::size_t ThreadLane::hot_bytes() {
    return offsetof(ThreadLane, ticks_source_);
}
static_assert(offsetof(ThreadSlot, lane) + ThreadLane::hot_bytes() == 64);

// __thread, not thread_local: no wrapper function, and initial-exec because a preload is there at load.
extern __thread ThreadSlot t_slot __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// What a hook writes, for the account of those that find no lane: one that only begins a range leaves its record to the end.
enum class Writes { kNothing, kRecord };

/// The rest of HookScope's constructor: a thread's first record, another capture word, a hook inside a hook.
/// @param sources  whose hook it is, a bit each: where the capture leaves them all out nothing is opened, and nothing lost
/// @return whether there is a lane to record into: the scope is entered
bool enter_hook(std::uint32_t word, Writes writes, std::uint32_t sources = kEverySource);

/// The same of a hook that attach() has put in place, under the capture word as it is now.
/// @return that word where the scope is entered, else 0
[[gnu::cold]] std::uint32_t enter_attached_hook(Writes writes);

/// The time inside a hook on this thread. Put one around what records, and leave it before the original is called: a hook that runs
/// inside another one (a signal handler's) records nothing and is counted.
class HookScope {
public:
    explicit HookScope(Writes writes = Writes::kRecord) : HookScope(writes, kEverySource) {}
    /// For hooks that attach() puts in place: a capture's end is seen when the helper thread sees it (the agent leaves out what begins
    /// after it), so that no hook of a thread that records looks at the control page, a page and a line that are cold in most programs.
    struct Attached {};
    explicit HookScope(Attached, Writes writes = Writes::kRecord) {
        const std::uint32_t word = g_living.watched_word.load(std::memory_order_relaxed);
        if (word == 0 || t_slot.word != word) [[unlikely]] {
            word_ = enter_attached_hook(writes);
            return;
        }
        enter(word);
    }
    /// For what is told of a capture after the fact, when it may have ended: under its word.
    struct Under {
        std::uint32_t word;
    };
    explicit HookScope(Under capture) {
        if (capture.word == 0 || is_off_for_good()) return;
        if (t_slot.word != capture.word) {
            if (enter_hook(capture.word, Writes::kNothing)) word_ = capture.word;
            return;
        }
        enter(capture.word);
    }
    ~HookScope() {
        if (word_ != 0) leave();
    }
    /// For sources whose hooks are always in place: nothing is recorded where the capture leaves this one out.
    explicit HookScope(SourceId source, Writes writes = Writes::kRecord)
        : HookScope(writes, bit_of(source)) {
        if (word_ == 0 || t_slot.wants(source)) [[likely]]
            return;
        leave();
        word_ = 0;
    }
    HookScope(const HookScope&) = delete;
    HookScope& operator=(const HookScope&) = delete;

    /// Whether there is a lane to record into.
    explicit operator bool() const { return word_ != 0; }
    /// Only where the scope is true.
    /// @thread this one, while the scope lives
    ThreadLane& lane() const { return t_slot.lane; }
    /// The capture word that it records under; 0: none.
    std::uint32_t word() const { return word_; }

private:
    HookScope(Writes writes, std::uint32_t sources) {
        const std::uint32_t word = capture_word();
        if ((word & 1) == 0) [[likely]]
            return;
        if (t_slot.word != word) [[unlikely]] {
            if (enter_hook(word, writes, sources)) word_ = word;
            return;
        }
        enter(word);
        t_slot.lane.fetch_ahead();
    }

    void enter(std::uint32_t word) {
        t_slot.word = ThreadSlot::kInside;
        // The compiler alone must keep the order: what could come between is a signal handler on this thread.
        std::atomic_signal_fence(std::memory_order_acq_rel);
        word_ = word;
    }
    void leave() const {
        std::atomic_signal_fence(std::memory_order_acq_rel);
        t_slot.word = word_;
    }

    std::uint32_t word_ = 0;
};

/// Word by word, and by stores that the compiler won't widen, so that the record stays in registers: put together in memory and copied by
/// wider loads, it would wait for its own stores.
template <class Record, std::size_t... kWord>
[[gnu::always_inline]] inline void write_words(schema::Cell* out, const Record& record,
                                               std::index_sequence<kWord...>) {
    struct Words {
        std::uint64_t word[sizeof...(kWord)];
    };
    const auto words = std::bit_cast<Words>(record);
    (std::atomic_ref(out[kWord / 4].words[kWord % 4])
         .store(words.word[kWord], std::memory_order_relaxed),
     ...);
}

template <class Record>
inline void ThreadLane::put(const Record& record, Ticks ticks, const InlineText* text) {
    constexpr std::uint32_t kWords = sizeof(Record) / 8;
    constexpr std::uint32_t kCells = sizeof(Record) / schema::kCellBytes;
    if (ring_.position() < fast_end_) [[likely]] {
        schema::Cell* out = ring_.reserve(kCells);
        if (out != nullptr) [[likely]] {
            write_words(out, record, std::make_index_sequence<kWords>());
            ring_.commit(kCells);
            return;
        }
    }
    Record copy = record;  // its address leaves, the original's must not
    put_slow(&copy, kCells, ticks, text);
}

}  // namespace ringside::inject

#include "inject/core/ranges_inl.hpp"
