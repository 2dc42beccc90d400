// Words by key that are never taken out: how many messages a channel has had. A chain of tables, each twice as large as the one before; a key lies in one
// group of entries of the first table that had a free one there. So a look-up ends at a group that is not full, and nothing ever moves.
// No lock, no malloc: the first table is part of the object (untouched pages of .bss), the others are mapped when they are needed.
#pragma once

#include <errno.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "schema/request_id.hpp"

namespace ringside::inject::mpi {

/// @tparam kFirstBits  the first table has 2^kFirstBits entries
/// @tparam kTables     how many there may be
/// @tparam kHashes     keys are hashes themselves
template <std::uint32_t kFirstBits, std::uint32_t kTables, bool kHashes = false>
class GrowingTable {
public:
    using Value = std::atomic<std::uint64_t>;

    /// @param key  not 0
    /// @return null: it was never added
    /// @thread thread-safe
    Value* find(std::uint64_t key) {
        const std::uint64_t hash = kHashes ? key : schema::mix64(key);
        for (std::uint32_t n = 0; n < kTables; ++n) {
            Entry* const table = table_at(n);
            if (table == nullptr) return nullptr;
            Entry* const group = group_of(table, n, hash);
            for (std::uint32_t i = 0; i < kGroup; ++i) {
                const std::uint64_t there = group[i].key.load(std::memory_order_relaxed);
                if (there == key) return &group[i].value;
                if (there == 0) return nullptr;
            }
        }
        return nullptr;
    }

    /// find(); a key that is not there is added with the value 0.
    /// @return null: full
    Value* find_or_add(std::uint64_t key) {
        const std::uint64_t hash = kHashes ? key : schema::mix64(key);
        for (std::uint32_t n = 0; n < kTables; ++n) {
            Entry* const table = table_or_new(n);
            if (table == nullptr) return nullptr;
            Entry* const group = group_of(table, n, hash);
            for (std::uint32_t i = 0; i < kGroup; ++i) {
                std::uint64_t there = group[i].key.load(std::memory_order_relaxed);
                // Relaxed: an entry's value is 0 from the beginning, and only counted on from there.
                if (there == 0 &&
                    group[i].key.compare_exchange_strong(there, key, std::memory_order_relaxed))
                    return &group[i].value;
                if (there == key) return &group[i].value;
            }
        }
        return nullptr;
    }

private:
    static constexpr std::uint32_t kGroup = 8;
    struct Entry {
        std::atomic<std::uint64_t> key;
        Value value;
    };

    Entry* table_at(std::uint32_t n) {
        // SYNC(table): whoever sees the address may read there; pairs with the release in table_or_new().
        return n == 0 ? first_ : more_[n - 1].load(std::memory_order_acquire);
    }
    static Entry* group_of(Entry* table, std::uint32_t n, std::uint64_t hash) {
        return table + (hash & ((std::uint64_t{1} << (kFirstBits + n)) - 1) & ~(kGroup - 1ull));
    }
    Entry* table_or_new(std::uint32_t n) {
        Entry* table = table_at(n);
        if (table != nullptr) return table;
        const int saved_errno = errno;
        const std::size_t bytes = sizeof(Entry) << (kFirstBits + n);
        void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped != MAP_FAILED) {
            auto* const fresh = static_cast<Entry*>(mapped);
            // SYNC(table): zero pages; pairs with the acquire in table_at(). Who comes second uses the first one's.
            if (more_[n - 1].compare_exchange_strong(table, fresh, std::memory_order_acq_rel)) {
                table = fresh;
            } else {
                munmap(mapped, bytes);
            }
        }
        errno = saved_errno;
        return table;
    }

    alignas(64) Entry first_[1u << kFirstBits]{};
    std::atomic<Entry*> more_[kTables - 1]{};
};

}  // namespace ringside::inject::mpi
