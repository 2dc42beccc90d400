#include "inject/sources/torch/ended_elsewhere.hpp"

namespace ringside::inject::torch {

namespace {

struct Word {
    std::atomic<std::uint64_t> range;  ///< 0: free
    std::atomic<std::uint64_t> ticks;
};

constexpr std::uint32_t kWords = 64;
constinit Word g_words[kWords]{};

}  // namespace

constinit std::atomic<std::uint32_t> g_words_left{0};
__thread std::uint32_t t_words_seen __attribute__((tls_model("initial-exec")));

void leave_word(std::uint64_t range) {
    Word& word = g_words[schema::mix64(range) % kWords];
    word.range.store(0, std::memory_order_relaxed);
    word.ticks.store(now().value, std::memory_order_relaxed);
    // SYNC(word): the time is there; pairs with the acquire in take_words().
    word.range.store(range, std::memory_order_release);
    g_words_left.fetch_add(1, std::memory_order_release);
}

void take_words(ThreadLane& lane) {
    t_words_seen = g_words_left.load(std::memory_order_acquire);
    if (lane.open_ranges() == 0) return;
    for (Word& word : g_words) {
        std::uint64_t range = word.range.load(std::memory_order_acquire);
        if (range == 0) continue;
        // Addresses are used again: a range that began after the word was left is another one.
        if (lane.end_range_late(range, Ticks{word.ticks.load(std::memory_order_relaxed)}))
            word.range.compare_exchange_strong(range, 0, std::memory_order_relaxed);
    }
}

}  // namespace ringside::inject::torch
