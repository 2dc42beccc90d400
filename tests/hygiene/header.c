/* All that ringside.h has, called once, in the words that C99 and C++98 share; header.py compiles it as either and runs it without us. Exit status 0: nothing
 * happened. */
#include "inject/sources/api/ringside.h"

static int rpcs_are_nothing(void) {
    static const char sent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    char text[RINGSIDE_TEXT_BYTES];
    uint8_t bytes[RINGSIDE_BINARY_BYTES];
    ringside_request id;
    ringside_rpc what;
    ringside_call client, server;
    memset(&what, 0, sizeof what);
    what.size = (uint32_t)sizeof what;
    what.mode = RINGSIDE_SYNC;
    what.method = "method";
    client = ringside_client_begin(&what);
    if (client.key != 0 || client.id.span != 0) return 1;
    if (ringside_inject_text(&client, text) != 0 || text[0] != 0) return 2;
    if (ringside_inject_binary(&client, bytes) != 0) return 3;
    /* Another tracer's id is read all the same, and goes on to nobody. */
    if (!ringside_extract_text(sent, strlen(sent), &id) || id.span == 0) return 4;
    if (ringside_extract_binary(sent, strlen(sent), &id) || id.span != 0) return 5;
    server = ringside_server_begin(&id, &what);
    ringside_serve_off(&server);
    ringside_serve_on(&server);
    ringside_server_end(&server, RINGSIDE_ERROR, 1);
    ringside_client_end(&client, RINGSIDE_OK, 1);
    return server.key != 0 ? 6 : 0;
}

int main(void) {
    static ringside_name kept = RINGSIDE_NAME("kept");
    ringside_attributes all;
    memset(&all, 0, sizeof all);
    all.size = (uint32_t)sizeof all;
    all.domain = "domain";
    all.payload_type = RINGSIDE_DOUBLE;
    all.payload.d = 1.5;
    if (ringside_active() || ringside_functions_here()->size != 0) return 7;
    ringside_name_thread("thread");
    ringside_set_worker("worker", 1);
    ringside_range_push("range");
    ringside_range_push(NULL);
    ringside_range_push_with("range", &all);
    ringside_range_push_name(&kept);
    ringside_range_push_name(NULL);
    ringside_range_pop_of("domain");
    ringside_range_pop();
    if (ringside_range_start("range") != 0 || ringside_range_start_with("range", &all) != 0)
        return 8;
    ringside_range_end(0);
    ringside_mark("mark");
    ringside_mark_with("mark", &all);
    ringside_counter("counter", -1);
    ringside_counter_with("counter", &all);
    ringside_iteration("iteration");
    return kept.known != 0 ? 9 : rpcs_are_nothing();
}
