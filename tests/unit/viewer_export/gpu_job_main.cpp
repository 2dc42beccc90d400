// gpu_job RANKS DIRECTORY: makes a GPU job's dumps, for tests of the command.
#include <cstdlib>

#include "gpu_job.hpp"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    ringside::tests::write_gpu_job(argv[2], std::atoi(argv[1]));
    return 0;
}
