// Functions for uftrace to record, as deep as big_dump's ranges: an outer one, one in it, two in that. functions CALLS
#include <stdlib.h>

static volatile int counter;

__attribute__((noinline)) static void first(void) {
    counter = counter + 1;
}
__attribute__((noinline)) static void second(void) {
    counter = counter - 1;
}
__attribute__((noinline)) static void inner(void) {
    first();
    second();
}
__attribute__((noinline)) static void outer(void) {
    inner();
}

int main(int argc, char** argv) {
    const long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    for (long i = 0; i < calls; ++i) outer();
    return 0;
}
