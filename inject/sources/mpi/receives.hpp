// Receives that could not be numbered when they were posted: which message one with MPI_ANY_SOURCE or MPI_ANY_TAG takes is known when it completes, and
// of those posted behind it that could take the same message, which they take is known no sooner. MPI matches receives of one communicator in the order
// in which they were posted, so each is numbered once all earlier ones that could match its message are settled.
// Pure: numbering and recording are the caller's.
#pragma once

#include <atomic>
#include <cstdint>

#include "schema/units.hpp"

namespace ringside::inject::mpi {

inline constexpr std::int32_t kAny = -1;  ///< of a source (a rank of the world) or a tag

/// A receive in the order. Its owner is whoever completes it; the order has it until it is numbered.
struct Posted {
    Posted* next = nullptr;
    std::int32_t source = 0, tag = 0;
    std::uint64_t number = 0;  ///< 0: not yet
    bool completed = false;    ///< what follows is known
    schema::Ticks ticks;
    std::uint64_t bytes = 0;
    std::uint16_t function = 0;
    void* comm = nullptr;

    bool settled() const { return source != kAny && tag != kAny; }
    bool overlaps(std::int32_t other_source, std::int32_t other_tag) const {
        return (source == kAny || other_source == kAny || source == other_source) &&
               (tag == kAny || other_tag == kAny || tag == other_tag);
    }
};

/// Of one communicator.
class ReceiveOrder {
public:
    /// What could not be numbered is in here; the others need not look. Never again after give_up().
    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

    /// A receive's place in the order is not known: which message those behind it take can't be told, so that no receive of this communicator is numbered
    /// any more. They are counted, and not guessed.
    void give_up() { count_.fetch_or(kGivenUp, std::memory_order_release); }

    /// For another communicator.
    void reset() {
        first_ = nullptr;
        count_.store(0, std::memory_order_relaxed);
    }

    /// A receive is posted. `number(source, tag)` is called where it can be numbered at once.
    /// @param posted  appended where not; null: there is none to be had
    /// @param appended  set to whether it was
    /// @return its number, or 0
    template <class Number>
    std::uint64_t post(std::int32_t source, std::int32_t tag, Posted* posted, Number number,
                       bool* appended) {
        *appended = false;
        const Guard guard(busy_);
        if (!guard.held()) give_up();
        if (given_up()) return 0;
        if (source != kAny && tag != kAny && !overlapped(source, tag, nullptr))
            return number(source, tag);
        if (posted == nullptr) {
            give_up();
            return 0;
        }
        posted->source = source;
        posted->tag = tag;
        Posted** end = &first_;
        while (*end != nullptr) end = &(*end)->next;
        posted->next = nullptr;
        *end = posted;
        count_.fetch_add(1, std::memory_order_release);
        *appended = true;
        return 0;
    }

    /// A posted receive has completed.
    /// @param number  as of post(), called for each that can be numbered now, in their order
    /// @return those that are numbered and completed by now, in a chain: to be recorded, and given back
    template <class Number>
    Posted* complete(Posted* posted, std::int32_t source, std::int32_t tag, schema::Ticks ticks,
                     std::uint64_t bytes, Number number) {
        const Guard guard(busy_);
        if (!guard.held()) {
            give_up();
            return nullptr;
        }
        posted->ticks = ticks;
        posted->bytes = bytes;
        posted->completed = true;
        posted->source = source;
        posted->tag = tag;
        if (posted->number != 0) {  // meanwhile: it is no longer listed
            posted->next = nullptr;
            return posted;
        }
        return settle(number);
    }

    /// A posted receive takes no message.
    /// @param done  set as complete() returns it, without the receive itself, which is the caller's
    /// @return false: it stays in here for ever
    template <class Number>
    bool drop(Posted* posted, Number number, Posted** done) {
        const Guard guard(busy_);
        if (!guard.held()) {
            give_up();
            return false;
        }
        for (Posted** at = &first_; *at != nullptr; at = &(*at)->next) {
            if (*at != posted) continue;
            *at = posted->next;
            count_.fetch_sub(1, std::memory_order_release);
            break;
        }
        *done = settle(number);
        return true;
    }

private:
    /// Held for some dozen instructions. Whoever does not get it within some ten thousand does without (a thread of another process's priority, a
    /// debugger): nobody waits for a thread that does not run.
    class Guard {
    public:
        explicit Guard(std::atomic<bool>& busy) : busy_(busy) {
            for (std::uint32_t tries = 0; tries < 10000 && !held_; ++tries) {
                // SYNC(order): sees the list as it was left.
                held_ = !busy.exchange(true, std::memory_order_acquire);
                if (!held_) __builtin_ia32_pause();
            }
        }
        ~Guard() {
            // SYNC(order): publishes the list.
            if (held_) busy_.store(false, std::memory_order_release);
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        bool held() const { return held_; }

    private:
        std::atomic<bool>& busy_;
        bool held_ = false;
    };

    static constexpr std::uint32_t kGivenUp = 1u << 31;
    bool given_up() const { return (count_.load(std::memory_order_relaxed) & kGivenUp) != 0; }

    bool overlapped(std::int32_t source, std::int32_t tag, const Posted* before) const {
        for (const Posted* earlier = first_; earlier != before; earlier = earlier->next) {
            if (earlier->overlaps(source, tag)) return true;
        }
        return false;
    }

    template <class Number>
    Posted* settle(Number number) {
        Posted* done = nullptr;
        if (given_up()) return done;
        Posted** end = &done;
        for (Posted** at = &first_; *at != nullptr;) {
            Posted* const posted = *at;
            if (!posted->settled() || overlapped(posted->source, posted->tag, posted)) {
                at = &posted->next;
                continue;
            }
            *at = posted->next;
            count_.fetch_sub(1, std::memory_order_release);
            posted->number = number(posted->source, posted->tag);
            posted->next = nullptr;
            if (!posted->completed) continue;  // its owner has it
            *end = posted;
            end = &posted->next;
        }
        return done;
    }

    std::atomic<std::uint32_t> count_{0};
    std::atomic<bool> busy_{false};
    Posted* first_ = nullptr;
};

}  // namespace ringside::inject::mpi
