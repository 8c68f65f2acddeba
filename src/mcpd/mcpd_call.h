/*
 * mcpd_call.h - a request while it is carried out. For the files of this folder.
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
        /* an error */
        int code; /* 0: none */
        int status;
        char why[300];
        struct buf data;
        bool cancelled;
        /* progress */
        json_ref token; /* JSON_NONE: nobody asked */
        uint64_t told;  /* the last value; each is larger than the one before */
        int64_t told_at;
};

void mcpd_fail(struct mcpd_call *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error of the library. */
void mcpd_fail_with(struct mcpd_call *c, int rc, const struct steno_error *err);

/* Revisions before 2025-06-18 have neither links in the content of a result nor structured
 * content. */
bool mcpd_has_links(const struct mcpd_call *c);

/* A steno_progress: reports to the client, and ends the work of a cancelled request. */
int mcpd_progress(void *ctx, const char *what, uint64_t done, uint64_t total);

/* A string of the request's params, decoded, in `out`; NULL when it is absent or no string. */
const char *mcpd_param(const struct mcpd_call *c, const char *name, struct buf *out);

/* ---- methods ---- */

void mcpd_tools_list(struct mcpd_call *c);
void mcpd_tools_call(struct mcpd_call *c);
void mcpd_resources_list(struct mcpd_call *c);
void mcpd_resources_templates(struct mcpd_call *c);
void mcpd_resources_read(struct mcpd_call *c);

/* The same for the fixtures. A read returns whether there is such a resource. */
void mcpd_fixtures_tools(struct mcpd_call *c);
void mcpd_fixtures_call(struct mcpd_call *c);
void mcpd_fixtures_resources(struct mcpd_call *c);
void mcpd_fixtures_templates(struct mcpd_call *c);
bool mcpd_fixtures_read(struct mcpd_call *c, struct str uri);

/* ---- what methods share ---- */

/* Opens the conversation of the scope, or the one that is named, where the scope is a project. */
int mcpd_open(
    const struct mcpd_call *c, const char *named, struct steno_conv **out, struct steno_error *err);
/* The address of an artifact. */
void mcpd_put_uri(
    const struct mcpd_scope *scope, const char *conversation, struct str ref, struct buf *out);
/* {"uri","name","mimeType","size"...} of a ref object at `item`; `type` NULL or "resource_link". */
void mcpd_put_link(struct jsonw *w, const struct mcpd_scope *scope, const char *conversation,
    const struct json *j, json_ref item, const char *type);

/*
 * conversation_read, conversation_search and conversation_list, with their arguments (an object at
 * node 0). `conv` is NULL where the tool is about the whole project. The answer's JSON goes to
 * `out`. STENO_EPROTO, STENO_EINVAL and STENO_ENOTFOUND are the model's mistakes.
 */
int mcpd_read(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);
int mcpd_search(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);
int mcpd_list(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err);

#endif
