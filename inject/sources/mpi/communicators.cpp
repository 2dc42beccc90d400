#include "inject/sources/mpi/communicators.hpp"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/pools.hpp"
#include "inject/sources/mpi/growing_table.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

constinit World g_world{};

namespace {

constexpr std::uint64_t kWorldId = schema::hash_bytes("MPI_COMM_WORLD", 14);
constexpr std::uint64_t kSelfId = schema::hash_bytes("MPI_COMM_SELF", 13);

constexpr std::uint32_t kMostCommunicators = 4096;
constinit EntryPool<Communicator, kMostCommunicators> g_pool;
/// Communicator* by handle, 0 where the handle is no more: programs make and free them in turns, and libraries use handles again.
constinit GrowingTable<9, 12> g_by_handle;
/// How many were made by the same members with the same tag, where no parent counts them.
constinit GrowingTable<8, 12> g_counts;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return schema::mix64(a ^ schema::mix64(b + 0x9e3779b97f4a7c15ull));
}

/// A scratch array of ranks.
class Ranks {
public:
    explicit Ranks(std::uint32_t count) : count_(count) {
        if (count <= kFew) {
            ranks_ = few_;
            return;
        }
        const int saved_errno = errno;
        void* const mapped =
            mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ranks_ = mapped == MAP_FAILED ? nullptr : static_cast<std::int32_t*>(mapped);
        errno = saved_errno;
    }
    ~Ranks() {
        const int saved_errno = errno;
        if (ranks_ != nullptr && ranks_ != few_) munmap(ranks_, bytes());
        errno = saved_errno;
    }
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    std::int32_t* get() { return ranks_; }

private:
    static constexpr std::uint32_t kFew = 64;
    std::size_t bytes() const { return count_ * sizeof(std::int32_t); }
    std::uint32_t count_;
    std::int32_t few_[kFew];
    std::int32_t* ranks_;
};

/// A group's members as ranks of the world.
/// @return false: some are not of this world, or memory is short
bool translate(Word group, Ranks& out, std::uint32_t count, bool of_world) {
    Ranks own(count);
    if (own.get() == nullptr || out.get() == nullptr) return false;
    for (std::uint32_t i = 0; i < count; ++i) own.get()[i] = static_cast<std::int32_t>(i);
    if (of_world) {
        std::memcpy(out.get(), own.get(), count * sizeof(std::int32_t));
        return true;
    }
    Word world = 0;
    if (g_library.comm_group(g_abi.comm_world, &world) != 0) return false;
    const int error = g_library.group_translate_ranks(group, static_cast<int>(count), own.get(),
                                                      world, out.get());
    g_library.group_free(&world);
    if (error != 0) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (out.get()[i] < 0) return false;
    }
    return true;
}

struct Group {
    std::uint32_t size = 0;
    std::int32_t lowest = -1;
    std::uint64_t hash = 0;
    bool as_world = true;
};

/// @return false: memory is short
bool keep_ranks(Communicator* comm, const std::int32_t* ranks) {
    const std::size_t bytes = comm->peers * sizeof(std::int32_t);
    const int saved_errno = errno;
    void* const mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (mapped == MAP_FAILED) return false;
    std::memcpy(mapped, ranks, bytes);
    comm->peer_ranks = static_cast<std::int32_t*>(mapped);
    comm->peer_room = static_cast<std::uint32_t>(bytes);
    return true;
}

/// Members of one of a communicator's groups; with `keep`, where calls find them.
bool read_group(Word handle, bool remote, Communicator* keep, Group* out) {
    Word group = 0;
    if ((remote ? g_library.comm_remote_group : g_library.comm_group)(handle, &group) != 0)
        return false;
    int size = 0;
    g_library.group_size(group, &size);
    out->size = static_cast<std::uint32_t>(size);
    Ranks ranks(out->size);
    const bool known = translate(group, ranks, out->size, handle == g_abi.comm_world);
    g_library.group_free(&group);
    if (!known) return false;
    for (std::uint32_t i = 0; i < out->size; ++i) {
        const std::int32_t rank = ranks.get()[i];
        if (i == 0 || rank < out->lowest) out->lowest = rank;
        out->hash = mix(out->hash, static_cast<std::uint32_t>(rank));
        out->as_world &= rank == static_cast<std::int32_t>(i);
    }
    if (keep == nullptr) return true;
    keep->peers = out->size;
    return out->as_world || keep_ranks(keep, ranks.get());
}

