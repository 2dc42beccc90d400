/* The same in C: ringside.h over libzmq. front and back are children of the client; the id travels in a frame of its own.
 *
 *     zmq_calls FOLDER          prints each method that the client has called
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "inject/sources/api/ringside.h"

enum { kCalls = 60, kText = 128 };

static void* open_socket(void* context, int type, const char* folder, const char* name) {
    char address[256];
    void* socket = zmq_socket(context, type);
    snprintf(address, sizeof address, "ipc://%s/%s", folder, name);
    if (socket == NULL ||
        (type == ZMQ_REP ? zmq_bind(socket, address) : zmq_connect(socket, address)) != 0)
        abort();
    return socket;
}

/* @return its length; the text is NUL-terminated */
static int receive(void* socket, char text[kText]) {
    const int length = zmq_recv(socket, text, kText - 1, 0);
    if (length < 0 || length >= kText) abort();
    text[length] = 0;
    return length;
}

static int call(void* socket, const char* method, const char* peer, const char* body,
                char answer[kText]) {
    const ringside_rpc what = {sizeof what, RINGSIDE_SYNC, method, "zmq", peer, strlen(body)};
    const ringside_call half = ringside_client_begin(&what);
    char id[RINGSIDE_TEXT_BYTES], status[kText];
    int length;
    zmq_send(socket, method, strlen(method), ZMQ_SNDMORE);
    zmq_send(socket, id, ringside_inject_text(&half, id), ZMQ_SNDMORE);
    zmq_send(socket, body, strlen(body), 0);
    receive(socket, status);
    length = receive(socket, answer);
    ringside_client_end(&half, strcmp(status, "ok") == 0 ? RINGSIDE_OK : RINGSIDE_ERROR,
                        (uint64_t)length);
    return strcmp(status, "ok") == 0;
}

static void serve(const char* folder, const char* name, int number, int ready) {
    void* context = zmq_ctx_new();
    void* socket = open_socket(context, ZMQ_REP, folder, name);
    void* back = number == 1 ? open_socket(context, ZMQ_REQ, folder, "back") : NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ringside_set_worker(name, number);
    if (write(ready, "r", 1) != 1) abort();
    for (;;) {
        char method[kText], carried[kText], body[kText], inner[kText], range[2 * kText];
        ringside_request id;
        ringside_rpc what = {sizeof what, RINGSIDE_UNKNOWN, method, "zmq", NULL, 0};
        ringside_call half;
        int failed;
        receive(socket, method);
        ringside_extract_text(carried, (size_t)receive(socket, carried), &id);
        what.bytes = (uint64_t)receive(socket, body);
        if (strcmp(method, "leave") == 0) break;
        half = ringside_server_begin(&id, &what);
        snprintf(range, sizeof range, "work of %s", method);
        ringside_range_push(range);
        if (strncmp(method, "outer", 5) == 0) {
            snprintf(inner, sizeof inner, "inner%s", method + 5);
            call(back, inner, "back", body, body);
        }
        ringside_range_pop();
        failed = strncmp(method, "failing", 7) == 0;
        ringside_server_end(&half, failed ? RINGSIDE_ERROR : RINGSIDE_OK, strlen(body));
        zmq_send(socket, failed ? "failed" : "ok", failed ? 6 : 2, ZMQ_SNDMORE);
        zmq_send(socket, body, strlen(body), 0);
    }
    zmq_send(socket, "ok", 2, ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
    zmq_close(socket);
    if (back != NULL) zmq_close(back);
    zmq_ctx_term(context);
    exit(0);
}

int main(int count, char** arguments) {
    static const char* const kNames[] = {"front", "back"};
    static const char* const kMethods[] = {"plain", "outer", "failing"};
    void *context, *front, *back;
    char answer[kText], method[kText], byte;
    int ready[2], i, status;
    if (count != 2 || pipe(ready) != 0) return 2;
    for (i = 0; i < 2; ++i) {
        if (fork() == 0) serve(arguments[1], kNames[i], i + 1, ready[1]);
    }
    for (i = 0; i < 2; ++i) {
        if (read(ready[0], &byte, 1) != 1) return 1;
    }
    ringside_set_worker("client", 0);
    context = zmq_ctx_new();
    front = open_socket(context, ZMQ_REQ, arguments[1], "front");
    back = open_socket(context, ZMQ_REQ, arguments[1], "back");
    for (i = 0; i < kCalls; ++i) {
        snprintf(method, sizeof method, "%s_0_%d", kMethods[i % 3], i);
        if (call(front, method, "front", "abc", answer) == (i % 3 == 2)) return 1;
        puts(method);
    }
    /* No calls: their end. */
    for (i = 0; i < 2; ++i) {
        void* to = i == 0 ? front : back;
        zmq_send(to, "leave", 5, ZMQ_SNDMORE);
        zmq_send(to, "", 0, ZMQ_SNDMORE);
        zmq_send(to, "", 0, 0);
        receive(to, method);
        receive(to, answer);
        zmq_close(to);
    }
    zmq_ctx_term(context);
    for (i = 0; i < 2; ++i) {
        if (wait(&status) < 0 || status != 0) return 1;
    }
    return 0;
}
