// A libnccl.so.2 for machines without GPUs: the functions that tests call, with NCCL's own signatures, between the processes of one host. A communicator is a
// shared file named by its unique id; its making and each collective wait for all members, as NCCL's first ones do, which connect them. In a group they wait
// in ncclGroupEnd(). Nothing is computed.
//
//     FAKE_NCCL   where unique ids' files go
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_nccl.h"

enum { kMostRanks = 16, kMostGrouped = 16, kBadArgument = 4 };  // ncclInvalidArgument

struct Shared {
    _Atomic uint64_t arrived;
    _Atomic int colors[kMostRanks];
};

struct ncclComm {
    struct Shared* shared;
    char path[96];
    int size, rank;
    uint64_t wanted, splits;
};

static _Thread_local int depth;
static _Thread_local int grouped_count;
static _Thread_local struct ncclComm* grouped[kMostGrouped];

static void arrive(struct ncclComm* comm) {
    comm->wanted += (uint64_t)comm->size;
    atomic_fetch_add(&comm->shared->arrived, 1);
}

static void wait_for_others(const struct ncclComm* comm) {
    const struct timespec pause = {0, 50000};
    while (atomic_load(&comm->shared->arrived) < comm->wanted) nanosleep(&pause, NULL);
}

static void wait_for_all(struct ncclComm* comm) {
    arrive(comm);
    wait_for_others(comm);
}

static ncclResult_t take_part(struct ncclComm* comm) {
    if (comm == NULL || (depth > 0 && grouped_count == kMostGrouped)) return kBadArgument;
    if (depth > 0)
        grouped[grouped_count++] = comm;
    else
        wait_for_all(comm);
    return 0;
}

static struct ncclComm* open_comm(const char* path, int size, int rank) {
    struct ncclComm* comm = calloc(1, sizeof *comm);
    snprintf(comm->path, sizeof comm->path, "%s", path);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct Shared)) != 0) abort();
    comm->shared = mmap(NULL, sizeof(struct Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    comm->size = size;
    comm->rank = rank;
    return comm;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static int count;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/%d.%d", getenv("FAKE_NCCL"), (int)getpid(),
             ++count);
    return 0;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    void* config) {
    if (size > kMostRanks || rank < 0 || rank >= size) return kBadArgument;
    *comm = open_comm(id.internal, size, rank);
    return take_part(*comm);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(comm, size, id, rank, NULL);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    for (int i = 0; i < count; ++i) comms[i] = open_comm(id.internal, count, i);
    return 0;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, void* config) {
    char path[sizeof comm->path + 32];
    atomic_store(&comm->shared->colors[comm->rank], color);
    wait_for_all(comm);
    int size = 0, rank = 0;
    for (int i = 0; i < comm->size; ++i) {
        if (atomic_load(&comm->shared->colors[i]) != color) continue;
        rank += i < comm->rank;
        ++size;
    }
    wait_for_all(comm);
    snprintf(path, sizeof path, "%s.%d.%d", comm->path, (int)++comm->splits, color);
    *made = color < 0 ? NULL : open_comm(path, size, rank);
    return 0;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    *count = comm->size;
    return 0;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    *rank = comm->rank;
    return 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    munmap(comm->shared, sizeof *comm->shared);
    free(comm);
    return 0;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    return ncclCommDestroy(comm);
}

ncclResult_t ncclGroupStart(void) {
    ++depth;
    return 0;
}

ncclResult_t ncclGroupEnd(void) {
    if (depth == 0) return kBadArgument;
    if (--depth > 0) return 0;
    for (int i = 0; i < grouped_count; ++i) arrive(grouped[i]);
    for (int i = 0; i < grouped_count; ++i) wait_for_others(grouped[i]);
    grouped_count = 0;
    return 0;
}

// A message waits for nobody here.
ncclResult_t ncclSend(const void* from, size_t count, int type, int peer, ncclComm_t comm,
                      void* stream) {
    return peer < comm->size ? 0 : kBadArgument;
}

ncclResult_t ncclRecv(void* to, size_t count, int type, int peer, ncclComm_t comm, void* stream) {
    return peer < comm->size ? 0 : kBadArgument;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, int type, int op,
                           ncclComm_t comm, void* stream) {
    return take_part(comm);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, int type, int op, int root,
                        ncclComm_t comm, void* stream) {
    return root < comm->size ? take_part(comm) : kBadArgument;
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, int type, int op,
                               ncclComm_t comm, void* stream) {
    return take_part(comm);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                           ncclComm_t comm, void* stream) {
    return root < comm->size ? take_part(comm) : kBadArgument;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, int type, ncclComm_t comm,
                           void* stream) {
    return take_part(comm);
}
