#include "instrumented.hpp"

void ringside_bench_instrumented() {
    asm volatile("" ::: "memory");
}
