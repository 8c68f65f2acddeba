/*
 * vercel_app.c - /api/chat before an app's own route ("upstreams": {"chat": {"url": ...}}).
 *
 * The app decides what a turn is; this server passes the request on and keeps what comes. The turn
 * is a run of the conversation. Each chunk of the app's stream is in the run's journal
 * (`response_event`) before a page gets it. So any number of pages can read the stream from its
 * first chunk on, also after a kill. If the page leaves, the app's stream is still read to its end.
 * The page's new messages are stored before the app is asked, and the reply when its stream is
 * over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "gateway/asking.h"
#include "http/follow.h"
#include "http/server_core.h"
#include "model/event.h"
#include "routes/dialog.h"
#include "routes/vercel/vercel.h"
#include "routes/vercel/vercel_fold.h"

struct turn {
        struct request *r; /* NULL once it was answered */
        struct server *server;
        struct steno_conv *conv;
        struct buf body;
        char id[64];
        char *cookie;
        struct steno_run *run;
        struct steno_stop *stop;
        struct json chunk;
        struct vercel_fold *fold;
        bool stored; /* the message that is continued is there already */
        bool began;  /* a chunk was told */
        bool over;   /* finish, abort, error or the end mark was told */
};

static void turn_release(struct turn *t)
{
        steno_run_close(t->run);
        steno_stop_free(t->stop);
        steno_conv_close(t->conv);
        vercel_fold_free(t->fold);
        json_release(&t->chunk);
        buf_release(&t->body);
        free(t->cookie);
}

/* ---- the stream ---- */

static int journal(struct turn *t, enum steno_event type, struct buf *data,
    enum steno_durability sync, struct steno_error *err)
{
        int rc = buf_check(data, err);
        if (rc == 0)
                rc = steno_run_event(t->run, event_name(type), data->p, data->n, sync, NULL, err);
        if (rc == 0)
                follow_poke(t->server->follow, t->id);
        return rc;
}

/* The chunk as a page gets it: a message that has no id would get another one in each page. */
static void put_chunk(struct turn *t, struct buf *out)
{
        const struct json *j = &t->chunk;
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", t->id);
        jsonw_key(&w, "event");
        jsonw_object(&w);
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k))
                if (!json_is(j, k, "messageId"))
                        jsonw_copy_member(&w, j, k);
        if (json_is(j, json_get(j, 0, "type"), "start"))
                jsonw_field_cstr(&w, "messageId", vercel_fold_id(t->fold));
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        if (!out->failed)
                json_single_line(out->p, out->n);
}

/* The app has taken the request: the page's stream begins, and the turn goes on without it. */
static void begin_stream(struct turn *t)
{
        if (!t->r)
                return;
        dialog_watch(t->r, t->id, &vercel_projection);
        http_finish(t->r);
        t->r = NULL;
}

static int tell_chunk(struct turn *t)
{
        struct steno_error err = {0};
        struct buf out;
        t->began = true;
        vercel_fold_take(t->fold, &t->chunk);
        json_ref type = json_get(&t->chunk, 0, "type");
        t->over = json_is(&t->chunk, type, "finish") || json_is(&t->chunk, type, "abort") ||
                  json_is(&t->chunk, type, "error");
        buf_init(&out, 0);
        put_chunk(t, &out);
        int rc = journal(t, STENO_EVENT_RESPONSE_EVENT, &out, STENO_PROCESS, &err);
        buf_release(&out);
        return rc;
}

static int on_chunk(void *ctx, struct str name, struct str data)
{
        static const char first[] = "{\"type\":\"start\"}";
        struct turn *t = ctx;
        int rc = 0;
        (void)name;
        if (t->over)
                return 0;
        if (str_is(str_trim(data), "[DONE]")) {
                t->over = true; /* some apps write neither start nor finish */
                return 0;
        }
        begin_stream(t);
        bool start = json_parse(&t->chunk, data.p, data.n, NULL, NULL) == 0 &&
                     json_is(&t->chunk, json_get(&t->chunk, 0, "type"), "start");
        if (!t->began && !start && json_parse(&t->chunk, first, sizeof first - 1, NULL, NULL) == 0)
                rc = tell_chunk(t); /* which brings the message's id */
        if (rc == 0 && json_parse(&t->chunk, data.p, data.n, NULL, NULL) == 0 &&
            json_type(&t->chunk, 0) == JSON_OBJECT)
                rc = tell_chunk(t);
        return rc;
}

/* ---- the end ---- */

static int store_reply(struct turn *t, struct steno_error *err)
{
        struct buf message;
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD,
            .format = "uimessage",
            .idempotency_key = t->id};
        if (vercel_fold_is_empty(t->fold))
                return 0;
        buf_init(&message, 0);
        int rc = vercel_fold_put(t->fold, &message) ? buf_check(&message, err) : 0;
        if (rc == 0 && t->stored) {
                opt.flags = 0;
                opt.idempotency_key = NULL;
                rc = steno_amend(t->conv, "supersede", vercel_fold_id(t->fold), message.p,
                    message.n, &opt, NULL, err);
        } else if (rc == 0) {
                rc = steno_append(t->conv, message.p, message.n, &opt, NULL, err);
        }
        buf_release(&message);
        return rc;
}

