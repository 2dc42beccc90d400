/* The buffers of the fake libcupti: asked for when a record needs room, given back when they are full and complete, or at a flush. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_cupti.h"

size_t bytes_of(uint32_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return sizeof(Kernel);
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return sizeof(Memcpy);
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            return sizeof(CUpti_ActivityMemcpyPtoP4);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return sizeof(Memset);
        case CUPTI_ACTIVITY_KIND_DRIVER:
        case CUPTI_ACTIVITY_KIND_RUNTIME:
            return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
            return sizeof(Sync);
        case CUPTI_ACTIVITY_KIND_OVERHEAD:
            return sizeof(Overhead);
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
            return sizeof(Event);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return sizeof(CUpti_ActivityExternalCorrelation);
        default:
            return 0;
    }
}

/* --- what is asked for --- */

int asked(const char* word) {
    const char* at = getenv("FAKE_CUPTI");
    const size_t length = strlen(word);
    while (at != NULL && *at != 0) {
        if (strncmp(at, word, length) == 0 && (at[length] == 0 || at[length] == ',')) return 1;
        at = strchr(at, ',');
        if (at != NULL) ++at;
    }
    return 0;
}

int failure_of(uint32_t kind) {
    const char* at = getenv("FAKE_CUPTI");
    if (at == NULL || (at = strstr(at, "enable=")) == NULL) return 0;
    unsigned first = 0, second = 0;
    if (sscanf(at, "enable=%u:%u", &first, &second) == 2) return first == kind ? (int)second : 0;
    return sscanf(at, "enable=%u", &first) == 1 ? (int)first : 0;
}

void log_call(const char* name) {
    static char seen[64][64];
    static int count;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const char* path = getenv("FAKE_CUPTI_LOG");
    if (path == NULL) return;
    pthread_mutex_lock(&mutex);
    int known = 0;
    for (int i = 0; i < count; ++i) known |= strcmp(seen[i], name) == 0;
    if (!known && count < 64) {
        snprintf(seen[count++], 64, "%s", name);
        const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (file >= 0) {
            dprintf(file, "%s\n", name);
            close(file);
        }
    }
    pthread_mutex_unlock(&mutex);
}

/* --- buffers --- */

struct buffer {
    uint8_t* bytes;
    size_t size, used;
    int open_records; /* not complete */
    struct buffer* next;
};
struct open_record {
    struct buffer* buffer;
    size_t offset;
    uint64_t start, end;
    uint32_t stream;
};

struct fake_session session = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct buffer* current; /* being filled */
static struct buffer* full;    /* waits for its last records */
static struct open_record* opened;
static size_t open_count, open_room;

