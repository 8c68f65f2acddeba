/*
 * vercel_chat.c - /api/chat, which useChat() and DefaultChatTransport of the AI SDK talk to.
 *
 * A chat is a conversation, and its id is the chat's. POST takes the page's list of UI messages,
 * stores what is new of it and starts a run; the answer is the run's events as UI message chunks
 * (vercel_stream.c). The run goes on when the page leaves. GET .../stream gives a page that comes
 * back the whole stream of the run from its first chunk, because the SDK has no other way to
 * resume, and 204 when no run goes on.
 *
 * GET /api/chat/:id is the list of messages for a page that is loaded anew, with one UI message a
 * run. It ends before the reply that the stream will bring: that of a run that goes on, or of one
 * whose server died, which the stream replays up to the place of its death. A run that ends between
 * the list and the stream is replayed as well (pledges.h).
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/event.h"
#include "gateway/gateway.h"
#include "http/pledges.h"
#include "http/replies.h"
#include "http/server_core.h"
#include "routes/dialog.h"
#include "routes/vercel/vercel.h"

#define FORMAT "uimessage"

/* What a page asks for. */
struct wish {
        struct json body;
        struct steno_conv *conv;
        json_ref list;      /* of messages, or JSON_NONE */
        json_ref last;      /* the newest message, or JSON_NONE */
        const char *id;     /* its id, or NULL */
        const char *target; /* messageId: the message that is edited or made again */
        uint64_t seq;       /* of the newest message; 0: it is not stored */
        bool regenerate;
        bool made;    /* the conversation is new */
        bool app;     /* an app's own route takes the turn */
        bool ready;   /* and it can begin */
        char run[64]; /* that follows from the Idempotency-Key, or "" */
};

/* ---- reading the request ---- */

static int to_nowhere(void *ctx, const void *p, size_t n)
{
        (void)ctx;
        (void)p;
        (void)n;
        return 0;
}

/* Is the newest message one? Asked before the run begins, so that the answer can be a 400. */
static int check_message(struct wish *w, struct steno_error *err)
{
        struct buf list;
        buf_init(&list, 0);
        buf_putc(&list, '[');
        buf_put_str(&list, json_raw(&w->body, w->last));
        buf_putc(&list, ']');
        int rc = buf_check(&list, err);
        if (rc == 0)
                rc = steno_convert(FORMAT, "openai", list.p, list.n, to_nowhere, NULL, NULL, err);
        buf_release(&list);
        return rc;
}

static json_ref last_of(const struct json *j, json_ref list)
{
        json_ref last = JSON_NONE;
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m))
                last = m;
        return last;
}

static bool read_wish(struct request *r, struct wish *w)
{
        const struct json *j = &w->body;
        struct steno_error err = {0};
        int rc;
        const char *id = request_member(r, j, 0, "id");
        json_ref trigger = json_get(j, 0, "trigger");
        w->list = json_get(j, 0, "messages");
        if (json_type(j, w->list) == JSON_ARRAY) {
                w->last = last_of(j, w->list);
        } else {
                w->list = JSON_NONE;
                w->last = json_get(j, 0, "message"); /* of a page that sends its newest only */
        }
        w->regenerate = json_is(j, trigger, "regenerate-message");
        w->target = request_member(r, j, 0, "messageId");
        if (!id || !*id) {
                request_error(r, 400, "bad_request", "id must be the id of the chat");
        } else if (json_type(j, w->last) != JSON_OBJECT) {
                request_error(r, 400, "bad_request", "messages must be a list of UI messages");
        } else if (trigger != JSON_NONE && json_type(j, trigger) != JSON_NULL && !w->regenerate &&
                   !json_is(j, trigger, "submit-message")) {
                request_error(
                    r, 400, "bad_request", "trigger must be submit-message or regenerate-message");
        } else if ((rc = check_message(w, &err)) != 0) {
                request_failed(r, rc, &err);
        } else {
                char hex[SHA256_HEX];
                w->id = request_member(r, j, w->last, "id");
                if (request_keyed(r, r->path, hex))
                        snprintf(w->run, sizeof w->run, "run_k%.31s", hex);
                return dialog_open(r, id, &w->conv, &w->made);
        }
        return false;
}

