// What the MPI workloads share: a communicator with the label that records ought to have, and the log of what a rank has done, by the program's own
// knowledge alone: each message is one number (sender * 1000000 + serial), so who has received it from whom needs no counting of messages.
//
//   S function label tag payload      a message was sent
//   R function label tag payload      it has arrived
//   C function label number kind      a collective was begun there, the number-th; kind: range, or async where it does not block
//
// A label that begins with ? is one that nobody can foretell: equal at all members, and of no other communicator.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    MPI_Comm comm;
    const char* label;
    long collectives;
} Comm;

static FILE* said;
static int rank, size;

static inline long next_payload(void) {
    static long serial = 0;
    return rank * 1000000L + ++serial;
}
static inline void sent(const char* function, const Comm* on, int tag, long payload) {
    fprintf(said, "S %s %s %d %ld\n", function, on->label, tag, payload);
}
static inline void received(const char* function, const Comm* on, const MPI_Status* status,
                            long payload) {
    fprintf(said, "R %s %s %d %ld\n", function, on->label, status->MPI_TAG, payload);
}
static inline void collective(const char* function, Comm* on, const char* kind) {
    fprintf(said, "C %s %s %ld %s\n", function, on->label, ++on->collectives, kind);
}

#define SEND(FUNCTION, ON, TO, TAG)                                    \
    do {                                                               \
        long payload_ = next_payload();                                \
        FUNCTION(&payload_, 1, MPI_LONG, (TO), (TAG), (ON)->comm);     \
        if ((TO) != MPI_PROC_NULL) sent(#FUNCTION, ON, TAG, payload_); \
    } while (0)
#define ISEND(FUNCTION, ON, TO, TAG, BOX, REQUEST)                        \
    do {                                                                  \
        *(BOX) = next_payload();                                          \
        FUNCTION((BOX), 1, MPI_LONG, (TO), (TAG), (ON)->comm, (REQUEST)); \
        sent(#FUNCTION, ON, TAG, *(BOX));                                 \
    } while (0)

static inline void receive(const Comm* on, int from, int tag) {
    long payload = -1;
    MPI_Status status;
    MPI_Recv(&payload, 1, MPI_LONG, from, tag, on->comm, &status);
    received("MPI_Recv", on, &status, payload);
}

static void begin_saying(const char* path, int* argc, char*** argv) {
    char name[4096];
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "%s.%d", path, rank);
    said = fopen(name, "w");
    if (said == NULL) abort();
    setvbuf(said, NULL, _IOLBF, 0);  // what a killed rank has done is in it
}
