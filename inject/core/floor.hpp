// The oldest C library that the shim loads on: glibc 2.17. A newer one to build with hands out its newest versions of functions that moved between
// libraries (2.34) or whose structures grew; these are pinned to the first version, which every x86-64 glibc has. Included into every source of
// the shim by the compiler's command line (inject/meson.build); a check on the built library (tests/lint/shim.py) says when one is missing.
#pragma once

// Nothing of this is for a source that defines one of them: loader_watch.cpp exports dlopen and dlsym.
#define RINGSIDE_PIN(function) __asm__(".symver " #function "," #function "@GLIBC_2.2.5")

RINGSIDE_PIN(dlvsym);
RINGSIDE_PIN(pthread_attr_setstacksize);
RINGSIDE_PIN(pthread_create);
RINGSIDE_PIN(pthread_join);
RINGSIDE_PIN(pthread_key_create);
RINGSIDE_PIN(pthread_mutex_timedlock);
RINGSIDE_PIN(pthread_mutex_trylock);
RINGSIDE_PIN(pthread_setspecific);

#undef RINGSIDE_PIN
