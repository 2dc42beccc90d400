#include "inject/sources/torch/ended_elsewhere.hpp"

namespace ringside::inject::torch {

namespace {

struct Word {
    std::atomic<std::uint64_t> range;  ///< or kFree, kBeingWritten
    std::atomic<std::uint64_t> ticks;
};

constexpr std::uint32_t kWords = 128;
constexpr std::uint64_t kFree = 0;
constexpr std::uint64_t kBeingWritten = 1;  // no range lies there
constinit Word g_words[kWords]{};

bool try_leave(Word& word, std::uint64_t expected, std::uint64_t range) {
    if (!word.range.compare_exchange_strong(expected, kBeingWritten, std::memory_order_acquire))
        return false;
    word.ticks.store(now().value, std::memory_order_relaxed);
    // SYNC(word): the time is there; pairs with the acquire in take_words().
    word.range.store(range, std::memory_order_release);
    g_range.words_left.fetch_add(1, std::memory_order_release);
    return true;
}

}  // namespace

__thread std::uint32_t t_words_seen __attribute__((tls_model("initial-exec")));

void leave_word(std::uint64_t range) {
    const auto home = static_cast<std::uint32_t>(schema::mix64(range) % kWords);
    for (std::uint32_t i = 0; i < kWords; ++i) {
        if (try_leave(g_words[(home + i) % kWords], kFree, range)) return;
    }
    count_loss(schema::Loss::kTableFull);
    Word& word = g_words[home];
    try_leave(word, word.range.load(std::memory_order_relaxed), range);
}

void forget_words() {
    for (Word& word : g_words) word.range.store(kFree, std::memory_order_relaxed);
}

void take_words(ThreadLane& lane) {
    t_words_seen = g_range.words_left.load(std::memory_order_acquire);
    if (lane.open_ranges() == 0) return;
    for (Word& word : g_words) {
        // SYNC(word): pairs with the release in try_leave().
        std::uint64_t range = word.range.load(std::memory_order_acquire);
        if (range == kFree || range == kBeingWritten) continue;
        // Addresses are used again: a range that began after the word was left is another one.
        if (lane.end_range_late(range, Ticks{word.ticks.load(std::memory_order_relaxed)}))
            word.range.compare_exchange_strong(range, kFree, std::memory_order_relaxed);
    }
}

}  // namespace ringside::inject::torch
