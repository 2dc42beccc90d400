// What hooks must remember between a begin and its end: fixed tables in .bss, touched only as far as they are used. No lock, no
// allocation; when a table is full the call passes through, and the caller counts it (Loss::kTableFull).
//
// KeyedTable: values by a 64-bit key, taken once. A set of eight neighbours is searched, never the whole table.
// EntryPool:  numbered entries from a free list.
#pragma once

#include <atomic>
#include <cstdint>

#include "schema/request_id.hpp"

namespace ringside::inject::torch {

/// Values of trivially copyable type by key. An entry's key word is its state: free, busy (someone is inside), or the key.
/// @tparam kSets a power of two; the table holds 8 x kSets values
template <class Value, std::uint32_t kSets>
class KeyedTable {
    static_assert((kSets & (kSets - 1)) == 0);

public:
    static constexpr std::uint32_t kWays = 8;

    /// Keeps `value`; one that is there with the same key is forgotten.
    /// @param key  no two threads put the same key at once; 0 and 1 are not keys
    /// @return false when the key's set is full
    /// @thread thread-safe
    bool put(std::uint64_t key, const Value& value) {
        Value old;
        take(key, &old);
        Entry* const set = set_of(key);
        for (std::uint32_t i = 0; i < kWays; ++i) {
            std::uint64_t expected = kFree;
            if (!set[i].key.compare_exchange_strong(expected, kBusy, std::memory_order_acquire,
                                                    std::memory_order_relaxed))
                continue;
            set[i].value = value;
            // SYNC(entry): publishes the value; pairs with the acquire exchange in take_entry.
            set[i].key.store(key, std::memory_order_release);
            return true;
        }
        return false;
    }

    /// Removes the value of `key` and gives it to the one caller that gets true.
    /// @thread thread-safe
    bool take(std::uint64_t key, Value* out) {
        Entry* const set = set_of(key);
        for (std::uint32_t i = 0; i < kWays; ++i) {
            if (set[i].key.load(std::memory_order_relaxed) == key && take_entry(set[i], key, out))
                return true;
        }
        return false;
    }

    /// Lets `visit(value)` look at the value of `key` in place; it may be taken and overwritten meanwhile, so only atomic accesses to
    /// words that are never reused for something else are safe in it.
    template <class Visit>
    void peek(std::uint64_t key, Visit visit) {
        Entry* const set = set_of(key);
        for (std::uint32_t i = 0; i < kWays; ++i) {
            if (set[i].key.load(std::memory_order_acquire) == key) visit(set[i].value);
        }
    }

    /// Takes the first value for which `matches(value)` holds; it may read atomically only. Walks the whole table.
    template <class Matches>
    bool take_if(Matches matches, Value* out) {
        for (Entry& entry : entries_) {
            const std::uint64_t key = entry.key.load(std::memory_order_acquire);
            if (key > kBusy && matches(entry.value) && take_entry(entry, key, out)) return true;
        }
        return false;
    }

    /// Forgets all values. Those put meanwhile may stay.
    void clear() {
        for (Entry& entry : entries_) {
            std::uint64_t key = entry.key.load(std::memory_order_relaxed);
            // An entry never used stays untouched: its page may not exist yet.
            if (key > kBusy)
                entry.key.compare_exchange_strong(key, kFree, std::memory_order_relaxed);
        }
    }

private:
    static constexpr std::uint64_t kFree = 0;
    static constexpr std::uint64_t kBusy = 1;

    struct Entry {
        std::atomic<std::uint64_t> key{kFree};
        Value value{};
    };

    Entry* set_of(std::uint64_t key) {
        return entries_ + (schema::mix64(key) & (kSets - 1)) * kWays;
    }

    static bool take_entry(Entry& entry, std::uint64_t key, Value* out) {
        // SYNC(entry): sees what put() stored.
        if (!entry.key.compare_exchange_strong(key, kBusy, std::memory_order_acquire,
                                               std::memory_order_relaxed))
            return false;
        *out = entry.value;
        // SYNC(entry): the copy is done before the next put() may write.
        entry.key.store(kFree, std::memory_order_release);
        return true;
    }

    Entry entries_[kSets * kWays]{};
};

/// Numbered entries, handed out and given back on any thread.
template <class Entry, std::uint32_t kCount>
class EntryPool {
public:
    /// @return null when all are in use
    Entry* acquire() {
        std::uint64_t head = free_.load(std::memory_order_acquire);
        while (index_of(head) != 0) {
            const std::uint32_t next = next_[index_of(head) - 1].load(std::memory_order_relaxed);
            if (free_.compare_exchange_weak(head, pack(next, head), std::memory_order_acquire,
                                            std::memory_order_acquire))
                return &entries_[index_of(head) - 1];
        }
        std::uint32_t fresh = used_.load(std::memory_order_relaxed);
        while (fresh < kCount) {
            if (used_.compare_exchange_weak(fresh, fresh + 1, std::memory_order_relaxed))
                return &entries_[fresh];
        }
        return nullptr;
    }

    void release(Entry* entry) {
        const std::uint32_t index = static_cast<std::uint32_t>(entry - entries_) + 1;
        std::uint64_t head = free_.load(std::memory_order_relaxed);
        do {
            next_[index - 1].store(index_of(head), std::memory_order_relaxed);
            // SYNC(free list): the entry's last use is seen by whoever acquires it next.
        } while (!free_.compare_exchange_weak(head, pack(index, head), std::memory_order_release,
                                              std::memory_order_relaxed));
    }

private:
    // Low half: index + 1 of the first free entry; high half: a count that grows with each change, against ABA.
    static std::uint32_t index_of(std::uint64_t head) { return static_cast<std::uint32_t>(head); }
    static std::uint64_t pack(std::uint32_t index, std::uint64_t old) {
        return ((old >> 32) + 1) << 32 | index;
    }

    std::atomic<std::uint64_t> free_{0};
    std::atomic<std::uint32_t> used_{0};
    std::atomic<std::uint32_t> next_[kCount]{};
    Entry entries_[kCount]{};
};

}  // namespace ringside::inject::torch
