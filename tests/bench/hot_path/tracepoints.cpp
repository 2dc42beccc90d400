/* LTTng-UST's probes are made of the header, in C: they are what its programs have. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tracepoints.h"
