/*
 * otel.h - exports runs as OpenTelemetry traces, by the GenAI conventions.
 *
 * A run is one trace: a span invoke_agent, below it a span "chat MODEL" for each request to the
 * model and a span "execute_tool NAME" for each call. When a run has ended, a separate thread makes
 * the spans from the run's journal and sends them over OTLP/HTTP as JSON. No run waits for this
 * thread.
 *
 *   "otlp": {"endpoint": "http://127.0.0.1:4318", "headers": {"authorization": "env:NAME"},
 *            "content": false}
 *
 * The store's folder otlp/ has a small file for each run that has not been sent; everything else is
 * in the journal. So no run is lost if the collector is down or the server is killed. The next
 * server sends the runs that died with the killed one.
 */
#ifndef OTEL_OTEL_H
#define OTEL_OTEL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* ---- spans ---- */

struct otel_about {
        const char *provider; /* the value of gen_ai.provider.name */
        bool content;         /* include messages, arguments and results */
};

/* Appends a run as an ExportTraceServiceRequest in JSON. STENO_ECONFLICT: the run has not
 * finished. */
int otel_spans_put(struct steno_store *store, const char *project, const char *run,
    const struct otel_about *about, struct buf *out, struct steno_error *err);

/* ---- sending ---- */

struct otel;

struct otel_options {
        struct steno_store *store;
        const char *path;       /* the path of the store */
        const char *config;     /* the member "otlp" of the configuration, JSON */
        const char *provider;   /* the provider of the configuration; may be NULL */
        const char *const *env; /* used for headers that name a variable */
};

/* STENO_EINVAL: the configuration is invalid, and the message says why. */
int otel_new(const struct otel_options *opt, struct otel **out, struct steno_error *err);
/* Call these when a run begins, and when it has ended. The first call for a run writes its file,
 * without a sync. Neither waits for the collector. `x` may be NULL. */
void otel_began(struct otel *x, const char *project, const char *run);
void otel_ended(struct otel *x, const char *project, const char *run);
/* Waits at most `ms` until the ended runs are sent; the next process sends the rest. */
void otel_free(struct otel *x, int ms);

/* ---- receiving ---- */

/*
 * Stores the messages of an ExportTraceServiceRequest (JSON) as conversations of a project. Spans
 * with the same gen_ai.conversation.id belong to one conversation; without this id, spans of the
 * same trace do. Spans that are sent again store nothing new. *left becomes the number of spans
 * without messages.
 */
int otel_intake(struct steno_store *store, const char *project, const char *json, size_t n,
    uint64_t *left, struct steno_error *err);

#endif
