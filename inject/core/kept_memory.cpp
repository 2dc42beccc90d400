#include "inject/core/kept_memory.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "inject/core/emit.hpp"

namespace ringside::inject {

namespace {

/// Some hundred thousand strings. A program that registers more does so by mistake.
constexpr std::size_t kReservedBytes = 16u << 20;

constinit std::atomic<char*> memory{nullptr};
constinit std::atomic<std::size_t> used{0};

char* reservation() {
    // SYNC(kept): pairs with the exchange below.
    char* present = memory.load(std::memory_order_acquire);
    if (present != nullptr) return present;
    const int saved_errno = errno;
    void* made = mmap(nullptr, kReservedBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) {
        // SYNC(kept): pairs with the acquires here.
        if (memory.compare_exchange_strong(present, static_cast<char*>(made),
                                           std::memory_order_acq_rel)) {
            present = static_cast<char*>(made);
        } else {
            munmap(made, kReservedBytes);
        }
    }
    errno = saved_errno;
    return present;
}

}  // namespace

void* keep(std::size_t bytes) {
    bytes = (bytes + 15) & ~std::size_t{15};
    char* start = reservation();
    std::size_t offset = used.load(std::memory_order_relaxed);
    do {
        if (start == nullptr || bytes > kReservedBytes - offset) {
            count_loss(schema::Loss::kTableFull);
            return nullptr;
        }
    } while (!used.compare_exchange_weak(offset, offset + bytes, std::memory_order_relaxed));
    return start + offset;
}

const char* keep_text(const char* text, std::size_t length) {
    if (length > schema::kMaxNameLength) length = schema::kMaxNameLength;
    auto* kept = static_cast<char*>(keep(length + 1));
    if (kept != nullptr) std::memcpy(kept, text, length);
    return kept;
}

}  // namespace ringside::inject
