// MPI's functions that are hooked: what each does, and where its arguments stand. A form for large counts (`_c`) has them at the same places.
// Local queries (MPI_Comm_rank, MPI_Wtime, ...) are not here: nothing waits in them.
#pragma once

#include <cstdint>

namespace ringside::inject::mpi {

enum class Kind : std::uint8_t {
    kPlain,  ///< may wait; a range
    kInit,
    kFinalize,
    kSend,
    kIsend,
    kSendInit,
    kRecv,
    kIrecv,
    kRecvInit,
    kSendrecv,
    kIsendrecv,
    kStart,
    kStartall,
    kWait,
    kWaitall,
    kWaitany,
    kWaitsome,
    kTest,
    kTestall,
    kTestany,
    kTestsome,
    kLook,  ///< Iprobe and Request_get_status: a range where the flag says yes
    kProbe,
    kMprobe,
    kImprobe,
    kMrecv,
    kImrecv,
    kCancel,
    kRequestFree,
    kCollective,
    kIcollective,
    kCollectiveInit,
    kCommMake,   ///< a collective on `comm` that makes `out`
    kCommImake,  ///< the same that does not block
    kCommMakeGroup,
    kIntercomm,
    kCommFree,
    kCommSetName,
};

inline constexpr std::int8_t kNone = -1;

/// Places of arguments; kNone: it has none.
struct Places {
    std::int8_t comm = kNone;
    std::int8_t peer = kNone, tag = kNone;  ///< destination, or the source where only that is
    std::int8_t count = kNone, type = kNone;
    std::int8_t source = kNone, source_tag = kNone;  ///< of Sendrecv and its like
    std::int8_t request = kNone;                     ///< one, or the array
    std::int8_t status = kNone;                      ///< one, or the array
    std::int8_t out = kNone;   ///< new communicator, flag, index, number of indices, message
    std::int8_t out2 = kNone;  ///< indices; Testany's flag; Improbe's message
};

struct Function {
    char name
        [32];  // not a pointer: the loader would have each of them to relocate at every program's start
    Kind kind;
    Places at;
};

namespace places {
inline constexpr Places kSend{.comm = 5, .peer = 3, .tag = 4, .count = 1, .type = 2};
inline constexpr Places kIsend{.comm = 5, .peer = 3, .tag = 4, .count = 1, .type = 2, .request = 6};
inline constexpr Places kRecv{.comm = 5, .peer = 3, .tag = 4, .count = 1, .type = 2, .status = 6};
inline constexpr Places kSendrecv{.comm = 10,
                                  .peer = 3,
                                  .tag = 4,
                                  .count = 1,
                                  .type = 2,
                                  .source = 8,
                                  .source_tag = 9,
                                  .status = 11};
inline constexpr Places kIsendrecv{.comm = 10,
                                   .peer = 3,
                                   .tag = 4,
                                   .count = 1,
                                   .type = 2,
                                   .source = 8,
                                   .source_tag = 9,
                                   .request = 11};
inline constexpr Places kReplace{.comm = 7,
                                 .peer = 3,
                                 .tag = 4,
                                 .count = 1,
                                 .type = 2,
                                 .source = 5,
                                 .source_tag = 6,
                                 .status = 8};
inline constexpr Places kIreplace{.comm = 7,
                                  .peer = 3,
                                  .tag = 4,
                                  .count = 1,
                                  .type = 2,
                                  .source = 5,
                                  .source_tag = 6,
                                  .request = 8};
constexpr Places on(std::int8_t comm, std::int8_t request = kNone) {
    return {.comm = comm, .request = request};
}
constexpr Places make(std::int8_t comm, std::int8_t out, std::int8_t request = kNone) {
    return {.comm = comm, .request = request, .out = out};
}
}  // namespace places

// X(name, number of arguments, kind, places...)

// Those with a form for large counts. A collective's three forms: C(name, arguments, place of comm).
#define RINGSIDE_MPI_LARGE_COLLECTIVES(C)               \
    C(Bcast, bcast, 5, 4)                               \
    C(Gather, gather, 8, 7)                             \
    C(Gatherv, gatherv, 9, 8)                           \
    C(Scatter, scatter, 8, 7)                           \
    C(Scatterv, scatterv, 9, 8)                         \
    C(Allgather, allgather, 7, 6)                       \
    C(Allgatherv, allgatherv, 8, 7)                     \
    C(Alltoall, alltoall, 7, 6)                         \
    C(Alltoallv, alltoallv, 9, 8)                       \
    C(Alltoallw, alltoallw, 9, 8)                       \
    C(Reduce, reduce, 7, 6)                             \
    C(Allreduce, allreduce, 6, 5)                       \
    C(Reduce_scatter, reduce_scatter, 6, 5)             \
    C(Reduce_scatter_block, reduce_scatter_block, 6, 5) \
    C(Scan, scan, 6, 5)                                 \
    C(Exscan, exscan, 6, 5)                             \
    C(Neighbor_allgather, neighbor_allgather, 7, 6)     \
    C(Neighbor_allgatherv, neighbor_allgatherv, 8, 7)   \
    C(Neighbor_alltoall, neighbor_alltoall, 7, 6)       \
    C(Neighbor_alltoallv, neighbor_alltoallv, 9, 8)     \
    C(Neighbor_alltoallw, neighbor_alltoallw, 9, 8)

#define RINGSIDE_MPI_LARGE(X)                                              \
    X(Send, 6, kSend, places::kSend)                                       \
    X(Bsend, 6, kSend, places::kSend)                                      \
    X(Ssend, 6, kSend, places::kSend)                                      \
    X(Rsend, 6, kSend, places::kSend)                                      \
    X(Isend, 7, kIsend, places::kIsend)                                    \
    X(Ibsend, 7, kIsend, places::kIsend)                                   \
    X(Issend, 7, kIsend, places::kIsend)                                   \
    X(Irsend, 7, kIsend, places::kIsend)                                   \
    X(Send_init, 7, kSendInit, places::kIsend)                             \
    X(Bsend_init, 7, kSendInit, places::kIsend)                            \
    X(Ssend_init, 7, kSendInit, places::kIsend)                            \
    X(Rsend_init, 7, kSendInit, places::kIsend)                            \
    X(Recv, 7, kRecv, places::kRecv)                                       \
    X(Irecv, 7, kIrecv, places::kIsend)                                    \
    X(Recv_init, 7, kRecvInit, places::kIsend)                             \
    X(Sendrecv, 12, kSendrecv, places::kSendrecv)                          \
    X(Sendrecv_replace, 9, kSendrecv, places::kReplace)                    \
    X(Isendrecv, 12, kIsendrecv, places::kIsendrecv)                       \
    X(Isendrecv_replace, 9, kIsendrecv, places::kIreplace)                 \
    X(Mrecv, 5, kMrecv, {.count = 1, .type = 2, .status = 4, .out = 3})    \
    X(Imrecv, 5, kImrecv, {.count = 1, .type = 2, .request = 4, .out = 3}) \
    X(Win_create, 6, kCollective, places::on(4))                           \
    X(Win_allocate, 6, kCollective, places::on(3))                         \
    X(Win_allocate_shared, 6, kCollective, places::on(3))                  \
    X(Put, 8, kPlain, {})                                                  \
    X(Get, 8, kPlain, {})                                                  \
    X(Accumulate, 9, kPlain, {})                                           \
    X(Get_accumulate, 12, kPlain, {})                                      \
    X(Rput, 9, kPlain, {})                                                 \
    X(Rget, 9, kPlain, {})                                                 \
    X(Raccumulate, 10, kPlain, {})                                         \
    X(Rget_accumulate, 13, kPlain, {})                                     \
    X(File_read, 5, kPlain, {})                                            \
    X(File_read_all, 5, kPlain, {})                                        \
    X(File_read_at, 6, kPlain, {})                                         \
    X(File_read_at_all, 6, kPlain, {})                                     \
    X(File_read_shared, 5, kPlain, {})                                     \
    X(File_read_ordered, 5, kPlain, {})                                    \
    X(File_read_all_begin, 4, kPlain, {})                                  \
    X(File_read_at_all_begin, 5, kPlain, {})                               \
    X(File_read_ordered_begin, 4, kPlain, {})                              \
    X(File_write, 5, kPlain, {})                                           \
    X(File_write_all, 5, kPlain, {})                                       \
    X(File_write_at, 6, kPlain, {})                                        \
    X(File_write_at_all, 6, kPlain, {})                                    \
    X(File_write_shared, 5, kPlain, {})                                    \
    X(File_write_ordered, 5, kPlain, {})                                   \
    X(File_write_all_begin, 4, kPlain, {})                                 \
    X(File_write_at_all_begin, 5, kPlain, {})                              \
    X(File_write_ordered_begin, 4, kPlain, {})                             \
    X(Buffer_detach, 2, kPlain, {})

// The others.
#define RINGSIDE_MPI_SMALL(X)                                                                   \
    X(Init, 2, kInit, {})                                                                       \
    X(Init_thread, 4, kInit, {})                                                                \
    X(Finalize, 0, kFinalize, {})                                                               \
    X(Barrier, 1, kCollective, places::on(0))                                                   \
    X(Ibarrier, 2, kIcollective, places::on(0, 1))                                              \
    X(Barrier_init, 3, kCollectiveInit, places::on(0, 2))                                       \
    X(Start, 1, kStart, {.request = 0})                                                         \
    X(Startall, 2, kStartall, {.count = 0, .request = 1})                                       \
    X(Wait, 2, kWait, {.request = 0, .status = 1})                                              \
    X(Waitall, 3, kWaitall, {.count = 0, .request = 1, .status = 2})                            \
    X(Waitany, 4, kWaitany, {.count = 0, .request = 1, .status = 3, .out = 2})                  \
    X(Waitsome, 5, kWaitsome, {.count = 0, .request = 1, .status = 4, .out = 2, .out2 = 3})     \
    X(Test, 3, kTest, {.request = 0, .status = 2, .out = 1})                                    \
    X(Testall, 4, kTestall, {.count = 0, .request = 1, .status = 3, .out = 2})                  \
    X(Testany, 5, kTestany, {.count = 0, .request = 1, .status = 4, .out = 2, .out2 = 3})       \
    X(Testsome, 5, kTestsome, {.count = 0, .request = 1, .status = 4, .out = 2, .out2 = 3})     \
    X(Request_get_status, 3, kLook, {.out = 1})                                                 \
    X(Probe, 4, kProbe, {.comm = 2, .peer = 0, .tag = 1, .status = 3})                          \
    X(Iprobe, 5, kLook, {.comm = 2, .peer = 0, .tag = 1, .out = 3})                             \
    X(Mprobe, 5, kMprobe, {.comm = 2, .peer = 0, .tag = 1, .status = 4, .out = 3})              \
    X(Improbe, 6, kImprobe, {.comm = 2, .peer = 0, .tag = 1, .status = 5, .out = 3, .out2 = 4}) \
    X(Cancel, 1, kCancel, {.request = 0})                                                       \
    X(Request_free, 1, kRequestFree, {.request = 0})                                            \
    X(Comm_dup, 2, kCommMake, places::make(0, 1))                                               \
    X(Comm_dup_with_info, 3, kCommMake, places::make(0, 2))                                     \
    X(Comm_idup, 3, kCommImake, places::make(0, 1, 2))                                          \
    X(Comm_idup_with_info, 4, kCommImake, places::make(0, 2, 3))                                \
    X(Comm_split, 4, kCommMake, places::make(0, 3))                                             \
    X(Comm_split_type, 5, kCommMake, places::make(0, 4))                                        \
    X(Comm_create, 3, kCommMake, places::make(0, 2))                                            \
    X(Cart_create, 6, kCommMake, places::make(0, 5))                                            \
    X(Cart_sub, 3, kCommMake, places::make(0, 2))                                               \
    X(Graph_create, 6, kCommMake, places::make(0, 5))                                           \
    X(Dist_graph_create, 9, kCommMake, places::make(0, 8))                                      \
    X(Dist_graph_create_adjacent, 10, kCommMake, places::make(0, 9))                            \
    X(Intercomm_merge, 3, kCommMake, places::make(0, 2))                                        \
    X(Comm_create_group, 4, kCommMakeGroup, {.comm = 0, .tag = 2, .out = 3})                    \
    X(Intercomm_create, 6, kIntercomm, {.comm = 0, .tag = 4, .out = 5})                         \
    X(Comm_free, 1, kCommFree, {.out = 0})                                                      \
    X(Comm_disconnect, 1, kCommFree, {.out = 0})                                                \
    X(Comm_set_name, 2, kCommSetName, {.comm = 0, .out = 1})                                    \
    X(Comm_spawn, 8, kCollective, places::on(5))                                                \
    X(Comm_spawn_multiple, 9, kCollective, places::on(6))                                       \
    X(Comm_accept, 5, kCollective, places::on(3))                                               \
    X(Comm_connect, 5, kCollective, places::on(3))                                              \
    X(Win_create_dynamic, 3, kCollective, places::on(1))                                        \
    X(Win_free, 1, kPlain, {})                                                                  \
    X(Win_fence, 2, kPlain, {})                                                                 \
    X(Win_start, 3, kPlain, {})                                                                 \
    X(Win_complete, 1, kPlain, {})                                                              \
    X(Win_post, 3, kPlain, {})                                                                  \
    X(Win_wait, 1, kPlain, {})                                                                  \
    X(Win_lock, 4, kPlain, {})                                                                  \
    X(Win_lock_all, 2, kPlain, {})                                                              \
    X(Win_unlock, 2, kPlain, {})                                                                \
    X(Win_unlock_all, 1, kPlain, {})                                                            \
    X(Win_flush, 2, kPlain, {})                                                                 \
    X(Win_flush_all, 1, kPlain, {})                                                             \
    X(Win_flush_local, 2, kPlain, {})                                                           \
    X(Win_flush_local_all, 1, kPlain, {})                                                       \
    X(Fetch_and_op, 7, kPlain, {})                                                              \
    X(Compare_and_swap, 7, kPlain, {})                                                          \
    X(File_open, 5, kCollective, places::on(0))                                                 \
    X(File_close, 1, kPlain, {})                                                                \
    X(File_sync, 1, kPlain, {})                                                                 \
    X(File_set_view, 6, kPlain, {})                                                             \
    X(File_set_size, 2, kPlain, {})                                                             \
    X(File_preallocate, 2, kPlain, {})                                                          \
    X(File_read_all_end, 3, kPlain, {})                                                         \
    X(File_read_at_all_end, 3, kPlain, {})                                                      \
    X(File_read_ordered_end, 3, kPlain, {})                                                     \
    X(File_write_all_end, 3, kPlain, {})                                                        \
    X(File_write_at_all_end, 3, kPlain, {})                                                     \
    X(File_write_ordered_end, 3, kPlain, {})

/// By name, at compile time and for messages.
enum Index : std::uint16_t {
#define RINGSIDE_INDEX(name, ...) k##name,
#define RINGSIDE_INDEX_OF_COLLECTIVE(name, lower, ...) k##name, kI##lower, k##name##_init,
    RINGSIDE_MPI_LARGE(RINGSIDE_INDEX) RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_INDEX_OF_COLLECTIVE)
        kLargeCount,
    kBeforeSmall = kLargeCount - 1,
    RINGSIDE_MPI_SMALL(RINGSIDE_INDEX) kFunctionCount,
#undef RINGSIDE_INDEX
#undef RINGSIDE_INDEX_OF_COLLECTIVE
};

inline constexpr Function kFunctions[kFunctionCount] = {
#define RINGSIDE_ENTRY(name, arity, kind, ...) {"MPI_" #name, Kind::kind, __VA_ARGS__},
#define RINGSIDE_ENTRIES(name, lower, arity, comm)                       \
    {"MPI_" #name, Kind::kCollective, places::on(comm)},                 \
        {"MPI_I" #lower, Kind::kIcollective, places::on(comm, (arity))}, \
        {"MPI_" #name "_init", Kind::kCollectiveInit, places::on(comm, (arity) + 1)},
    RINGSIDE_MPI_LARGE(RINGSIDE_ENTRY) RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_ENTRIES)
        RINGSIDE_MPI_SMALL(RINGSIDE_ENTRY)
#undef RINGSIDE_ENTRY
#undef RINGSIDE_ENTRIES
};

}  // namespace ringside::inject::mpi
