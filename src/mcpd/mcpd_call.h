/*
 * mcpd_call.h - a request while it is executed. For the files of this folder.
 *
 * A method writes the members of its result to `w`, or calls mcpd_fail(), which replaces the result
 * by an error.
 */
#ifndef MCPD_MCPD_CALL_H
#define MCPD_MCPD_CALL_H

#include "mcpd/mcpd.h"

struct mcpd_call {
        const struct mcpd_scope *scope;
        const struct mcpd_message *m;
        const struct mcpd_peer *peer;
        struct jsonw w;
        /* the error */
        int code; /* 0: none */
        int status;
        char why[300];
        struct buf data;
        bool cancelled;
        /* the progress */
        json_ref token; /* JSON_NONE: no reports were requested */
        uint64_t told;  /* the last value that was reported; each is larger than the one
                           before */
        int64_t told_at;
};

void mcpd_fail(struct mcpd_call *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Does the same for an error of the library. */
void mcpd_fail_with(struct mcpd_call *c, int rc, const struct steno_error *err);

/* Revisions before 2025-06-18 have neither links in the content of a result nor structured
 * content. */
bool mcpd_has_links(const struct mcpd_call *c);

/* A steno_progress: reports to the client, and ends the work of a cancelled request. */
int mcpd_progress(void *ctx, const char *what, uint64_t done, uint64_t total);

/* Returns a string of the request's params, decoded, in `out`; NULL if it is absent or not a
 * string. */
const char *mcpd_param(const struct mcpd_call *c, const char *name, struct buf *out);

/* ---- methods ---- */

void mcpd_tools_list(struct mcpd_call *c);
void mcpd_tools_call(struct mcpd_call *c);
void mcpd_resources_list(struct mcpd_call *c);
void mcpd_resources_templates(struct mcpd_call *c);
void mcpd_resources_read(struct mcpd_call *c);

/* The same for the fixtures. mcpd_fixtures_read returns whether there is such a resource. */
void mcpd_fixtures_tools(struct mcpd_call *c);
void mcpd_fixtures_call(struct mcpd_call *c);
void mcpd_fixtures_resources(struct mcpd_call *c);
void mcpd_fixtures_templates(struct mcpd_call *c);
bool mcpd_fixtures_read(struct mcpd_call *c, struct str uri);

/* ---- what methods share ---- */

/* Opens the conversation of the scope. If the scope is a project, opens the conversation that the
 * arguments name. */
int mcpd_open(
    const struct mcpd_call *c, const char *named, struct steno_conv **out, struct steno_error *err);
/* Writes the address of an artifact. */
void mcpd_put_uri(
    const struct mcpd_scope *scope, const char *conversation, struct str ref, struct buf *out);
/* Writes {"uri","name","mimeType","size"...} for the ref object at `item`. `type` is NULL or
 * "resource_link". */
void mcpd_put_link(struct jsonw *w, const struct mcpd_scope *scope, const char *conversation,
    const struct json *j, json_ref item, const char *type);

/*
 * Runs conversation_read, conversation_search or conversation_list with their arguments (an object
 * at node 0). `conv` is NULL if the tool is about the whole project. The answer's JSON is written
 * to `out`. STENO_EPROTO, STENO_EINVAL and STENO_ENOTFOUND are mistakes of the model.
 */
int mcpd_read(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);
int mcpd_search(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);
int mcpd_list(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);

#endif
