// The ring's template parameters as the model checker has them: Atomic<T> over rl::atomic, ModelCell of words over rl::var. Relacy runs
// threads as fibers, chooses at each atomic operation who goes on and which of the values a load may still see, and finds every access
// to a plain word that nothing orders behind another thread's write.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <source_location>
#include <utility>

#include <relacy/relacy.hpp>

// Relacy renames half of C for its users; the shipped headers want the words as they are.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

#include "schema/lane.hpp"
#include "schema/record.hpp"

namespace ringside::proof {

constexpr rl::memory_order to_model(std::memory_order order) {
    switch (order) {
        case std::memory_order_relaxed:
            return rl::mo_relaxed;
        case std::memory_order_acquire:
            return rl::mo_acquire;
        case std::memory_order_release:
            return rl::mo_release;
        case std::memory_order_acq_rel:
            return rl::mo_acq_rel;
        default:
            return rl::mo_seq_cst;
    }
}

inline rl::debug_info to_model(const std::source_location& where) {
    return {where.function_name(), where.file_name(), where.line()};
}

/// std::atomic's face on rl::atomic. Words that a scenario does not open() cost nothing, and must not be touched.
template <class T>
class Atomic {
public:
    Atomic() = default;
    ~Atomic() {
        if (open_) word().~atomic();
    }
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    /// Zero, as shared memory is made. Before the threads start.
    void open() {
        ::new (static_cast<void*>(memory_)) rl::atomic<T>(T());
        open_ = true;
    }

    T load(std::memory_order order,
           std::source_location where = std::source_location::current()) const {
        return word().load(to_model(order), to_model(where));
    }
    void store(T value, std::memory_order order,
               std::source_location where = std::source_location::current()) {
        word().store(value, to_model(order), to_model(where));
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                                 std::memory_order failure,
                                 std::source_location where = std::source_location::current()) {
        return word().compare_exchange_strong(expected, desired, to_model(success), to_model(where),
                                              to_model(failure), to_model(where));
    }

private:
    rl::atomic<T>& word() const {
        RL_VERIFY(open_);
        return *std::launder(reinterpret_cast<rl::atomic<T>*>(memory_));
    }

    alignas(rl::atomic<T>) mutable unsigned char memory_[sizeof(rl::atomic<T>)];
    bool open_ = false;
};

/// A plain word of a cell: zero at first, and every race on it is found.
class Word {
public:
    Word() : value_(0) {}
    Word& operator=(std::uint64_t value) {
        value_($).store(value);
        return *this;
    }
    // NOLINTNEXTLINE(google-explicit-constructor): read like the integer that it stands for
    operator std::uint64_t() const { return value_($).load(); }

private:
    rl::var<std::uint64_t> value_;
};

struct ModelCell {
    Word words[schema::kCellWords];
};

using Header = schema::BasicLaneHeader<Atomic>;
using Ring = schema::BasicLaneRing<Atomic>;

/// Ends this run of a scenario as failed; `what` is kept for the report.
void fail(const char* what);

inline void check(bool good, const char* what) {
    if (!good) fail(what);
}

}  // namespace ringside::proof
