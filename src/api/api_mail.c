/*
 * api_mail.c - stopping a run and answering its questions through the store, so that any process
 * can, whichever one holds the run. A line of the mailbox is {"run","stop":true} or
 * {"run","approval","allow"}.
 */
#include "api/api_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "model/event.h"

/* ---- sending ---- */

static int send(struct backend_conv *conv, const char *run, const char *approval, bool allow,
    struct steno_error *err)
{
        struct buf line;
        buf_init(&line, 16 * KIB);
        struct jsonw w = jsonw_to(&line);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "run", run);
        if (approval) {
                jsonw_field_cstr(&w, "approval", approval);
                jsonw_field_bool(&w, "allow", allow);
        } else {
                jsonw_field_bool(&w, "stop", true);
        }
        jsonw_object_end(&w);
        int rc = buf_check(&line, err);
        if (rc == 0)
                rc = backend_run_mail_send(conv, buf_str(&line), err);
        buf_release(&line);
        return rc;
}

/* Of a run that is not over. */
static int find_live(struct steno_store *store, const char *project, const char *run,
    struct backend_conv **conv, char name[65], struct steno_error *err)
{
        struct run_state s;
        int rc = api_run_find(store, project, run, conv, name, err);
        if (rc)
                return rc;
        rc = backend_run_look(*conv, name, &s, err);
        if (rc == 0) {
                if (s.finished || backend_run_is_dead(*conv, name))
                        rc = error_set(err, STENO_ENOTFOUND, "run \"%.100s\" is over", run);
                backend_run_state_release(&s);
        }
        if (rc)
                backend_conv_release(*conv);
        return rc;
}

int steno_run_stop(
    struct steno_store *store, const char *project, const char *run_id, struct steno_error *err)
{
        struct backend_conv *conv;
        char name[65];
        int rc = find_live(store, project, run_id, &conv, name, err);
        if (rc)
                return rc;
        rc = send(conv, run_id, NULL, false, err);
        backend_conv_release(conv);
        return rc;
}

/* The last word about a call. */
struct question {
        struct str call;
        char approval[72]; /* of the question */
        bool waits;
        bool allowed; /* when it was decided */
        uint64_t seq; /* of the question's event */
};

static int take_question(void *ctx, const struct run_event *e)
{
        struct question *q = ctx;
        struct json j;
        if (!event_is(e->type, STENO_EVENT_TOOL_CALL_APPROVAL))
                return 0;
        json_init(&j);
        struct buf text;
        buf_init(&text, 64 * KIB);
        if (json_parse(&j, e->data.p, e->data.n, NULL, NULL) == 0 &&
            json_string(&j, json_get(&j, 0, "toolCallId"), &text, NULL) &&
            str_eq(buf_str(&text), q->call)) {
                char *approval = json_dup_string(&j, json_get(&j, 0, "approval"));
                q->waits = approval && strlen(approval) < sizeof q->approval &&
                           json_is(&j, json_get(&j, 0, "state"), "pending");
                q->allowed = json_is(&j, json_get(&j, 0, "state"), "allowed");
                if (q->waits) {
                        memcpy(q->approval, approval, strlen(approval) + 1);
                        q->seq = e->seq;
                }
                free(approval);
        }
        buf_release(&text);
        json_release(&j);
        return 0;
}

/* How long to wait for the run to read its mail. A busy or stopped run reads it later. */
#define TAKEN_MS 1000
#define LOOK_AGAIN_MS 5

/* Two people may answer at the same time, and the first answer counts. The second person must not
 * get a success. */
static int await_decision(struct backend_conv *conv, const char *name, struct question *q,
    bool allow, struct steno_error *err)
{
        int64_t end = time_monotonic_ms() + TAKEN_MS;
        int rc = 0;
        while (rc == 0 && q->waits && time_monotonic_ms() < end) {
                wait_sleep(LOOK_AGAIN_MS);
                rc = backend_run_read(conv, name, q->seq, take_question, q, err);
        }
        if (rc == 0 && !q->waits && q->allowed != allow)
                rc = error_set(err, STENO_ECONFLICT, "the call has already been %s",
                    q->allowed ? "allowed" : "denied");
        return rc ? rc : q->waits;
}

int steno_run_answer(struct steno_store *store, const char *project, const char *run_id,
    const char *call_id, const char *approval, bool allow, struct steno_error *err)
{
        struct question q = {.call = str_of(call_id)};
        struct backend_conv *conv;
        char name[65];
        if (!approval)
                return error_set(err, STENO_EINVAL, "an answer needs the hash of the call");
        int rc = find_live(store, project, run_id, &conv, name, err);
        if (rc)
                return rc;
        rc = backend_run_read(conv, name, 0, take_question, &q, err);
        if (rc == 0 && !q.waits)
                rc = error_set(err, STENO_ENOTFOUND, "no such call waits for permission");
        if (rc == 0 && strcmp(q.approval, approval) != 0)
                rc = error_set(err, STENO_ECONFLICT, "the approval is for another call");
        if (rc == 0)
                rc = send(conv, run_id, approval, allow, err);
        if (rc == 0)
                rc = await_decision(conv, name, &q, allow, err);
        backend_conv_release(conv);
        return rc;
}

/* ---- receiving ---- */

void api_mail_read(struct str line, const char *run, steno_run_mail_fn fn, void *ctx)
{
        struct json j;
        json_init(&j);
        if (json_parse(&j, line.p, line.n, NULL, NULL) == 0 &&
            json_is(&j, json_get(&j, 0, "run"), run)) {
                char *approval = json_dup_string(&j, json_get(&j, 0, "approval"));
                bool stop = json_bool(&j, json_get(&j, 0, "stop"), false);
                if (approval || stop)
                        fn(ctx, approval, json_bool(&j, json_get(&j, 0, "allow"), false));
                free(approval);
        }
        json_release(&j);
}
