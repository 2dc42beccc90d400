// What of nccl.h the fake and its programs use.
#pragma once

#include <stddef.h>

typedef struct ncclComm* ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef int ncclResult_t;

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    void* config);
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, void* config);
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, int type, int op,
                           ncclComm_t comm, void* stream);
ncclResult_t ncclReduce(const void* from, void* to, size_t count, int type, int op, int root,
                        ncclComm_t comm, void* stream);
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, int type, int op,
                               ncclComm_t comm, void* stream);
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                           ncclComm_t comm, void* stream);
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, int type, ncclComm_t comm,
                           void* stream);
ncclResult_t ncclSend(const void* from, size_t count, int type, int peer, ncclComm_t comm,
                      void* stream);
ncclResult_t ncclRecv(void* to, size_t count, int type, int peer, ncclComm_t comm, void* stream);
