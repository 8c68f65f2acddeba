/*
 * otel.h - runs as traces of OpenTelemetry, in the GenAI conventions.
 *
 * A run is one trace: a span invoke_agent, below it a span "chat MODEL" for each request to the
 * model and a span "execute_tool NAME" for each call. A separate thread, which no run waits for,
 * makes the spans from the run's journal when the run has ended, and sends them over OTLP/HTTP as
 * JSON.
 *
 *   "otlp": {"endpoint": "http://127.0.0.1:4318", "headers": {"authorization": "env:NAME"},
 *            "content": false}
 *
 * The store's folder otlp/ has a small file for each run that has not been sent; the journal has
 * everything else. So no run is lost when the collector is down or the server is killed; the next
 * server sends the runs that died with this one.
 */
#ifndef OTEL_OTEL_H
#define OTEL_OTEL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* ---- spans ---- */

struct otel_about {
        const char *provider; /* gen_ai.provider.name */
        bool content;         /* with messages, arguments and results */
};

/* Appends a run as an ExportTraceServiceRequest in JSON. STENO_ECONFLICT: it has not finished. */
int otel_spans_put(struct steno_store *store, const char *project, const char *run,
    const struct otel_about *about, struct buf *out, struct steno_error *err);

/* ---- sending ---- */

struct otel;

struct otel_options {
        struct steno_store *store;
        const char *path;       /* of the store */
        const char *config;     /* "otlp" of the configuration, JSON */
        const char *provider;   /* of the configuration; may be NULL */
        const char *const *env; /* for headers that name a variable */
};

/* STENO_EINVAL: the configuration makes no sense, and the message says why. */
int otel_new(const struct otel_options *opt, struct otel **out, struct steno_error *err);
/* To be called when a run begins, and when it has ended. The first call that names a run writes its
 * file, without a sync; neither waits for the collector. `x` may be NULL. */
void otel_began(struct otel *x, const char *project, const char *run);
void otel_ended(struct otel *x, const char *project, const char *run);
/* Waits at most `ms` until the runs that have ended are sent; the next process sends the rest. */
void otel_free(struct otel *x, int ms);

/* ---- taking in ---- */

/*
 * Stores the messages of an ExportTraceServiceRequest (JSON) as conversations of a project. Spans
 * with the same gen_ai.conversation.id, or else of the same trace, are one conversation. Spans that
 * are sent again store nothing new. *left: how many spans had no messages.
 */
int otel_intake(struct steno_store *store, const char *project, const char *json, size_t n,
    uint64_t *left, struct steno_error *err);

#endif