/* ---- the page's list ---- */

/* A message of which nothing was shown: a page keeps it when a stream ended at its beginning. */
static bool is_empty(const struct json *j, json_ref message)
{
        json_ref parts = json_get(j, message, "parts");
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                if (!json_is(j, json_get(j, p, "type"), "step-start"))
                        return false;
        return json_is(j, json_get(j, message, "role"), "assistant");
}

static int append_one(struct wish *w, json_ref message, struct steno_error *err)
{
        struct steno_append_options opt = {
            .size = sizeof opt, .flags = STENO_RECORD, .format = FORMAT};
        struct str raw = json_raw(&w->body, message);
        return steno_append(w->conv, raw.p, raw.n, &opt, NULL, err);
}

/* Stores those messages before the newest that are not there yet. */
static int append_new(struct request *r, struct wish *w, struct steno_error *err)
{
        const struct json *j = &w->body;
        int rc = 0;
        for (json_ref m = json_child(j, w->list); rc == 0 && m != JSON_NONE && m != w->last;
             m = json_next(j, w->list, m)) {
                const char *id = request_member(r, j, m, "id");
                uint64_t seq = 0;
                if (is_empty(j, m))
                        continue;
                if (id && !w->made)
                        rc = dialog_seq(w->conv, id, &seq, err);
                if (rc == 0 && !seq)
                        rc = append_one(w, m, err);
        }
        return rc;
}

static int same_bytes(void *ctx, const struct steno_record *record)
{
        struct str *given = ctx;
        char *json = NULL;
        size_t n = 0;
        if (steno_record_message(record, &json, &n, NULL) == 0 && str_eq(*given, str_span(json, n)))
                given->p = NULL;
        steno_free(json);
        return 0;
}

/* Replaces the stored message by the newest one, if they differ. */
static int replace(struct wish *w, struct steno_error *err)
{
        static const char *const ID[] = {"id", NULL};
        struct str raw = json_raw(&w->body, w->last), given = raw;
        struct steno_append_options opt = {.size = sizeof opt, .format = FORMAT};
        struct json_edits edits;
        struct buf text;
        int rc = steno_read_id(w->conv, w->id, same_bytes, &given, err);
        if (rc || !given.p)
                return rc;
        json_edits_init(&edits);
        buf_init(&text, 0);
        json_edit_remove_members(&edits, &w->body, w->last, ID); /* it keeps the id it had */
        rc = json_edits_apply(&edits, &w->body, w->last, &text) ? error_nomem(err) : 0;
        if (rc == 0)
                rc = steno_amend(w->conv, "supersede", w->id, text.p, text.n, &opt, NULL, err);
        buf_release(&text);
        json_edits_release(&edits);
        return rc;
}

/* Brings the conversation to where the page is. */
static int agree(struct request *r, struct wish *w, struct steno_error *err)
{
        bool user = json_is(&w->body, json_get(&w->body, w->last, "role"), "user");
        bool edit = user && w->target && w->id && strcmp(w->target, w->id) == 0;
        int rc = append_new(r, w, err);
        if (rc == 0 && w->seq && edit && !w->regenerate)
                rc = replace(w, err);
        if (rc == 0 && w->seq && (w->regenerate || edit))
                rc = dialog_cut(w->conv, w->seq, !user, err);
        return rc;
}

/* ---- POST /api/chat ---- */

/* What the run begins with: the newest message when it is the user's and new, else the history. */
static void start(struct request *r, struct wish *w)
{
        const struct json *j = &w->body;
        struct runner_turn turn = {.project = r->who.project,
            .conversation = steno_conv_id(w->conv),
            .message_format = FORMAT,
            .run = w->run[0] ? w->run : NULL};
        if (!w->seq && json_is(j, json_get(j, w->last, "role"), "user")) {
                turn.message_json = arena_dup(&r->arena, json_raw(j, w->last)).p;
                if (!turn.message_json) {
                        request_error(r, 503, "busy", "out of memory");
                        return;
                }
        }
        dialog_start(r, &turn, &vercel_projection);
}

