/* metrics.c - see metrics.h */
#include "http/metrics.h"

#include "http/server_core.h"

static void put(
    struct buf *out, const char *name, const char *type, const char *help, unsigned long long v)
{
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name, v);
}

void metrics_put(struct server *s, struct buf *out)
{
        struct metrics *m = &s->metrics;
        buf_puts(out, "# HELP steno_requests_total Answers by class of status.\n"
                      "# TYPE steno_requests_total counter\n");
        for (int i = 1; i < 6; i++)
                buf_printf(out, "steno_requests_total{status=\"%dxx\"} %llu\n", i,
                    atomic_load(&m->requests[i]));
        put(out, "steno_refused_total", "counter", "Refused before a handler saw them.",
            atomic_load(&m->refused));
        put(out, "steno_body_bytes_total", "counter", "Bytes of bodies taken.",
            atomic_load(&m->bytes_in));
        put(out, "steno_handler_microseconds_total", "counter", "Time spent in handlers.",
            atomic_load(&m->micros));
        put(out, "steno_appends_total", "counter", "Batches appended.", atomic_load(&m->appends));
        put(out, "steno_runs_total", "counter", "Runs started.", atomic_load(&m->runs));
        put(out, "steno_requests_under_way", "gauge",
            "Requests that have begun and are not answered.", atomic_load(&s->under_way));
        put(out, "steno_unread_bytes", "gauge", "Bytes of answers that are being sent.",
            unread_bytes(s->unread));
        put(out, "steno_streams", "gauge", "Open streams.", streams_count(s->streams));
        put(out, "steno_stream_bytes", "gauge", "Bytes that wait for readers of streams.",
            streams_queued(s->streams));
        put(out, "steno_streams_cut_total", "counter",
            "Readers cut off because they were too slow.", atomic_load(&m->streams_cut));
}
