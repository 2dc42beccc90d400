/* The peer's events: a range's begin and end, by a number or with its name. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ringside_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracepoints.h"
#if !defined(RINGSIDE_BENCH_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RINGSIDE_BENCH_TRACEPOINTS_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(ringside_bench, begin_id, LTTNG_UST_TP_ARGS(uint32_t, id),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, id, id)))
LTTNG_UST_TRACEPOINT_EVENT(ringside_bench, begin_name, LTTNG_UST_TP_ARGS(const char*, name),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(ringside_bench, end, LTTNG_UST_TP_ARGS(uint32_t, id),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, id, id)))
#endif
#include <lttng/tracepoint-event.h>
