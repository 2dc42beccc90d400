// What hooks must remember between a begin and its end: fixed tables in .bss, touched only as far as they are used. No lock, no
// allocation; when a table is full the call passes through, and the caller counts it (Loss::kTableFull).
//
// KeyedTable: values by a 64-bit key, taken once.
// EntryPool:  numbered entries from a free list.
#pragma once

#include <atomic>
#include <cstdint>

#include "schema/request_id.hpp"

namespace ringside::inject {

/// Values of trivially copyable type by key. A key word is the state of its entry: free, busy (someone is inside), or the key.
/// Two levels: a few sets that stay in the cache while little is in flight, and many for when they are full.
/// @tparam kSets  a power of two; the table holds 8 x (kSets + kHotSets) values
template <class Value, std::uint32_t kSets>
class KeyedTable {
public:
    static constexpr std::uint32_t kWays = 8;  // the keys of a set fill one cache line
    static constexpr std::uint32_t kHotSets = 16;

    /// Keeps `value`; one that is there with the same key is forgotten.
    /// @param key  no two threads put the same key at once; 0 and 1 are not keys
    /// @return false when the key's sets are full
    /// @thread thread-safe
    bool put(std::uint64_t key, const Value& value) {
        Value old;
        take(key, &old);
        if (hot_.put(key, value)) return true;
        // Before the value: whoever looks for the key finds the count grown.
        spilled_.fetch_add(1, std::memory_order_seq_cst);
        if (cold_.put(key, value)) return true;
        spilled_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }

    /// put(); where there is no place the one of a value whose key is `stale(key)`, which is forgotten.
    template <class Stale>
    bool put_over(std::uint64_t key, const Value& value, Stale stale) {
        Value old;
        take(key, &old);
        if (hot_.put(key, value) || hot_.put_over(key, value, stale)) return true;
        spilled_.fetch_add(1, std::memory_order_seq_cst);
        if (cold_.put(key, value)) return true;
        spilled_.fetch_sub(1, std::memory_order_relaxed);
        // A place that is taken over has been counted.
        return cold_.put_over(key, value, stale);
    }

    /// Removes the value of `key` and gives it to the one caller that gets true.
    /// @thread thread-safe
    bool take(std::uint64_t key, Value* out) {
        return hot_.take(key, out) || (spilled() && unspilled(cold_.take(key, out)));
    }

    /// Lets `visit(value)` look at the value of `key` in place; it may be taken and overwritten meanwhile, so only atomic accesses to
    /// words that are never reused for something else are safe in it.
    template <class Visit>
    void peek(std::uint64_t key, Visit visit) {
        hot_.peek(key, visit);
        if (spilled()) cold_.peek(key, visit);
    }

    /// Takes the first value for which `matches(value)` holds; it may read atomically only. Walks all that is in use.
    template <class Matches>
    bool take_if(Matches matches, Value* out) {
        return hot_.take_if(matches, out) || (spilled() && unspilled(cold_.take_if(matches, out)));
    }

    /// Forgets all values. Those put meanwhile may stay.
    void clear() {
        hot_.clear();
        if (!spilled()) return;  // never used: its pages may not exist yet
        const std::uint32_t cleared = cold_.clear();
        spilled_.fetch_sub(cleared, std::memory_order_relaxed);
    }

private:
    static constexpr std::uint64_t kFree = 0;
    static constexpr std::uint64_t kBusy = 1;

    /// Sets of entries: a key's set is searched, never the whole level.
    template <std::uint32_t kCount>
    class Level {
        static_assert((kCount & (kCount - 1)) == 0);

    public:
        bool put(std::uint64_t key, const Value& value) {
            return put_where(key, value, [](std::uint64_t there) { return there == kFree; });
        }

        template <class Stale>
        bool put_over(std::uint64_t key, const Value& value, Stale stale) {
            return put_where(key, value,
                             [&](std::uint64_t there) { return there > kBusy && stale(there); });
        }

        bool take(std::uint64_t key, Value* out) {
            const std::uint32_t first = first_of(key);
            for (std::uint32_t i = first; i < first + kWays; ++i) {
                if (keys_[i].load(std::memory_order_relaxed) == key && take_entry(i, key, out))
                    return true;
            }
            return false;
        }

        template <class Visit>
        void peek(std::uint64_t key, Visit visit) {
            const std::uint32_t first = first_of(key);
            for (std::uint32_t i = first; i < first + kWays; ++i) {
                if (keys_[i].load(std::memory_order_acquire) == key) visit(values_[i]);
            }
        }

        template <class Matches>
        bool take_if(Matches matches, Value* out) {
            for (std::uint32_t i = 0; i < kCount * kWays; ++i) {
                const std::uint64_t key = keys_[i].load(std::memory_order_acquire);
                if (key > kBusy && matches(values_[i]) && take_entry(i, key, out)) return true;
            }
            return false;
        }

        std::uint32_t clear() {
            std::uint32_t cleared = 0;
            for (std::atomic<std::uint64_t>& word : keys_) {
                std::uint64_t key = word.load(std::memory_order_relaxed);
                cleared += key > kBusy &&
                           word.compare_exchange_strong(key, kFree, std::memory_order_relaxed);
            }
            return cleared;
        }

    private:
        static std::uint32_t first_of(std::uint64_t key) {
            return static_cast<std::uint32_t>(schema::mix64(key) & (kCount - 1)) * kWays;
        }

        template <class Allowed>
        bool put_where(std::uint64_t key, const Value& value, Allowed allowed) {
            const std::uint32_t first = first_of(key);
            for (std::uint32_t i = first; i < first + kWays; ++i) {
                std::uint64_t there = keys_[i].load(std::memory_order_relaxed);
                if (!allowed(there) ||
                    !keys_[i].compare_exchange_strong(there, kBusy, std::memory_order_acquire,
                                                      std::memory_order_relaxed))
                    continue;
                values_[i] = value;
                // SYNC(entry): publishes the value; pairs with the acquire exchange in take_entry.
                keys_[i].store(key, std::memory_order_release);
                return true;
            }
            return false;
        }

        bool take_entry(std::uint32_t i, std::uint64_t key, Value* out) {
            // SYNC(entry): sees what put() stored.
            if (!keys_[i].compare_exchange_strong(key, kBusy, std::memory_order_acquire,
                                                  std::memory_order_relaxed))
                return false;
            *out = values_[i];
            // SYNC(entry): the copy is done before the next put() may write.
            keys_[i].store(kFree, std::memory_order_release);
            return true;
        }

        alignas(64) std::atomic<std::uint64_t> keys_[kCount * kWays]{};
        alignas(64) Value values_[kCount * kWays]{};
    };

    bool spilled() const { return spilled_.load(std::memory_order_seq_cst) != 0; }
    bool unspilled(bool taken) {
        if (taken) spilled_.fetch_sub(1, std::memory_order_relaxed);
        return taken;
    }

    Level<kHotSets> hot_;
    std::atomic<std::uint32_t> spilled_{0};  ///< values in the cold level, or about to be
    Level<kSets> cold_;
};

/// Numbered entries, handed out and given back on any thread.
template <class Entry, std::uint32_t kCount>
class EntryPool {
public:
    /// @return null when all are in use
    Entry* acquire() {
        // SYNC(free list): pairs with the release in release().
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

}  // namespace ringside::inject