/* Does the page ask again for a turn whose answer was lost on the way? True: `newest` is that
 * turn. */
static int was_answered(
    struct wish *w, const struct dialog_run *newest, bool *answered, struct steno_error *err)
{
        bool last = true;
        bool asks_anew = w->regenerate || w->target;
        int rc =
            w->seq && newest->id[0] && !asks_anew ? dialog_is_last(w->conv, w->seq, &last, err) : 0;
        *answered =
            rc == 0 && !last && json_is(&w->body, json_get(&w->body, w->last, "role"), "user");
        return rc;
}

/* An app does not store the message that it answers: it is stored here. */
static int append_last(struct wish *w, struct steno_error *err)
{
        return w->app && !w->seq ? append_one(w, w->last, err) : 0;
}

static void take_wish(struct request *r, struct wish *w)
{
        struct steno_error err = {0};
        struct dialog_run newest;
        bool answered = false;
        int rc = dialog_newest_run(w->conv, &newest, &err);
        if (rc == 0 && w->id && !w->made)
                rc = dialog_seq(w->conv, w->id, &w->seq, &err);
        if (rc == 0)
                rc = was_answered(w, &newest, &answered, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else if (w->run[0] && strcmp(newest.id, w->run) == 0) {
                dialog_watch(r, newest.id, &vercel_projection);
        } else if (newest.live && w->seq && !w->regenerate && !w->target) {
                dialog_watch(r, newest.id, &vercel_projection);
        } else if (newest.live) {
                request_error(r, 409, "conflict", "run %s of this chat is still active", newest.id);
        } else if (answered) {
                dialog_watch(r, newest.id, &vercel_projection);
        } else if ((rc = agree(r, w, &err)) != 0 || (rc = append_last(w, &err)) != 0) {
                request_failed(r, rc, &err);
        } else if (w->app) {
                w->ready = true;
        } else {
                start(r, w);
        }
}

/* ---- an app's own route ---- */

/* If the app continues a reply that the page already has, the reply keeps its parts. */
static void start_app(struct request *r, struct wish *w)
{
        const struct json *j = &w->body;
        bool reply = json_is(j, json_get(j, w->last, "role"), "assistant");
        json_ref list = json_get(j, w->last, "parts");
        size_t n = 0, room = reply ? json_count(j, list) : 0;
        struct str *parts = calloc(room + 1, sizeof *parts);
        struct vercel_app_turn turn = {.continued = reply ? w->id : NULL, .parts = parts};
        for (json_ref p = parts && reply ? json_child(j, list) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, list, p))
                parts[n++] = json_raw(j, p);
        turn.parts_count = n;
        struct steno_conv *conv = w->conv;
        w->conv = NULL;
        vercel_app_run(r, conv, &turn);
        free(parts);
}

void vercel_chat(struct request *r)
{
        static const struct body_rule RULES[] = {{"id", BODY_NAME}, {"messageId", BODY_NAME},
            {"trigger", BODY_NAME}, {"messages", BODY_LIST}, {"message", BODY_OBJECT}, {0}};
        struct wish w = {.list = JSON_NONE,
            .last = JSON_NONE,
            .app = r->server->gateway && gateway_has_app(r->server->gateway)};
        json_init(&w.body);
        if (!w.app && replies_give(r->server->replies, r)) {
                http_finish(r); /* the answer to this Idempotency-Key is known */
                return;
        }
        if (!w.app && !r->server->chat)
                request_error(r, 501, "unsupported", "this server was started without a model");
        else if (request_json(r, &w.body, RULES) && read_wish(r, &w))
                take_wish(r, &w);
        if (w.ready) {
                start_app(r, &w);
        } else {
                if (!w.app)
                        replies_keep(r->server->replies, r);
                http_finish(r);
        }
        steno_conv_close(w.conv);
        json_release(&w.body);
}

/* ---- GET /api/chat/:id/stream ---- */

