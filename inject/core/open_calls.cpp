#include "inject/core/open_calls.hpp"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/budget.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/thread_entry.hpp"

namespace ringside::inject {

using schema::GroupState;
using schema::OpenCall;
using schema::OpenCallsPage;

namespace {

__thread OpenCall* t_own __attribute__((tls_model("initial-exec")));
__thread std::int32_t t_tid __attribute__((tls_model("initial-exec")));

/// What was seen of a group's state when one was last looked for: a page has no room for times.
struct Used {
    std::atomic<std::uint64_t> last;
    std::atomic<std::uint64_t> looks;  ///< how manieth look saw it moved
};
constinit Used g_used[schema::kGroupStates]{};
constinit std::atomic<std::uint64_t> g_looks{0};

/// The first use in this process.
[[gnu::cold]] OpenCallsPage* make_page() {
    if (!has_segment() || is_off_for_good()) return nullptr;
    const int saved_errno = errno;
    OpenCallsPage* page = nullptr;
    if (!is_unseen_child() && map_whole_segment()) {
        auto* mine = reinterpret_cast<OpenCallsPage*>(segment_base() + schema::kOpenCallsOffset);
        if (populate_within_limits(mine, sizeof *mine)) {
            // SYNC(page): it is real; pairs with the acquire in open_calls_page().
            if (g_living.open_calls.compare_exchange_strong(page, mine,
                                                            std::memory_order_acq_rel)) {
                page = mine;
            } else {
                count_again_less(sizeof *mine);
            }
        }
    }
    errno = saved_errno;
    return page;
}

OpenCallsPage* open_calls_page() {
    // SYNC(page): pairs with the exchange in make_page().
    OpenCallsPage* page = g_living.open_calls.load(std::memory_order_acquire);
    return page != nullptr ? page : make_page();
}

std::int32_t own_tid() {
    if (t_tid == 0) t_tid = static_cast<std::int32_t>(syscall(SYS_gettid));
    return t_tid;
}

/// @return false: somebody writes to it
bool begin_writing(GroupState& state, std::uint32_t& version) {
    version = state.version.load(std::memory_order_relaxed);
    // SYNC(group state): one writer at a time, and the odd version before all that it writes; pairs with the agent's acquires.
    return (version & 1) == 0 &&
           state.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel);
}

void end_writing(GroupState& state, std::uint32_t version) {
    // SYNC(group state): the state is whole.
    state.version.store(version + 2, std::memory_order_release);
}

/// @param held  the group that it must still be of; 0: free
bool replace(GroupState& state, std::uint64_t held, const GroupFacts& facts) {
    std::uint32_t version = 0;
    if (!begin_writing(state, version)) return false;
    const bool ours = state.group.load(std::memory_order_relaxed) == held;
    if (ours) {
        state.group.store(facts.id, std::memory_order_release);
        state.last.store(0, std::memory_order_release);
        state.size.store(facts.size, std::memory_order_release);
        state.rank.store(facts.rank, std::memory_order_release);
        state.job_rank.store(facts.job_rank, std::memory_order_release);
        store_text(state.label, facts.label, facts.source);
    }
    end_writing(state, version);
    return ours;
}

/// The one that has not moved for most looks.
std::uint32_t least_used(OpenCallsPage& page) {
    const std::uint64_t look = g_looks.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint32_t least = 0;
    for (std::uint32_t i = 0; i < schema::kGroupStates; ++i) {
        const std::uint64_t last = page.groups[i].last.load(std::memory_order_relaxed);
        if (g_used[i].last.exchange(last, std::memory_order_relaxed) != last)
            g_used[i].looks.store(look, std::memory_order_relaxed);
        if (g_used[i].looks.load(std::memory_order_relaxed) <
            g_used[least].looks.load(std::memory_order_relaxed))
            least = i;
    }
    return least;
}

GroupState* use(OpenCallsPage& page, std::uint32_t index, std::uint64_t held,
                const GroupFacts& facts) {
    if (!replace(page.groups[index], held, facts)) return nullptr;
    g_used[index].last.store(0, std::memory_order_relaxed);
    g_used[index].looks.store(g_looks.fetch_add(1, std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
    return &page.groups[index];
}

}  // namespace

OpenCall* claim_open_call() {
    OpenCallsPage* page = open_calls_page();
    if (page == nullptr) return nullptr;
    const std::int32_t tid = own_tid();
    for (OpenCall& call : page->calls) {
        std::int32_t free = 0;
        // SYNC(owner): pairs with the release in release_open_call().
        if (call.owner.load(std::memory_order_relaxed) == 0 &&
            call.owner.compare_exchange_strong(free, tid, std::memory_order_acq_rel))
            return &call;
    }
    return nullptr;
}

void release_open_call(OpenCall* call) {
    // What a forked child has of its parent's is not there.
    if (call == nullptr || g_living.open_calls.load(std::memory_order_acquire) == nullptr) return;
    end_open_call(call);
    // SYNC(owner): pairs with the exchange in claim_open_call().
    call->owner.store(0, std::memory_order_release);
}

OpenCall* own_open_call() {
    // A child that no handler of ours saw finds the page gone, and its parent's entry in t_own.
    if (t_own != nullptr && g_living.open_calls.load(std::memory_order_relaxed) != nullptr)
        [[likely]]
        return t_own;
    OpenCall* call = claim_open_call();
    // Before it is kept: a thread that ends without a word would keep it for ever.
    if (call != nullptr) watch_thread_exit();
    t_own = call;
    return call;
}

void give_back_own_open_call() {
    release_open_call(t_own);
    t_own = nullptr;
}

void reset_open_calls_after_fork() {
    g_living.open_calls.store(nullptr, std::memory_order_relaxed);
    t_own = nullptr;
    t_tid = 0;
}

GroupState* claim_group(const GroupFacts& facts) {
    OpenCallsPage* page = open_calls_page();
    if (page == nullptr || facts.id == 0) return nullptr;
    for (GroupState& state : page->groups) {
        if (state.group.load(std::memory_order_acquire) == facts.id) return &state;
    }
    for (std::uint32_t i = 0; i < schema::kGroupStates; ++i) {
        if (page->groups[i].group.load(std::memory_order_relaxed) != 0) continue;
        GroupState* state = use(*page, i, 0, facts);
        if (state != nullptr) return state;
    }
    const std::uint32_t least = least_used(*page);
    return use(*page, least, page->groups[least].group.load(std::memory_order_relaxed), facts);
}

void release_group(GroupState* state, std::uint64_t id) {
    std::uint32_t version = 0;
    if (state == nullptr || g_living.open_calls.load(std::memory_order_acquire) == nullptr ||
        state->group.load(std::memory_order_relaxed) != id || !begin_writing(*state, version))
        return;
    if (state->group.load(std::memory_order_relaxed) == id)
        state->group.store(0, std::memory_order_release);
    end_writing(*state, version);
}

}  // namespace ringside::inject
