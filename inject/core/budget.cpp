#include "inject/core/budget.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/emit.hpp"
#include "inject/core/headroom.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ringside::inject {

using schema::BudgetPage;
using schema::Loss;

namespace {

/// Some milliseconds of any clock.
constexpr std::uint64_t kRefusalTicks = 1u << 25;

constinit std::atomic<BudgetPage*> budget_page{nullptr};
constinit std::atomic<std::uint64_t> refused_until{0};
/// Asked for and not yet real: what other threads are about to take is not free, whatever the kernel says.
constinit std::atomic<std::uint64_t> under_way{0};

/// @return null where no agent has made one: then nobody divides the node's memory
BudgetPage* node_page() {
    // SYNC(budget): pairs with the exchange below.
    BudgetPage* page = budget_page.load(std::memory_order_acquire);
    if (page != nullptr) return page;
    const FileDescriptor directory = own_job_directory();
    BudgetPage* mine = directory ? map_budget_page(directory) : nullptr;
    if (mine == nullptr) return nullptr;
    // SYNC(budget): pairs with the acquires here.
    if (budget_page.compare_exchange_strong(page, mine, std::memory_order_acq_rel)) return mine;
    munmap(mine, sizeof *mine);
    return page;
}

/// Adds to a count that has a bound.
bool take(std::atomic<std::uint64_t>& taken, std::uint64_t bytes, std::uint64_t budget) {
    std::uint64_t before = taken.load(std::memory_order_relaxed);
    do {
        if (before > budget || bytes > budget - before) return false;
    } while (!taken.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    return true;
}

bool refuse(Loss by) {
    count_loss(by);
    return false;
}

enum class Made { kYes, kNoRoom, kNoWay };

/// Adds 0 to a word in each page, by the kernel's hand: where it finds no room it returns an error, and what other threads write there stays as it is.
/// FUTEX_WAKE_OP is the one call that does so to memory of any kind, without a descriptor, and it is as old as futexes of one process (2.6.22).
/// Rejected: fallocate(), which wants the file opened again, under a name that may be gone; a call that writes or only reads (the one would overwrite
/// what is there, the other does not take room on a disk's file system). A microsecond a page: what the kernel has one call for takes that.
Made touch_pages(void* start, std::size_t bytes) {
    constexpr std::uint32_t kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    auto* const first = static_cast<std::byte*>(start);
    for (std::size_t at = 0; at < bytes; at += schema::kPageBytes) {
        void* const word = first + at;
        if (syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, kAddNothing) < 0)
            return errno == EFAULT || errno == ENOMEM ? Made::kNoRoom : Made::kNoWay;
    }
    return Made::kYes;
}

Made make_pages(void* start, std::size_t bytes) {
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return Made::kYes;
    // Linux before 5.14; what filters answer where they don't know an advice.
    const bool unknown = errno == EINVAL || errno == EPERM || errno == ENOSYS || errno == EACCES;
    return unknown ? touch_pages(start, bytes) : Made::kNoRoom;
}

/// @return whether it is real; else counted by what is the reason
bool populate_or_refuse(void* start, std::size_t bytes) {
    const Made made = make_pages(start, bytes);
    if (made == Made::kYes) return true;
    return refuse(made == Made::kNoRoom ? Loss::kRefusedByFileSystem : Loss::kRefusedByKernel);
}

/// The kernel's limits. Files are read for it: not asked again for a while after a refusal.
bool make_real(void* start, std::size_t bytes) {
    const std::uint64_t now = schema::read_ticks(g_process.ticks_source).value;
    if (now < refused_until.load(std::memory_order_relaxed)) return false;
    const std::uint64_t all = under_way.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    bool made = file_system_allows(segment_root(), all) || refuse(Loss::kRefusedByFileSystem);
    made = made && (cgroups_allow(all) || refuse(Loss::kRefusedByCgroup));
    made = made && populate_or_refuse(start, bytes);
    under_way.fetch_sub(bytes, std::memory_order_relaxed);
    if (!made) refused_until.store(now + kRefusalTicks, std::memory_order_relaxed);
    return made;
}

bool make_real_within_node(void* start, std::size_t bytes) {
    const std::uint64_t budget =
        g_process.control->node_budget_bytes.load(std::memory_order_relaxed);
    BudgetPage* page = budget != 0 ? node_page() : nullptr;
    if (page == nullptr) return make_real(start, bytes);
    if (!take(page->taken_bytes, bytes, budget)) return refuse(Loss::kRefusedByNode);
    if (make_real(start, bytes)) return true;
    page->taken_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

}  // namespace

bool populate(void* start, std::size_t bytes) {
    return make_pages(start, bytes) == Made::kYes;
}

void reset_budget_after_fork() {
    under_way.store(0, std::memory_order_relaxed);
}

void count_again_less(std::size_t bytes) {
    g_process.header->real_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    BudgetPage* page =
        budget_page.load(std::memory_order_acquire);  // SYNC(budget): as in node_page()
    const bool counted = g_process.control->node_budget_bytes.load(std::memory_order_relaxed) != 0;
    if (page != nullptr && counted) page->taken_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void count_inherited() {
    const std::uint64_t bytes = g_process.header->real_bytes.load(std::memory_order_relaxed);
    const bool counts = g_process.control->node_budget_bytes.load(std::memory_order_relaxed) != 0;
    BudgetPage* page = bytes != 0 && counts ? node_page() : nullptr;
    if (page != nullptr) page->taken_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

bool populate_within_limits(void* start, std::size_t bytes) {
    const std::uint64_t budget =
        g_process.control->process_budget_bytes.load(std::memory_order_relaxed);
    std::atomic<std::uint64_t>& own = g_process.header->real_bytes;
    if (!take(own, bytes, budget != 0 ? budget : ~0ull)) return refuse(Loss::kRefusedByProcess);
    if (make_real_within_node(start, bytes)) return true;
    own.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

}  // namespace ringside::inject