static void nothing(struct request *r)
{
        buf_clear(&r->reply);
        r->status = 204;
        r->content_type = NULL;
}

void vercel_stream(struct request *r)
{
        struct steno_error err = {0};
        struct steno_conv *conv = NULL;
        struct dialog_run newest = {0};
        int rc = steno_conv_open(r->store, r->who.project, r->params[0].p, &conv, &err);
        if (rc == 0)
                rc = dialog_newest_run(conv, &newest, &err);
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL)
                nothing(r); /* a page asks before its first message is sent */
        else if (rc)
                request_failed(r, rc, &err);
        else if (pledges_redeem(r->server->pledges, r->who.token_id, newest.id) || newest.live ||
                 newest.died)
                dialog_watch(r, newest.id, &vercel_projection);
        else
                nothing(r);
        steno_conv_close(conv);
}

/* ---- GET /api/chat/:id ---- */

static int find_request(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        uint64_t *after = ctx;
        struct json j;
        (void)seq;
        (void)at;
        if (event_find(type) != STENO_EVENT_REQUEST)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0 &&
            json_u64(&j, json_get(&j, 0, "after"), after))
                ++*after; /* the first seq that is the run's */
        json_release(&j);
        return 1;
}

/* The first seq that a stream will bring; 0: there is none. */
static int find_end(
    struct request *r, struct steno_conv *conv, uint64_t *before, struct steno_error *err)
{
        struct dialog_run newest;
        int rc = dialog_newest_run(conv, &newest, err);
        *before = 0;
        if (rc || (!newest.live && !newest.died))
                return rc;
        if (newest.live)
                pledges_make(r->server->pledges, r->who.token_id, newest.id);
        rc = steno_run_read(r->store, r->who.project, newest.id, 0, find_request, before, err);
        return rc == 1 ? 0 : rc;
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

static void put_parts(struct jsonw *w, const struct json *j, json_ref message)
{
        json_ref parts = json_get(j, message, "parts"), p = json_child(j, parts);
        bool reply = json_is(j, json_get(j, message, "role"), "assistant");
        if (reply && !json_is(j, json_get(j, p, "type"), "step-start")) {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "step-start");
                jsonw_object_end(w);
        }
        for (; p != JSON_NONE; p = json_next(j, parts, p))
                jsonw_raw(w, json_raw(j, p));
}

/* The messages of a view, with replies that follow each other as one message of several steps. */
static void put_messages(struct jsonw *w, const struct json *j)
{
        bool reply = false, open = false;
        jsonw_array(w);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m)) {
                bool is_reply = json_is(j, json_get(j, m, "role"), "assistant");
                if (!is_reply || !reply) {
                        if (open) {
                                jsonw_array_end(w);
                                jsonw_object_end(w);
                        }
                        jsonw_object(w);
                        for (json_ref k = json_child(j, m); k != JSON_NONE;
                             k = json_next_key(j, m, k))
                                if (!json_is(j, k, "parts"))
                                        jsonw_copy_member(w, j, k);
                        jsonw_key(w, "parts");
                        jsonw_array(w);
                        open = true;
                }
                put_parts(w, j, m);
                reply = is_reply;
        }
        if (open) {
                jsonw_array_end(w);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

void vercel_messages(struct request *r)
{
        struct steno_error err = {0};
        struct steno_view_options opt = {.size = sizeof opt, .format = FORMAT, .no_ids = true};
        struct json j;
        struct buf view;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        buf_init(&view, 0);
        int rc = find_end(r, conv, &opt.before_seq, &err);
        if (rc == 0)
                rc = steno_view(conv, &opt, to_buf, &view, NULL, &err);
        if (rc == 0)
                rc = json_parse(&j, view.p, view.n, NULL, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                struct jsonw w = jsonw_to(&r->reply);
                jsonw_object(&w);
                jsonw_field_str(&w, "id", r->params[0]);
                jsonw_key(&w, "messages");
                put_messages(&w, &j);
                jsonw_object_end(&w);
                request_reply_json(r, 200);
        }
        json_release(&j);
        buf_release(&view);
        steno_conv_close(conv);
}
