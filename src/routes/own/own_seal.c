/*
 * own_seal.c - GET /api/chat-sessions/:id/seal: what is sealed of a conversation, the proof of one
 * record (seq), or what does not fit (verify=1).
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#define ANSWERED 1 /* with a 400 */

struct verified {
        struct jsonw w;
};

static int take_finding(void *ctx, const char *json)
{
        struct verified *v = ctx;
        /* Findings about the whole store are not shown to a client that has only a token of one
         * project.
         */
        if (!str_starts(str_of(json), "{\"project\":"))
                return 0;
        jsonw_raw(&v->w, str_of(json));
        return 0;
}

/* {"findings":[...],"report":{...}} */
static int verify(struct request *r, const char *id, struct steno_error *err)
{
        struct steno_verify_options opt = {.size = sizeof opt, .project = r->who.project, .id = id};
        struct verified v = {.w = jsonw_to(&r->reply)};
        char *report = NULL;
        jsonw_object(&v.w);
        jsonw_key(&v.w, "findings");
        jsonw_array(&v.w);
        int rc = steno_verify(r->store, &opt, take_finding, &v, &report, err);
        jsonw_array_end(&v.w);
        if (rc >= 0) {
                jsonw_field_raw(&v.w, "report", str_of(report));
                rc = 0;
        } else {
                buf_clear(&r->reply);
        }
        jsonw_object_end(&v.w);
        steno_free(report);
        return rc;
}

static int answer(struct request *r, struct steno_conv *conv, struct steno_error *err)
{
        char *json = NULL;
        uint64_t seq = 0;
        if (request_flag(r, "verify", false))
                return verify(r, steno_conv_id(conv), err);
        if (!request_number(r, "seq", 0, 0, INT64_MAX, &seq))
                return ANSWERED;
        int rc = seq ? steno_prove(conv, seq, &json, err) : steno_seal_state(conv, &json, err);
        if (rc == 0)
                buf_puts(&r->reply, json);
        steno_free(json);
        return rc;
}

void own_session_seal(struct request *r)
{
        struct steno_error err = {0};
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = answer(r, conv, &err);
        if (rc < 0)
                request_failed(r, rc, &err);
        else if (rc == 0)
                request_reply_json(r, 200);
        steno_conv_close(conv);
}
