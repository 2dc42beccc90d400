// A range as uftrace records it: a function that is built with -finstrument-functions.
#pragma once

extern "C" void ringside_bench_instrumented();
