// A library by the standard ABI's name, and the program that calls it: it says so, and waits for its end.
// NOLINTBEGIN(readability-identifier-naming): MPI's own name
#ifdef LIBRARY
int MPI_Init(int* argc, char*** argv) {
    return *argc < 1 || *argv == 0;
}
#else
#include <stdio.h>
#include <unistd.h>

int MPI_Init(int* argc, char*** argv);
// NOLINTEND(readability-identifier-naming)

int main(int argc, char** argv) {
    if (MPI_Init(&argc, &argv) != 0) return 1;
    puts("called");
    fflush(stdout);
    pause();
    return 0;
}
#endif
