// Another tool, as the standard means them: it defines some of MPI's functions itself, counts, and goes on by PMPI. PMPI_COUNTS.<rank> says how often
// each was called.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNTED(X)                                                                                \
    X(Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),                  \
      (b, n, t, to, tag, c))                                                                      \
    X(Ssend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),                 \
      (b, n, t, to, tag, c))                                                                      \
    X(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r), \
      (b, n, t, to, tag, c, r))                                                                   \
    X(Recv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s),       \
      (b, n, t, from, tag, c, s))                                                                 \
    X(Irecv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),     \
      (b, n, t, from, tag, c, r))                                                                 \
    X(Sendrecv,                                                                                   \
      (const void* b, int n, MPI_Datatype t, int to, int tag, void* d, int m, MPI_Datatype u,     \
       int from, int its, MPI_Comm c, MPI_Status* s),                                             \
      (b, n, t, to, tag, d, m, u, from, its, c, s))                                               \
    X(Waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s))                               \
    X(Barrier, (MPI_Comm c), (c))                                                                 \
    X(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))          \
    X(Reduce, (const void* b, void* d, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),    \
      (b, d, n, t, o, root, c))                                                                   \
    X(Allreduce, (const void* b, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),           \
      (b, d, n, t, o, c))                                                                         \
    X(Scan, (const void* b, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),                \
      (b, d, n, t, o, c))

#define COUNTER(NAME, PARAMETERS, ARGUMENTS) \
    static long count_##NAME;                \
    int MPI_##NAME PARAMETERS {              \
        ++count_##NAME;                      \
        return PMPI_##NAME ARGUMENTS;        \
    }
COUNTED(COUNTER)

int MPI_Finalize(void) {
    int rank;
    char name[4096];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s.%d", getenv("PMPI_COUNTS"), rank);
    FILE* file = fopen(name, "w");
#define TELL(NAME, PARAMETERS, ARGUMENTS) fprintf(file, "MPI_" #NAME " %ld\n", count_##NAME);
    COUNTED(TELL)
    fclose(file);
    return PMPI_Finalize();
}
