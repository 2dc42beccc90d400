// Collectives of every kind among four ranks: that block, that do not, persistent ones where the library has them; on the world, on halves of it, on a ring
// and between two groups. LOG.<rank> says what was begun (said.h).
//
//     collectives LOG
#include <string.h>

#include "said.h"

#ifndef RINGSIDE_LARGE_COUNTS
typedef int Count;
typedef int Place;
#else
typedef MPI_Count Count;
typedef MPI_Aint Place;
#endif

static long out[16], in[16];
static const Count kOnes[4] = {1, 1, 1, 1};
static const Place kPlaces[4] = {0, 1, 2, 3}, kOffsets[4] = {0, 8, 16, 24};
static const MPI_Aint kFar[4] = {0, 8, 16, 24};
static MPI_Datatype types[4];

#define ON_ANY(X)                                                                         \
    X(Bcast, Ibcast, out, 1, MPI_LONG, 0)                                                 \
    X(Gather, Igather, out, 1, MPI_LONG, in, 1, MPI_LONG, 0)                              \
    X(Gatherv, Igatherv, out, 1, MPI_LONG, in, kOnes, kPlaces, MPI_LONG, 0)               \
    X(Scatter, Iscatter, out, 1, MPI_LONG, in, 1, MPI_LONG, 0)                            \
    X(Scatterv, Iscatterv, out, kOnes, kPlaces, MPI_LONG, in, 1, MPI_LONG, 0)             \
    X(Allgather, Iallgather, out, 1, MPI_LONG, in, 1, MPI_LONG)                           \
    X(Allgatherv, Iallgatherv, out, 1, MPI_LONG, in, kOnes, kPlaces, MPI_LONG)            \
    X(Alltoall, Ialltoall, out, 1, MPI_LONG, in, 1, MPI_LONG)                             \
    X(Alltoallv, Ialltoallv, out, kOnes, kPlaces, MPI_LONG, in, kOnes, kPlaces, MPI_LONG) \
    X(Alltoallw, Ialltoallw, out, kOnes, kOffsets, types, in, kOnes, kOffsets, types)     \
    X(Reduce, Ireduce, out, in, 1, MPI_LONG, MPI_SUM, 0)                                  \
    X(Allreduce, Iallreduce, out, in, 1, MPI_LONG, MPI_SUM)                               \
    X(Reduce_scatter, Ireduce_scatter, out, in, kOnes, MPI_LONG, MPI_SUM)                 \
    X(Reduce_scatter_block, Ireduce_scatter_block, out, in, 1, MPI_LONG, MPI_SUM)         \
    X(Scan, Iscan, out, in, 1, MPI_LONG, MPI_SUM)                                         \
    X(Exscan, Iexscan, out, in, 1, MPI_LONG, MPI_SUM)
#define ON_NEIGHBORS(X)                                                                           \
    X(Neighbor_allgather, Ineighbor_allgather, out, 1, MPI_LONG, in, 1, MPI_LONG)                 \
    X(Neighbor_allgatherv, Ineighbor_allgatherv, out, 1, MPI_LONG, in, kOnes, kPlaces, MPI_LONG)  \
    X(Neighbor_alltoall, Ineighbor_alltoall, out, 1, MPI_LONG, in, 1, MPI_LONG)                   \
    X(Neighbor_alltoallv, Ineighbor_alltoallv, out, kOnes, kPlaces, MPI_LONG, in, kOnes, kPlaces, \
      MPI_LONG)                                                                                   \
    X(Neighbor_alltoallw, Ineighbor_alltoallw, out, kOnes, kFar, types, in, kOnes, kFar, types)

#if MPI_VERSION < 4
#define DECLARE(NAME, LATER, ...) extern int MPI_##NAME##_init() __attribute__((weak));
ON_ANY(DECLARE)
ON_NEIGHBORS(DECLARE)
// NOLINTNEXTLINE(readability-identifier-naming): MPI's own name
extern int MPI_Barrier_init() __attribute__((weak));
#endif

/// MPICH 4.0 ends the program in the second turn of a persistent MPI_Scatter.
static int works(const char* name) {
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
    return strcmp(name, "MPI_Scatter") != 0;
#else
    return name != NULL;
#endif
}

