// counting BOARD THREADS: each thread's place counts on for ever, every number one record, and says on the board which number it is at:
// `begun` before the record, `done` behind it. A thread lives for some thousand numbers, then another one goes on in its place.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

enum { kPlaces = 8, kOneLife = 3000 };

struct place {
    _Atomic uint64_t begun;
    _Atomic uint64_t done;
};
static struct place* board;

static void* one_life(void* of) {
    struct place* place = of;
    const uint64_t number = (uint64_t)(place - board) << 48;
    for (int i = 0; i < kOneLife; ++i) {
        const uint64_t n = atomic_load(&place->done);
        atomic_store(&place->begun, n + 1);
        ringside_counter("number", (int64_t)(number | n));
        atomic_store(&place->done, n + 1);
    }
    return NULL;
}

static void* all_lives(void* place) {
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_life, place) != 0) abort();
        pthread_join(thread, NULL);
    }
}

int main(int count, char** words) {
    if (count != 3) return 2;
    const int file = open(words[1], O_RDWR);
    const int threads = atoi(words[2]);
    if (file < 0 || threads < 1 || threads > kPlaces) return 2;
    board = mmap(NULL, kPlaces * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED) return 2;
    close(file);
    pthread_t others[kPlaces];
    for (int i = 0; i < threads; ++i) {
        if (pthread_create(&others[i], NULL, all_lives, &board[i]) != 0) return 2;
    }
    for (;;) pause();
}
