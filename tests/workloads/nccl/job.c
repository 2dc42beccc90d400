// One rank of a job of NCCL's: collectives on a communicator, on halves of it, in groups; or the last rank stays away.
//
//     job RANK SIZE FOLDER calls | hang
//
// FOLDER/log.RANK   a line a collective, in the order of the calls: the communicator's name here, the function
// FOLDER/unique.N   unique ids, told by rank 0
// hang: in.N is there right before rank N's last call, away before the last rank waits for come
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_nccl.h"

static const char* folder;
static FILE* log_file;

static void said(const char* comm, const char* function) {
    fprintf(log_file, "%s %s\n", comm, function);
}

#define CALL(comm_name, function, ...)                 \
    do {                                               \
        said(comm_name, #function);                    \
        if (function(__VA_ARGS__) != 0) {              \
            fprintf(stderr, "%s failed\n", #function); \
            exit(1);                                   \
        }                                              \
    } while (0)

static void path_of(char* path, const char* name, int number) {
    snprintf(path, 256, "%s/%s.%d", folder, name, number);
}

static void tell(const char* name, int number, const void* bytes, size_t count) {
    char path[256], aside[260];
    path_of(path, name, number);
    snprintf(aside, sizeof aside, "%s.tmp", path);
    FILE* const file = fopen(aside, "w");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0 ||
        rename(aside, path) != 0)
        exit(1);
}

static void await(const char* name, int number, void* bytes, size_t count) {
    char path[256];
    path_of(path, name, number);
    FILE* file;
    const struct timespec pause = {0, 500000};
    while ((file = fopen(path, "r")) == NULL) nanosleep(&pause, NULL);
    if (fread(bytes, 1, count, file) != count) exit(1);
    fclose(file);
}

static ncclUniqueId unique_id(int rank, int number) {
    ncclUniqueId id;
    if (rank == 0) {
        ncclGetUniqueId(&id);
        tell("unique", number, &id, sizeof id);
    } else {
        await("unique", number, &id, sizeof id);
    }
    return id;
}

static void calls(ncclComm_t world, int rank, int size) {
    char buffer[64];
    for (int i = 0; i < 5; ++i) CALL("world", ncclAllReduce, buffer, buffer, 1, 0, 0, world, NULL);
    ncclGroupStart();
    CALL("world", ncclBroadcast, buffer, buffer, 1, 0, 0, world, NULL);
    ncclGroupStart();
    CALL("world", ncclReduce, buffer, buffer, 1, 0, 0, 0, world, NULL);
    ncclGroupEnd();
    ncclGroupEnd();

    ncclComm_t half = NULL, nothing = NULL, second = NULL, own[2];
    const char* const name = rank % 2 == 0 ? "even" : "odd";
    CALL("world", ncclCommSplit, world, rank % 2, rank, &half, NULL);
    CALL("world", ncclCommSplit, world, -1, rank, &nothing, NULL);
    for (int i = 0; i < 3; ++i) CALL(name, ncclReduceScatter, buffer, buffer, 1, 0, 0, half, NULL);
    // The same halves once more are others.
    ncclCommDestroy(half);
    CALL("world", ncclCommSplit, world, rank % 2, rank, &half, NULL);
    CALL(rank % 2 == 0 ? "evens" : "odds", ncclAllGather, buffer, buffer, 1, 0, half, NULL);

    // Made in a group; by another unique id.
    ncclGroupStart();
    CALL("second", ncclCommInitRankConfig, &second, size, unique_id(rank, 1), rank, NULL);
    ncclGroupEnd();
    CALL("second", ncclAllGather, buffer, buffer, 1, 0, second, NULL);
    ncclSend(buffer, 1, 0, (rank + 1) % size, second, NULL);
    ncclRecv(buffer, 1, 0, (rank + size - 1) % size, second, NULL);
    ncclCommDestroy(second);

    ncclCommInitAll(own, 2, NULL);
    ncclGroupStart();
    CALL("own", ncclAllGather, buffer, buffer, 1, 0, own[0], NULL);
    ncclAllGather(buffer, buffer, 1, 0, own[1], NULL);
    ncclGroupEnd();

    CALL("world", ncclAllReduce, buffer, buffer, 1, 0, 0, world, NULL);
    ncclCommDestroy(half);
}

static void hang(ncclComm_t world, int rank, int size) {
    char buffer[64], come;
    for (int i = 0; i < 5; ++i) ncclAllReduce(buffer, buffer, 1, 0, 0, world, NULL);
    tell(rank == size - 1 ? "away" : "in", rank, "", 0);
    if (rank == size - 1) await("come", 0, &come, 0);
    ncclGroupStart();
    ncclAllReduce(buffer, buffer, 1, 0, 0, world, NULL);
    ncclGroupStart();
    ncclGroupEnd();
    ncclGroupEnd();
}

int nccl_job(int argc, char** argv) {
    if (argc != 5) return 2;
    const int rank = atoi(argv[1]), size = atoi(argv[2]);
    folder = argv[3];
    char path[256];
    path_of(path, "log", rank);
    log_file = fopen(path, "w");
    if (log_file == NULL) return 1;
    ncclComm_t world = NULL;
    CALL("world", ncclCommInitRank, &world, size, unique_id(rank, 0), rank);
    (strcmp(argv[4], "hang") == 0 ? hang : calls)(world, rank, size);
    ncclCommDestroy(world);
    return fclose(log_file);
}

#ifndef PLUGIN
int main(int argc, char** argv) {
    return nccl_job(argc, argv);
}
#endif
