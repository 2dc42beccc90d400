#include "inject/core/thread_names.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "inject/core/lanes.hpp"

namespace ringside::inject {

namespace {

constexpr std::uint32_t kWords = schema::kThreadNameBytes / 8;
constexpr std::uint32_t kOthers = 256;

/// A thread that another one has named.
struct Other {
    std::atomic<std::uint32_t> tid;
    std::atomic<std::uint64_t> words[kWords];
};
constinit Other others[kOthers]{};
constinit std::atomic<std::uint32_t> next_other{0};

// One's own name ends with the thread; a number may be used again.
__thread char t_name[schema::kThreadNameBytes] __attribute__((tls_model("initial-exec")));

/// The last name that was given counts; beyond kOthers the oldest are forgotten.
Other& entry_for(std::uint32_t tid) {
    for (Other& other : others) {
        if (other.tid.load(std::memory_order_relaxed) == tid) return other;
    }
    return others[next_other.fetch_add(1, std::memory_order_relaxed) % kOthers];
}

}  // namespace

void name_thread(std::uint32_t tid, const char* text) {
    if (text == nullptr) return;
    char name[schema::kThreadNameBytes] = {};
    std::memcpy(name, text, strnlen(text, sizeof name - 1));
    const auto self = static_cast<std::uint32_t>(syscall(SYS_gettid));
    if (tid == 0 || tid == self) {
        std::memcpy(t_name, name, sizeof t_name);
        tid = self;
    } else {
        Other& other = entry_for(tid);
        for (std::uint32_t i = 0; i < kWords; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, name + 8 * i, 8);
            other.words[i].store(word, std::memory_order_relaxed);
        }
        // SYNC(named): pairs with the acquire in given_thread_name().
        other.tid.store(tid, std::memory_order_release);
    }
    rename_lane(tid, name);
}

bool given_thread_name(std::uint32_t tid, char* out) {
    if (t_name[0] != 0) {
        std::memcpy(out, t_name, sizeof t_name);
        return true;
    }
    if (next_other.load(std::memory_order_relaxed) == 0) return false;
    for (const Other& other : others) {
        // SYNC(named): the words are there; pairs with the release in name_thread().
        if (other.tid.load(std::memory_order_acquire) != tid) continue;
        for (std::uint32_t i = 0; i < kWords; ++i) {
            const std::uint64_t word = other.words[i].load(std::memory_order_relaxed);
            std::memcpy(out + 8 * i, &word, 8);
        }
        return true;
    }
    return false;
}

}  // namespace ringside::inject
