#include "inject/sources/nccl/communicators.hpp"

#include "inject/core/emit.hpp"
#include "inject/core/pools.hpp"
#include "schema/request_id.hpp"
#include "schema/sources.hpp"

namespace ringside::inject::nccl {

constinit Library g_library{};

namespace {

// Of zeros: of anything else the file would be as much larger, and each start by a page.
constinit EntryPool<Communicator, 1024> g_pool;
constinit KeyedTable<Communicator*, 128> g_by_handle;

schema::GroupState* claim_state(Communicator& comm) {
    // Which of the job's ranks this one is NCCL does not know; the launcher does.
    schema::GroupState* const state =
        claim_group({schema::kNccl, comm.id, comm.label.c_str(), comm.size, comm.rank, -1});
    comm.state.store(state, std::memory_order_relaxed);
    return state;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return schema::mix64(a ^ schema::mix64(b + 0x9e3779b97f4a7c15ull));
}

Communicator* make_communicator(std::uint64_t id, std::uint32_t size, std::int32_t rank) {
    Communicator* const comm = g_pool.acquire();
    if (comm == nullptr) {
        count_loss(schema::Loss::kTableFull);
        return nullptr;
    }
    comm->id = id == 0 ? 1 : id;
    comm->size = size;
    comm->rank = rank;
    char digits[17] = {};
    schema::write_hex(digits, comm->id, 16);
    comm->label.clear();
    comm->label.append("nccl-").append(digits);
    for (auto* const count : {&comm->collectives, &comm->splits, &comm->shrinks})
        count->store(0, std::memory_order_relaxed);
    comm->state.store(nullptr, std::memory_order_relaxed);
    return comm;
}

void keep_communicator(Communicator* comm) {
    const Word handle = *comm->handle;
    if (handle == 0) return drop_communicator(comm);
    int size = 0, rank = -1;
    if (comm->size == 0 && g_library.comm_count(handle, &size) == 0 &&
        g_library.comm_user_rank(handle, &rank) == 0) {
        comm->size = static_cast<std::uint32_t>(size);
        comm->rank = rank;
    }
    // Before its first collective: a member that never comes to that one is known all the same.
    if (comm->state.load(std::memory_order_relaxed) == nullptr) claim_state(*comm);
    forget_communicator(handle);
    if (g_by_handle.put(handle, comm)) return;
    count_loss(schema::Loss::kTableFull);
    drop_communicator(comm);
}

void drop_communicator(Communicator* comm) {
    if (comm == nullptr) return;
    release_group(comm->state.load(std::memory_order_relaxed), comm->id);
    g_pool.release(comm);
}

Communicator* find_communicator(Word handle) {
    Communicator* found = nullptr;
    if (handle > 1)
        g_by_handle.peek(handle, [&](Communicator* const& comm) {
            found = __atomic_load_n(&comm, __ATOMIC_RELAXED);
        });
    return found;
}

void forget_communicator(Word handle) {
    Communicator* comm = nullptr;
    if (handle > 1 && g_by_handle.take(handle, &comm)) drop_communicator(comm);
}

std::uint64_t next_collective(Communicator& comm) {
    const std::uint64_t sequence = comm.collectives.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!advance_group(comm.state.load(std::memory_order_relaxed), comm.id, sequence)) [[unlikely]]
        advance_group(claim_state(comm), comm.id, sequence);
    return sequence;
}

}  // namespace ringside::inject::nccl