uint64_t now(void) {
    if (session.timestamp != NULL) return session.timestamp();
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Says how many kernels have gone back in all, once they have. */
static void log_kernels(unsigned more) {
    static unsigned kernels;
    char text[64];
    snprintf(text, sizeof text, "kernels:%u", __atomic_add_fetch(&kernels, more, __ATOMIC_RELAXED));
    log_call(text);
}
static unsigned kernels_in(const struct buffer* buffer) {
    unsigned count = 0;
    uint32_t kind = 0;
    for (size_t at = 0; at < buffer->used; at += bytes_of(kind)) {
        memcpy(&kind, buffer->bytes + at, sizeof kind);
        count += kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    }
    return count;
}

static void give_back(struct buffer* buffer) {
    const unsigned kernels = kernels_in(buffer);
#if SHARING
    if (session.shares) {
        CUpti_BufferCallbackCompleteInfo info = {sizeof info, 0, NULL, 0};
        session.completed2(buffer->bytes, buffer->size, buffer->used, &info);
    } else
#endif
        session.completed(NULL, 0, buffer->bytes, buffer->size, buffer->used);
    free(buffer);
    if (kernels != 0) log_kernels(kernels);
}

enum { FULL_ONLY = -1, DEFAULT = 0, FORCED = 1 };
/* @return buffers that go back, to be given outside the lock */
static struct buffer* take_complete(int how) {
    struct buffer* done = NULL;
    const int forced = how == FORCED;
    if (current != NULL && how != FULL_ONLY && (forced || current->open_records == 0)) {
        current->next = full;
        full = current;
        current = NULL;
    }
    for (struct buffer** at = &full; *at != NULL;) {
        struct buffer* one = *at;
        if (!forced && one->open_records != 0) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = done;
        done = one;
    }
    if (forced) open_count = 0;
    return done;
}

static void give_all(struct buffer* done) {
    while (done != NULL) {
        struct buffer* next = done->next;
        give_back(done);
        done = next;
    }
}

static void* give_on_worker(void* done) {
    give_all(done);
    return NULL;
}
void give_full(void) {
    pthread_mutex_lock(&session.mutex);
    struct buffer* done = take_complete(FULL_ONLY);
    pthread_mutex_unlock(&session.mutex);
    pthread_t worker;
    if (done != NULL && pthread_create(&worker, NULL, give_on_worker, done) == 0)
        pthread_join(worker, NULL);
}

static struct buffer* ask_for_buffer(void) {
    struct buffer* made = calloc(1, sizeof *made);
    size_t most = 0;
#if SHARING
    CUpti_BufferCallbackRequestInfo info = {sizeof info};
    if (session.shares)
        session.requested2(&made->bytes, &made->size, &most, &info);
    else
#endif
        session.requested(&made->bytes, &made->size, &most);
    if (made->bytes != NULL && !asked("no_buffers")) return made;
    if (made->bytes != NULL)
        give_back(made);
    else
        free(made);
    return NULL;
}

void* put(uint32_t kind) {
    const size_t bytes = bytes_of(kind);
    if ((session.kinds >> kind & 1) == 0) return NULL;
    if (current != NULL && current->used + bytes > current->size) {
        current->next = full;
        full = current;
        current = NULL;
    }
    if (current == NULL) current = ask_for_buffer();
    if (current == NULL) {
        ++session.dropped;
        return NULL;
    }
    void* record = current->bytes + current->used;
    memset(record, 0, bytes);
    memcpy(record, &kind, sizeof kind);
    current->used += bytes;
    return record;
}

void open_last(const void* record, uint64_t start, uint64_t end, uint32_t stream) {
    if (open_count == open_room) {
        open_room = open_room != 0 ? 2 * open_room : 64;
        opened = realloc(opened, open_room * sizeof *opened);
    }
    opened[open_count++] = (struct open_record){
        current, (size_t)((const uint8_t*)record - current->bytes), start, end, stream};
    ++current->open_records;
}

static void set_times(uint8_t* record, uint64_t start, uint64_t end) {
    uint32_t kind = 0;
    memcpy(&kind, record, sizeof kind);
#define SET(type) (((type*)record)->start = start, ((type*)record)->end = end)
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) SET(Kernel);
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) SET(Memcpy);
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2) SET(CUpti_ActivityMemcpyPtoP4);
    if (kind == CUPTI_ACTIVITY_KIND_MEMSET) SET(Memset);
#undef SET
}

void finish_work(int64_t stream) {
    size_t left = open_count;
    while (left > 0) {
        struct open_record* one = &opened[--left];
        if (stream != ALL_STREAMS && one->stream != stream) continue;
        set_times(one->buffer->bytes + one->offset, one->start, one->end);
        --one->buffer->open_records;
        memmove(one, one + 1, (--open_count - left) * sizeof *one);
    }
}

void flush(int forced) {
    pthread_mutex_lock(&session.mutex);
    if (!asked("never") && (forced || (!asked("late") && !asked("streams"))))
        finish_work(ALL_STREAMS);
    struct buffer* done = take_complete(forced ? FORCED : DEFAULT);
    pthread_mutex_unlock(&session.mutex);
    give_all(done);
}