static void finish_run(struct turn *t, int rc, const struct steno_error *why)
{
        struct steno_error err = {0};
        struct buf b;
        bool stopped = rc == STENO_EINTERRUPTED;
        bool cut = rc == 0 && !t->over;
        buf_init(&b, 0);
        if ((rc && !t->over) || cut) {
                struct jsonw w = jsonw_to(&b);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "runId", t->id);
                jsonw_field_cstr(&w, "code", stopped ? "INTERRUPTED" : "UPSTREAM_ERROR");
                jsonw_field_cstr(&w, "message",
                    cut ? "the app ended its answer before it was complete" : why->msg);
                jsonw_object_end(&w);
                journal(t, STENO_EVENT_RUN_ERROR, &b, STENO_FULL, &err);
                buf_clear(&b);
        }
        buf_printf(&b, "{\"runId\":\"%s\",\"reason\":\"%s\"}", t->id,
            stopped     ? "stopped"
            : rc || cut ? "error"
                        : "stop");
        journal(t, STENO_EVENT_RUN_FINISHED, &b, STENO_FULL, &err);
        buf_release(&b);
}

/* ---- the request ---- */

static void on_mail(void *ctx, const char *approval, bool allow)
{
        struct turn *t = ctx;
        (void)allow;
        if (!approval)
                steno_stop_request(t->stop);
}

static int begin_run(struct turn *t, struct steno_error *err)
{
        struct buf b;
        int rc = steno_stop_new(&t->stop, err);
        if (rc == 0)
                rc = steno_run_begin(t->conv, t->id, "run", &t->run, err);
        if (rc)
                return rc;
        steno_run_listen(t->run, on_mail, t);
        buf_init(&b, 4 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", t->id);
        jsonw_field_cstr(&w, "mode", "run");
        jsonw_field_null(&w, "model");
        jsonw_field_cstr(&w, "conversation", steno_conv_id(t->conv));
        jsonw_object_end(&w);
        rc = journal(t, STENO_EVENT_RUN_STARTED, &b, STENO_PROCESS, err);
        buf_release(&b);
        return rc;
}

/* Asks the app. If it refuses, the page gets the app's own answer. */
static int ask(struct turn *t, struct steno_error *err)
{
        struct asking what = {.upstream = "chat",
            .path = "",
            .header = t->cookie,
            .body = buf_str(&t->body),
            .stop = t->stop,
            .event = on_chunk,
            .ctx = t};
        buf_init(&what.answer, MESSAGE_MAX);
        int rc = asking_run(t->server->gateway, &what, err);
        if (rc == 0 && what.status / 100 != 2)
                rc = error_set(err, STENO_EIO, "the app answered %ld", what.status);
        else if (rc == 0 && !what.stream)
                rc =
                    error_set(err, STENO_EPROTO, "the app's answer is not a stream of UI messages");
        if (rc && t->r && what.status / 100 > 2) {
                buf_put_str(&t->r->reply, buf_str(&what.answer));
                request_reply_json(t->r, (int)what.status);
        } else if (rc && t->r) {
                request_error(t->r, 502, "upstream_failed", "%s", err->msg);
        }
        buf_release(&what.answer);
        return rc;
}

static bool prepare(struct turn *t, const struct vercel_app_turn *what)
{
        struct request *r = t->r;
        struct steno_error err = {0};
        const char *cookie = request_header(r, "Cookie");
        steno_run_make_id(r->server->store, "run_", t->id);
        buf_put_str(&t->body, buf_str(&r->body));
        t->fold = vercel_fold_new(what->continued ? what->continued : t->id);
        t->stored = what->continued != NULL;
        if (cookie && asprintf(&t->cookie, "Cookie: %s", cookie) < 0)
                t->cookie = NULL;
        if (t->body.failed || !t->fold) {
                request_error(r, 503, "busy", "out of memory");
                return false;
        }
        for (size_t i = 0; i < what->parts_count; i++)
                vercel_fold_keep(t->fold, what->parts[i]);
        int rc = begin_run(t, &err);
        if (rc == STENO_ECONFLICT)
                request_error(r, 409, "conflict", "a run of this chat is still active");
        else if (rc)
                request_failed(r, rc, &err);
        return rc == 0;
}

void vercel_app_run(struct request *r, struct steno_conv *conv, const struct vercel_app_turn *what)
{
        struct turn t = {.r = r, .server = r->server, .conv = conv};
        struct steno_error err = {0};
        json_init(&t.chunk);
        buf_init(&t.body, 0);
        if (!prepare(&t, what)) {
                http_finish(r);
                turn_release(&t);
                return;
        }
        int rc = ask(&t, &err);
        struct steno_error failure = {0};
        int stored = store_reply(&t, &failure);
        if (rc == 0 && stored) {
                rc = stored;
                err = failure;
                t.over = false;
        }
        finish_run(&t, rc, &err);
        if (t.r)
                http_finish(t.r);
        turn_release(&t);
}
