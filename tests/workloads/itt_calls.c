// Every call of ITT that is recorded, once, each with a name of its own. Linked with ITT's real static part.
#define INTEL_ITTNOTIFY_API_PRIVATE
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __itt_domain* domain;
static __itt_id across[2];

static __itt_string_handle* text(const char* name) {
    return __itt_string_handle_create(name);
}

static void tasks(void) {
    __itt_domain* again = __itt_domain_create("itt domain");
    printf("same %d %d\n", domain == again, text("one") == text("one"));
    __itt_domain* second = __itt_domain_create("itt second");
    __itt_task_begin(domain, __itt_null, __itt_null, text("outer task"));
    __itt_task_begin(second, __itt_null, __itt_null, text("task of the second"));
    __itt_task_begin(domain, __itt_null, __itt_null, text("inner task"));
    __itt_task_end(domain);
    __itt_task_end(domain);
    __itt_marker(domain, __itt_null, text("between the ends"), __itt_scope_task);
    __itt_task_end(second);
    __itt_task_end(second);
    __itt_task_begin_ex(domain, NULL, 0, __itt_null, __itt_null, text("task with a clock"));
    __itt_task_end_ex(domain, NULL, 0);
    __itt_task_begin_fn(domain, __itt_null, __itt_null, (void*)0x1234);
    __itt_task_end(domain);
    __itt_marker_ex(domain, NULL, 0, __itt_null, text("marker with a clock"), __itt_scope_global);
    second->flags = 0;
    __itt_task_begin(second, __itt_null, __itt_null, text("of a domain that is off"));
    __itt_task_end(second);
}

static void* other_thread(void* unused) {
    (void)unused;
    __itt_thread_set_name("named by itt");
    __itt_task_begin(domain, __itt_null, __itt_null, text("on the other thread"));
    __itt_task_end_overlapped(domain, across[0]);
    __itt_region_end(domain, across[1]);
    __itt_task_end(domain);
    return NULL;
}

static void pairs(void) {
    across[0] = __itt_id_make(across, 1);
    across[1] = __itt_id_make(across, 1);
    __itt_task_begin_overlapped(domain, across[0], __itt_null, text("overlapped task"));
    __itt_region_begin(domain, across[1], __itt_null, text("region"));
    __itt_id ours = __itt_id_make(across, 2);
    __itt_task_begin_overlapped_ex(domain, NULL, 0, ours, __itt_null,
                                   text("overlapped with a clock"));
    __itt_task_end_overlapped_ex(domain, NULL, 0, ours);
    __itt_frame_begin_v3(domain, NULL);
    __itt_frame_end_v3(domain, NULL);
    __itt_frame_begin_v3(domain, &ours);
    __itt_frame_end_v3(domain, &ours);
    __itt_region_end(domain, __itt_id_make(across, 99));
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
}

static void events_and_counters(void) {
    __itt_event event = __itt_event_create("itt event", (int)strlen("itt event"));
    __itt_event again = __itt_event_create("itt event", (int)strlen("itt event"));
    printf("same event %d\n", event == again);
    __itt_event_start(event);
    __itt_event_end(event);
    __itt_counter counter = __itt_counter_create("counter", "itt domain");
    __itt_counter_inc(counter);
    __itt_counter_inc_delta(counter, 9);
    __itt_counter_dec(counter);
    __itt_counter_dec_delta(counter, 20);
    unsigned long long set = 77;
    __itt_counter_set_value(counter, &set);
    double real = 2.75;
    __itt_counter_set_value(
        __itt_counter_create_typed("double counter", "itt domain", __itt_metadata_double), &real);
    short narrow = -3;
    __itt_counter_set_value(__itt_counter_create_typed("narrow counter", NULL, __itt_metadata_s16),
                            &narrow);
}

int main(void) {
    domain = __itt_domain_create("itt domain");
    __itt_task_begin(domain, __itt_null, __itt_null, text("first call"));
    __itt_task_end(domain);
    __itt_thread_set_name("main of itt_calls");
    tasks();
    pairs();
    events_and_counters();
    __itt_task_begin(domain, __itt_null, __itt_null, text("never ended"));
    return 0;
}
