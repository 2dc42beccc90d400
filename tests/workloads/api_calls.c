// Every call of the public API, built with nothing but its header. "calls": ranges, marks and the rest, in one process. "client" and "server":
// two processes over a pair of pipes; each request carries its id as text or as bytes, the server calls back into itself while it serves.
// "bench": nanoseconds of a push and a pop.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

enum { kRounds = 200000 };

struct message {
    char text[RINGSIDE_TEXT_BYTES];
    unsigned char bytes[RINGSIDE_BINARY_BYTES];
    char method[16];
    char last;
};

static ringside_attributes with(const char* domain, const char* category, unsigned colour) {
    ringside_attributes attributes = {0};
    attributes.size = sizeof attributes;
    attributes.domain = domain;
    attributes.category = category;
    attributes.colour = colour;
    return attributes;
}

static ringside_rpc rpc(const char* method, const char* peer, unsigned mode) {
    ringside_rpc what = {0};
    what.size = sizeof what;
    what.mode = mode;
    what.method = method;
    what.service = "api.Service";
    what.peer = peer;
    what.bytes = 100;
    return what;
}

static void* other_thread(void* id) {
    ringside_name_thread("named by the api");
    ringside_range_push("on the other thread");
    ringside_range_end(*(uint64_t*)id);
    ringside_range_pop();
    return NULL;
}

static ringside_name kept = RINGSIDE_NAME("range by a kept name");

static void calls(void) {
    ringside_name_thread("main of api_calls");
    ringside_attributes all = with("api domain", "api category", 0xff010203);
    all.payload_type = RINGSIDE_SIGNED;
    all.payload.i = -9;
    ringside_range_push("plain range");
    ringside_range_push_with("range with all", &all);
    ringside_range_pop_of("api domain");
    for (int i = 0; i < 2; ++i) {
        ringside_range_push_name(&kept);
        ringside_range_pop();
    }
    ringside_range_pop();
    ringside_range_pop();
    all.payload_type = RINGSIDE_DOUBLE;
    all.payload.d = 1.5;
    ringside_mark_with("mark with all", &all);
    ringside_mark("plain mark");
    ringside_counter("api counter", -12);
    ringside_attributes real = with(NULL, NULL, 0);
    real.payload_type = RINGSIDE_DOUBLE;
    real.payload.d = 0.25;
    ringside_counter_with("real counter", &real);
    for (int i = 0; i < 3; ++i) ringside_iteration("step");
    ringside_iteration("epoch");
    uint64_t id = ringside_range_start("across threads");
    uint64_t started = ringside_range_start_with("across with all", &all);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, &id);
    pthread_join(thread, NULL);
    ringside_range_end(started);
    ringside_range_push("never popped");
}

static int transfer(int fd, struct message* message, int out) {
    return (out ? write(fd, message, sizeof *message) : read(fd, message, sizeof *message)) ==
           (ssize_t)sizeof *message;
}

static void ask(int to, int from, const char* method, unsigned mode, int as_text, char last) {
    struct message message;
    memset(&message, 0, sizeof message);
    ringside_rpc what = rpc(method, "api_server", mode);
    ringside_call call = ringside_client_begin(&what);
    if (as_text) {
        ringside_inject_text(&call, message.text);
    } else {
        ringside_inject_binary(&call, message.bytes);
    }
    strncpy(message.method, method, sizeof message.method - 1);
    message.last = last;
    if (!transfer(to, &message, 1) || !transfer(from, &message, 0)) exit(3);
    ringside_client_end(&call, strcmp(method, "failing") == 0 ? RINGSIDE_ERROR : RINGSIDE_OK, 7);
}

static void client(int to, int from) {
    ringside_set_worker("api_client", 0);
    ask(to, from, "by_text", RINGSIDE_SYNC, 1, 0);
    ask(to, from, "by_bytes", RINGSIDE_ASYNC, 0, 0);
    ask(to, from, "nested", RINGSIDE_UNKNOWN, 1, 0);
    ask(to, from, "failing", RINGSIDE_SYNC, 1, 0);
    ask(to, from, "elsewhere", RINGSIDE_SYNC, 1, 1);
}

static void* serve_on_another_thread(void* call) {
    ringside_serve_on(call);
    ringside_range_push("work of elsewhere on another thread");
    ringside_range_pop();
    ringside_serve_off(call);
    return NULL;
}

/// What the handler does belongs to the request; what comes before and after it does not.
static void serve(struct message* message) {
    ringside_request id;
    char range[64];
    if (!ringside_extract_text(message->text, strlen(message->text), &id))
        ringside_extract_binary(message->bytes, sizeof message->bytes, &id);
    ringside_rpc what = rpc(message->method, "api_client", RINGSIDE_UNKNOWN);
    ringside_call call = ringside_server_begin(&id, &what);
    snprintf(range, sizeof range, "work of %s", message->method);
    ringside_range_push(range);
    if (strcmp(message->method, "nested") == 0) {
        // A call to itself, on the thread that serves.
        ringside_rpc inner = rpc("inner", "api_server", RINGSIDE_SYNC);
        ringside_call asked = ringside_client_begin(&inner);
        char text[RINGSIDE_TEXT_BYTES];
        ringside_inject_text(&asked, text);
        ringside_request inner_id;
        ringside_extract_text(text, strlen(text), &inner_id);
        ringside_call served = ringside_server_begin(&inner_id, &inner);
        ringside_range_push("work of inner");
        ringside_range_pop();
        ringside_server_end(&served, RINGSIDE_OK, 1);
        ringside_client_end(&asked, RINGSIDE_OK, 1);
        ringside_range_push("after inner");
        ringside_range_pop();
    }
    if (strcmp(message->method, "elsewhere") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve_on_another_thread, &call);
        pthread_join(thread, NULL);
    }
    ringside_range_pop();
    ringside_server_end(&call, RINGSIDE_OK, 7);
}

static void server(int to, int from) {
    struct message message;
    ringside_set_worker("api_server", 1);
    do {
        if (!transfer(from, &message, 0)) exit(4);
        ringside_range_push("between requests");
        ringside_range_pop();
        serve(&message);
        if (!transfer(to, &message, 1)) exit(5);
    } while (!message.last);
}

static int two_processes(void) {
    int request[2], answer[2], status = 0;
    if (pipe(request) != 0 || pipe(answer) != 0) return 2;
    const pid_t child = fork();
    if (child == 0) {
        server(answer[1], request[0]);
        exit(0);
    }
    client(request[1], answer[0]);
    waitpid(child, &status, 0);
    return status;
}

static void bench(void) {
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < kRounds; ++i) {
        ringside_range_push("x");
        ringside_range_pop();
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("pair %.2f\n", ((double)(after.tv_sec - before.tv_sec) * 1e9 +
                           (double)(after.tv_nsec - before.tv_nsec)) /
                              kRounds);
}

int main(int count, char** words) {
    if (count < 2) return 2;
    if (strcmp(words[1], "rpc") == 0) return two_processes();
    if (strcmp(words[1], "bench") == 0) {
        bench();
    } else {
        calls();
    }
    return 0;
}