static void wait(MPI_Request* request, int turn) {
    int done = 0;
    if (turn % 2 == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
    while (turn % 2 != 0 && !done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

#define BLOCKING(NAME, LATER, ...)         \
    collective("MPI_" #NAME, on, "range"); \
    MPI_##NAME(__VA_ARGS__, on->comm);
#define NOT_BLOCKING(NAME, LATER, ...)            \
    collective("MPI_" #LATER, on, "async");       \
    MPI_##LATER(__VA_ARGS__, on->comm, &request); \
    wait(&request, turn++);
#define STARTED(NAME)                                  \
    for (int i = 0; i < 2; ++i) {                      \
        collective("MPI_" #NAME "_init", on, "async"); \
        MPI_Start(&request);                           \
        wait(&request, turn++);                        \
    }                                                  \
    MPI_Request_free(&request);
#define PERSISTENT(NAME, LATER, ...)                                       \
    if (MPI_##NAME##_init && works("MPI_" #NAME)) {                        \
        MPI_##NAME##_init(__VA_ARGS__, on->comm, MPI_INFO_NULL, &request); \
        STARTED(NAME)                                                      \
    }

static void barriers(Comm* on) {
    MPI_Request request;
    int turn = 0;
    collective("MPI_Barrier", on, "range");
    MPI_Barrier(on->comm);
    collective("MPI_Ibarrier", on, "async");
    MPI_Ibarrier(on->comm, &request);
    wait(&request, turn++);
    if (MPI_Barrier_init) {
        MPI_Barrier_init(on->comm, MPI_INFO_NULL, &request);
        STARTED(Barrier)
    }
}

static void all_kinds(Comm* on) {
    MPI_Request request;
    int turn = 0;
    barriers(on);
    ON_ANY(BLOCKING)
    ON_ANY(NOT_BLOCKING)
    ON_ANY(PERSISTENT)
}

static void neighbors(Comm* on) {
    MPI_Request request;
    int turn = 0;
    ON_NEIGHBORS(BLOCKING)
    ON_NEIGHBORS(NOT_BLOCKING)
    ON_NEIGHBORS(PERSISTENT)
}

/// Several at once, waited for together and in another order.
static void together(Comm* on, Comm* other) {
    MPI_Request requests[4];
    for (int i = 0; i < 4; ++i) {
        Comm* one = i % 2 == 0 ? on : other;
        collective("MPI_Iallreduce", one, "async");
        MPI_Iallreduce(&out[i], &in[i], 1, MPI_LONG, MPI_SUM, one->comm, &requests[i]);
    }
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void between(Comm* on, int mine, int sends) {
    const int root = !sends ? 0 : mine == 0 ? MPI_ROOT : MPI_PROC_NULL;
    collective("MPI_Bcast", on, "range");
    MPI_Bcast(out, 1, MPI_LONG, root, on->comm);
    collective("MPI_Allreduce", on, "range");
    MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, on->comm);
    collective("MPI_Barrier", on, "range");
    MPI_Barrier(on->comm);
}

/// A message that was taken out of the queue is received when its communicator is gone; two that are made after it are two.
static void behind_a_matched_one(Comm* world) {
    Comm gone = {MPI_COMM_NULL, "world/3.0", 0};
    Comm next[2] = {{MPI_COMM_NULL, "world/4.0", 0}, {MPI_COMM_NULL, "world/5.0", 0}};
    MPI_Message taken;
    MPI_Request request;
    MPI_Status status;
    collective("MPI_Comm_dup", world, "range");
    MPI_Comm_dup(world->comm, &gone.comm);
    if (rank == 0) MPI_Send(out, 1, MPI_LONG, 1, 80, gone.comm);
    if (rank == 1) MPI_Mprobe(0, 80, gone.comm, &taken, &status);
    MPI_Comm_free(&gone.comm);
    if (rank == 1) {
        MPI_Imrecv(in, 1, MPI_LONG, &taken, &request);
        MPI_Wait(&request, &status);
    }
    for (int i = 0; i < 2; ++i) {
        collective("MPI_Comm_dup", world, "range");
        MPI_Comm_dup(world->comm, &next[i].comm);
    }
    for (int i = 0; i < 2; ++i) {
        collective("MPI_Allreduce", &next[i], "range");
        MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, next[i].comm);
    }
    for (int i = 0; i < 2; ++i) MPI_Comm_free(&next[i].comm);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    begin_saying(argv[1], &argc, &argv);
    if (size != 4) return 2;
    for (int i = 0; i < 4; ++i) types[i] = MPI_LONG;
    const int four = 4, yes = 1;
    Comm world = {MPI_COMM_WORLD, "world", 0},
         half = {MPI_COMM_NULL, rank < 2 ? "world/1.0" : "world/1.2", 0},
         ring = {MPI_COMM_NULL, "world/2.0", 0};
    Comm pair = {MPI_COMM_NULL, rank < 2 ? "world/1.0/1.0" : "world/1.2/1.2", 0},
         inter = {MPI_COMM_NULL, "?inter", 0};
    int mine;
    collective("MPI_Comm_split", &world, "range");
    MPI_Comm_split(world.comm, rank / 2, rank, &half.comm);
    MPI_Comm_rank(half.comm, &mine);
    collective("MPI_Cart_create", &world, "range");
    MPI_Cart_create(world.comm, 1, &four, &yes, 0, &ring.comm);
    collective("MPI_Comm_dup", &half, "range");
    MPI_Comm_dup(half.comm, &pair.comm);
    all_kinds(&world);
    all_kinds(&half);
    neighbors(&ring);
    together(&world, &pair);
    collective("MPI_Intercomm_create", &half, "range");
    MPI_Intercomm_create(half.comm, 0, world.comm, rank < 2 ? 2 : 0, 1, &inter.comm);
    between(&inter, mine, rank < 2);
    MPI_Comm_free(&inter.comm);
    MPI_Comm_free(&pair.comm);
    MPI_Comm_free(&ring.comm);
    MPI_Comm_free(&half.comm);
    behind_a_matched_one(&world);
    collective("MPI_Barrier", &world, "range");
    MPI_Barrier(world.comm);
    fclose(said);
    MPI_Finalize();
    return 0;
}