void clear(Communicator* comm) {
    comm->receives.reset();
    comm->name.clear();
    comm->forever = false;
    comm->peer_ranks = nullptr;
    comm->peer_room = 0;
    comm->made.store(0, std::memory_order_relaxed);
    comm->collectives.store(0, std::memory_order_relaxed);
    comm->state.store(nullptr, std::memory_order_relaxed);
    comm->label_name.store(0, std::memory_order_relaxed);
    for (auto& name : comm->names) name.store(0, std::memory_order_relaxed);
}

void give_back(Communicator* comm) {
    release_group(comm->state.load(std::memory_order_relaxed), comm->group);
    const int saved_errno = errno;
    if (comm->peer_ranks != nullptr) munmap(comm->peer_ranks, comm->peer_room);
    errno = saved_errno;
    comm->peer_ranks = nullptr;
    g_pool.release(comm);
}

struct Groups {
    Group own, other;
    bool inter = false;
    std::int32_t lowest() const {
        return inter && other.lowest < own.lowest ? other.lowest : own.lowest;
    }
};

/// An empty place for the communicator of this handle.
/// @return null: it is none, or there is no place
Communicator* place_for(Word handle) {
    if (handle == g_abi.comm_null || handle == 0) return nullptr;
    Communicator* const comm = g_pool.acquire();
    if (comm == nullptr) {
        count_loss(schema::Loss::kTableFull);
    } else {
        clear(comm);
    }
    return comm;
}

/// A communicator with its members, and no id yet.
/// @return null: it can't be followed
Communicator* read_communicator(Word handle, Groups* groups) {
    handle = g_abi.handle(handle);
    Communicator* const comm = place_for(handle);
    if (comm == nullptr) return nullptr;
    int inter = 0, rank = 0;
    g_library.comm_test_inter(handle, &inter);
    g_library.comm_rank(handle, &rank);
    groups->inter = inter != 0;
    if (!read_group(handle, false, groups->inter ? nullptr : comm, &groups->own) ||
        (groups->inter && !read_group(handle, true, comm, &groups->other))) {
        give_back(comm);
        return nullptr;
    }
    comm->rank = rank;
    comm->size = groups->own.size + groups->other.size;
    comm->lowest = groups->lowest();
    comm->members_hash = groups->own.hash;
    return comm;
}

/// A duplicate of one that is known, as read_communicator().
Communicator* copy_communicator(Word handle, const Communicator& of) {
    Communicator* const comm = place_for(g_abi.handle(handle));
    if (comm == nullptr) return nullptr;
    comm->size = of.size;
    comm->rank = of.rank;
    comm->lowest = of.lowest;
    comm->members_hash = of.members_hash;
    comm->peers = of.peers;
    if (of.peer_ranks != nullptr && !keep_ranks(comm, of.peer_ranks)) {
        give_back(comm);
        return nullptr;
    }
    return comm;
}

void keep(Word handle, Communicator* comm, std::uint64_t id, const Label& label) {
    comm->id = id;
    comm->group = mix(id, g_world.seed);
    comm->label = label;
    comm->holds.store(1, std::memory_order_relaxed);
    auto* const entry = g_by_handle.find_or_add(g_abi.handle(handle));
    if (entry == nullptr) {
        count_loss(schema::Loss::kTableFull);
        return give_back(comm);
    }
    // Before its first collective: a member that never comes to that one is known all the same. The first ones alone: a program that makes one after
    // the other would have them push out those that it uses.
    static constinit std::atomic<std::uint32_t> claimed{0};
    constexpr std::uint32_t kClaimedAtOnce = 16;
    if (comm->size > 1 && claimed.load(std::memory_order_relaxed) < kClaimedAtOnce &&
        claimed.fetch_add(1, std::memory_order_relaxed) < kClaimedAtOnce)
        claim_state(*comm);
    // SYNC(communicator): all of it is there; pairs with the acquire in find_communicator().
    entry->store(reinterpret_cast<std::uint64_t>(comm), std::memory_order_release);
}

std::uint64_t count_of(std::uint64_t key) {
    auto* const count = g_counts.find_or_add(key == 0 ? 1 : key);
    return count == nullptr ? 0 : count->fetch_add(1, std::memory_order_relaxed) + 1;
}

