#include "inject/sources/cupti/buffers.hpp"

#include <sys/mman.h>

#include <atomic>

namespace ringside::inject::cupti {
namespace {

constexpr std::uint32_t kWordBits = 64;
constexpr std::size_t kRoomBytes = kBufferBytes * kBuffersOfOld;

std::uint8_t* g_room = nullptr;
/// A bit a buffer: it is out.
std::atomic<std::uint64_t> g_out[kBuffersOfOld / kWordBits];
std::atomic<std::uint32_t> g_count{0};

}  // namespace

bool prepare_buffers() {
    if (g_room != nullptr) return true;
    void* room = mmap(nullptr, kRoomBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return false;
    g_room = static_cast<std::uint8_t*>(room);
    return true;
}

std::uint8_t* take_buffer(std::uint32_t limit) {
    for (std::uint32_t i = 0; i < limit / kWordBits; ++i) {
        std::uint64_t out = g_out[i].load(std::memory_order_relaxed);
        while (out != ~0ull) {
            const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(~out));
            // SYNC(buffer): what was read from it before has been read; pairs with the release in give_back_buffer().
            if (!g_out[i].compare_exchange_weak(out, out | 1ull << bit, std::memory_order_acquire,
                                                std::memory_order_relaxed))
                continue;
            g_count.fetch_add(1, std::memory_order_relaxed);
            return g_room + (std::size_t{i} * kWordBits + bit) * kBufferBytes;
        }
    }
    return nullptr;
}

bool give_back_buffer(const std::uint8_t* buffer) {
    const auto offset = static_cast<std::size_t>(buffer - g_room);
    if (g_room == nullptr || offset >= kRoomBytes) return false;
    const std::size_t index = offset / kBufferBytes;
    // SYNC(buffer): pairs with the acquire in take_buffer().
    g_out[index / kWordBits].fetch_and(~(1ull << index % kWordBits), std::memory_order_release);
    g_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

std::uint32_t buffers_out() {
    return g_count.load(std::memory_order_relaxed);
}

void trim_buffers() {
    if (g_room != nullptr && buffers_out() == 0) madvise(g_room, kRoomBytes, MADV_DONTNEED);
}

}  // namespace ringside::inject::cupti
