// Loads what uses NCCL: a library that is linked to it, as Python loads torch's; or NCCL itself, whose functions are then looked up by name.
//
//     loader PLUGIN RANK SIZE FOLDER CASE
//     loader LIBNCCL                  says so, and waits for its end
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
    void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (argc == 2) {
        char unique[128];
        int (*const get)(void*) = (int (*)(void*))dlsym(library, "ncclGetUniqueId");
        if (get == NULL || get(unique) != 0) return 1;
        puts("called");
        fflush(stdout);
        pause();
    }
    int (*const job)(int, char**) = (int (*)(int, char**))dlsym(library, "nccl_job");
    return job != NULL ? job(argc - 1, argv + 1) : 1;
}