void learn_first(Word handle, std::uint64_t id, const char* label) {
    Groups groups;
    Communicator* const comm = read_communicator(handle, &groups);
    Label text;
    text.append(label);
    if (comm == nullptr) return;
    comm->forever = true;
    keep(handle, comm, id, text);
}

/// The launcher's own name of this world tells it from others in the same job.
std::uint64_t world_seed() {
    const char* const space = secure_getenv("PMIX_NAMESPACE");
    if (space != nullptr) return schema::hash_bytes(space, std::strlen(space));
    const char* const job = secure_getenv("SLURM_JOB_ID");
    const char* const step = secure_getenv("SLURM_STEP_ID");
    if (job == nullptr || step == nullptr) return 0;
    return schema::hash_bytes(step, std::strlen(step), schema::hash_bytes(job, std::strlen(job)));
}

}  // namespace

schema::GroupState* claim_state(Communicator& comm) {
    // While the world is learned its own rank is this process's.
    const std::int32_t job_rank = world_known() ? g_world.rank : comm.rank;
    schema::GroupState* const state = claim_group(
        {SourceId::kMpi, comm.group, comm.label.c_str(), comm.size, comm.rank, job_rank});
    comm.state.store(state, std::memory_order_relaxed);
    return state;
}

Communicator* find_communicator(Word handle) {
    auto* const entry = g_by_handle.find(g_abi.handle(handle));
    if (entry == nullptr) return nullptr;
    // SYNC(communicator): pairs with the release in keep().
    return reinterpret_cast<Communicator*>(entry->load(std::memory_order_acquire));
}

bool learn_world() {
    static constinit std::atomic<bool> begun{false};
    int initialized = 0;
    if (g_library.initialized(&initialized) != 0 || initialized == 0) return false;
    if (begun.exchange(true, std::memory_order_acq_rel)) return world_known();
    int rank = -1;
    if (g_library.comm_rank(g_abi.comm_world, &rank) != 0 || rank < 0) return false;
    g_world.seed = world_seed();
    learn_first(g_abi.comm_world, kWorldId, "world");
    learn_first(g_abi.comm_self, mix(kSelfId, static_cast<std::uint32_t>(rank)), "self");
    g_world.rank = rank;
    return true;
}

void learn_child(Word handle, const Communicator* parent, std::uint64_t nth, bool duplicate) {
    Groups groups;
    Communicator* const comm = parent == nullptr ? nullptr
                               : duplicate       ? copy_communicator(handle, *parent)
                                                 : read_communicator(handle, &groups);
    if (comm == nullptr) return;
    const auto lowest = static_cast<std::uint32_t>(comm->lowest);
    const std::uint64_t id = mix(mix(parent->id, nth), lowest);
    keep(handle, comm, id, child_label(parent->label.c_str(), nth, comm->lowest, id));
}

void learn_group_child(Word handle, const Communicator* parent, std::int32_t tag) {
    Groups groups;
    Communicator* const comm = parent != nullptr ? read_communicator(handle, &groups) : nullptr;
    if (comm == nullptr) return;
    std::uint64_t id = mix(mix(parent->id, comm->members_hash), static_cast<std::uint32_t>(tag));
    id = mix(id, count_of(id));
    keep(handle, comm, id, hashed_label(id));
}

void learn_intercommunicator(Word handle, std::int32_t tag) {
    Groups groups;
    Communicator* const comm = read_communicator(handle, &groups);
    if (comm == nullptr) return;
    // Both sides see the same two groups, the other one first.
    std::uint64_t first = groups.own.hash, second = groups.other.hash;
    if (first > second) std::swap(first, second);
    std::uint64_t id = mix(mix(first, second), static_cast<std::uint32_t>(tag));
    id = mix(id, count_of(id));
    keep(handle, comm, id, hashed_label(id));
}

void forget_communicator(Word handle) {
    auto* const entry = g_by_handle.find(g_abi.handle(handle));
    if (entry == nullptr) return;
    let_go(reinterpret_cast<Communicator*>(entry->exchange(0, std::memory_order_acq_rel)));
}

void hold(Communicator* comm) {
    if (comm != nullptr && !comm->forever) comm->holds.fetch_add(1, std::memory_order_relaxed);
}

void let_go(Communicator* comm) {
    if (comm == nullptr || comm->forever) return;
    // SYNC(holds): the last one sees what the others did.
    if (comm->holds.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back(comm);
}

}  // namespace ringside::inject::mpi
