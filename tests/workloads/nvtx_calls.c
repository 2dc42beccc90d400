// Every call of NVTX's core, once, each with a name of its own; in the order in which the test looks for them. Prints what the calls return,
// so that the test sees that tracing changes none of it. With "bench": nanoseconds of a push and a pop.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kDeep = 70, kRounds = 200000 };

static nvtxDomainHandle_t domain;
static nvtxRangeId_t across[5];

static uint32_t own_tid(void) {
    return (uint32_t)syscall(SYS_gettid);
}

static nvtxEventAttributes_t named(const char* text) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    return event;
}

static void payloads(void) {
    nvtxEventAttributes_t event = named("payload u64");
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event.payload.ullValue = 18446744073709551615ull;
    nvtxMarkEx(&event);
    event = named("payload i64");
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -5;
    nvtxMarkEx(&event);
    event = named("payload double");
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = 2.5;
    nvtxMarkEx(&event);
    event = named("payload u32");
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
    event.payload.uiValue = 4294967295u;
    nvtxMarkEx(&event);
    event = named("payload i32");
    event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    event.payload.iValue = -7;
    nvtxMarkEx(&event);
    event = named("payload float");
    event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    event.payload.fValue = 0.5f;
    nvtxMarkEx(&event);
    event = named("payload zero");
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    nvtxMarkEx(&event);
}

static void default_domain(void) {
    nvtxNameCategoryA(7, "category seven");
    nvtxNameCategoryW(8, L"category acht \u00e4");
    printf("push %d\n", nvtxRangePushA("push narrow"));
    printf("push %d\n", nvtxRangePushW(L"push wide \u00fc\u20ac\U0001f600"));
    nvtxEventAttributes_t event = named("push with all");
    event.category = 7;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff00;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -42;
    printf("push %d\n", nvtxRangePushEx(&event));
    event = named("");
    event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    event.message.unicode = L"push wide message";
    event.category = 8;
    printf("push %d\n", nvtxRangePushEx(&event));
    event.messageType = NVTX_MESSAGE_UNKNOWN;
    event.category = 9;
    printf("push %d\n", nvtxRangePushEx(&event));
    for (int i = 0; i < 5; ++i) printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());
    nvtxMarkA("mark narrow");
    nvtxMarkW(L"mark wide \u00df");
    payloads();
}

static void* other_thread(void* unused) {
    (void)unused;
    nvtxNameOsThreadW(own_tid(), L"w\u00f6rker of the test");
    nvtxRangePushA("on the other thread");
    nvtxRangeEnd(across[0]);
    nvtxRangeEnd(across[1]);
    nvtxRangeEnd(across[2]);
    nvtxDomainRangeEnd(domain, across[3]);
    nvtxRangePop();
    return NULL;
}

static void domains(void) {
    domain = nvtxDomainCreateA("domain narrow");
    nvtxDomainHandle_t wide = nvtxDomainCreateW(L"domain wide \u00f6");
    printf("same domain %d\n", domain == nvtxDomainCreateA("domain narrow"));
    nvtxStringHandle_t narrow_text = nvtxDomainRegisterStringA(domain, "registered narrow");
    nvtxStringHandle_t wide_text = nvtxDomainRegisterStringW(wide, L"registered wide \u00e9");
    nvtxDomainNameCategoryA(domain, 7, "seven of the domain");
    nvtxDomainNameCategoryW(wide, 7, L"sieben \u00fc");
    nvtxEventAttributes_t event = named(NULL);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = narrow_text;
    event.category = 7;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0x80ff0000;
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event.payload.ullValue = 42;
    // Two domains that do not nest in each other: each pop ends its own domain's range.
    nvtxRangePushA("default around");
    printf("push %d\n", nvtxDomainRangePushEx(domain, &event));
    nvtxRangePop();
    nvtxMarkA("between the pops");
    printf("pop %d\n", nvtxDomainRangePop(domain));
    event.message.registered = wide_text;
    nvtxDomainMarkEx(wide, &event);
    nvtxEventAttributes_t plain = named("in no domain by a null handle");
    nvtxDomainMarkEx(NULL, &plain);
    plain = named("started in the domain");
    plain.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    plain.payload.dValue = -1.25;
    across[3] = nvtxDomainRangeStartEx(domain, &plain);
    nvtxDomainDestroy(wide);
}

static void ranges_across_threads(void) {
    across[0] = nvtxRangeStartA("start narrow");
    across[1] = nvtxRangeStartW(L"start wide \u00e5");
    nvtxEventAttributes_t event = named("start with colour");
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff112233;
    across[2] = nvtxRangeStartEx(&event);
    across[4] = nvtxRangeStartA("started and never ended");
    nvtxRangeEnd(12345678901234ull);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
}

/// Deeper than what is recorded: the pops of what was passed over end nothing else.
static void too_deep(void) {
    nvtxRangePushA("below all");
    for (int i = 0; i < kDeep; ++i) nvtxRangePushA("deep");
    for (int i = 0; i < kDeep; ++i) nvtxRangePop();
    nvtxMarkA("back from the deep");
    nvtxRangePop();
    nvtxRangePushA("never popped");
}

static void bench(void) {
    struct timespec before, after;
    nvtxDomainHandle_t own = nvtxDomainCreateA("bench");
    nvtxEventAttributes_t event = named(NULL);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(own, "step");
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    for (int kind = 0; kind < 2; ++kind) {
        clock_gettime(CLOCK_MONOTONIC, &before);
        for (int i = 0; i < kRounds; ++i) {
            if (kind == 0) {
                nvtxRangePushA("x");
                nvtxRangePop();
            } else {
                nvtxDomainRangePushEx(own, &event);
                nvtxDomainRangePop(own);
            }
        }
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("%s %.2f\n", kind == 0 ? "plain" : "registered",
               ((double)(after.tv_sec - before.tv_sec) * 1e9 +
                (double)(after.tv_nsec - before.tv_nsec)) /
                   kRounds);
    }
}

int main(int count, char** words) {
    if (count > 1 && strcmp(words[1], "bench") == 0) {
        bench();
        return 0;
    }
    nvtxInitialize(NULL);
    nvtxNameOsThreadA(own_tid(), "main of nvtx_calls");
    default_domain();
    domains();
    ranges_across_threads();
    too_deep();
    return 0;
}
