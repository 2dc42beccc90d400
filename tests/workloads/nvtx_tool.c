// Another NVTX tool, as a user may have set one before Ringside came: writes down the calls that it gets, with handles and depths of its own.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handle {
    char kind;
    char text[64];
};
static FILE* out;
static int depth;
static nvtxRangeId_t next_id = 1000;

static struct handle* make(char kind, const char* text) {
    struct handle* made = calloc(1, sizeof *made);
    made->kind = kind;
    strncpy(made->text, text, sizeof made->text - 1);
    return made;
}

/// Aborts where the handle is not one of ours: then somebody has handed on his own.
static const char* text_of(const void* handle, char kind) {
    if (handle == NULL) return "";
    if (((const struct handle*)handle)->kind != kind) abort();
    return ((const struct handle*)handle)->text;
}

static const char* message(const nvtxEventAttributes_t* event) {
    if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
        return text_of(event->message.registered, 's');
    return event->messageType == NVTX_MESSAGE_TYPE_ASCII ? event->message.ascii : "other";
}

static int push(const char* text) {
    fprintf(out, "push %s\n", text);
    return depth++;
}
static int push_ex(const nvtxEventAttributes_t* event) {
    return push(message(event));
}
static int pop(void) {
    fprintf(out, "pop\n");
    return --depth;
}
static nvtxRangeId_t start(const char* text) {
    fprintf(out, "start %s\n", text);
    return next_id++;
}
static void end(nvtxRangeId_t id) {
    fprintf(out, "end %d\n", (int)id);
}
static nvtxDomainHandle_t create(const char* name) {
    fprintf(out, "domain %s\n", name);
    return (nvtxDomainHandle_t)make('d', name);
}
static nvtxStringHandle_t add_string(nvtxDomainHandle_t domain, const char* text) {
    fprintf(out, "string %s of %s\n", text, text_of(domain, 'd'));
    return (nvtxStringHandle_t)make('s', text);
}
static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
    fprintf(out, "push %s in %s, category %u, payload %llu\n", message(event), text_of(domain, 'd'),
            event->category, (unsigned long long)event->payload.ullValue);
    return 100;
}
static int domain_pop(nvtxDomainHandle_t domain) {
    fprintf(out, "pop in %s\n", text_of(domain, 'd'));
    return 99;
}
static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
    fprintf(out, "start %s in %s\n", message(event), text_of(domain, 'd'));
    return next_id++;
}
static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
    fprintf(out, "end %d in %s\n", (int)id, text_of(domain, 'd'));
}

// NOLINTNEXTLINE(readability-identifier-naming): the interface's own name
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const char* path = getenv("NVTX_TOOL_LOG");
    if (out == NULL && (path == NULL || (out = fopen(path, "w")) == NULL)) return 0;
    setvbuf(out, NULL, _IOLBF, 0);
    const NvtxExportTableCallbacks* callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned int size;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePushEx] = (NvtxFunctionPointer)push_ex;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)add_string;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)domain_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)domain_pop;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)domain_start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)domain_end;
    return 1;
}
