/* Calls it, as a program of that version would: prints what it answers, and stays until it is ended. */
#include <stdio.h>
#include <unistd.h>

const char* grpc_version_string(void);
int grpc_call_start_batch(void* call, const void* ops, unsigned long count, void* tag,
                          void* reserved);

int main(void) {
    printf("%s %d\n", grpc_version_string(), grpc_call_start_batch(0, 0, 0, 0, 0));
    fflush(stdout);
    pause();
    return 0;
}
