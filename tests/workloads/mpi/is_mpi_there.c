// A program without MPI that asks whether there is one, in the ways that libraries do.
#include <dlfcn.h>
#include <stdio.h>

// NOLINTBEGIN(readability-identifier-naming): MPI's own names
extern int MPI_Initialized(int*) __attribute__((weak));
extern int PMPI_Send(void) __attribute__((weak));
// NOLINTEND(readability-identifier-naming)

int main(void) {
    printf("%d %d %d\n", MPI_Initialized != NULL, PMPI_Send != NULL,
           dlsym(RTLD_DEFAULT, "MPI_Send") != NULL);
    return 0;
}
