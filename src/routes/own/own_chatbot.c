/*
 * own_chatbot.c - POST /api/chatbot and its public sister: a turn of a conversation.
 *
 * Streamed or not, the same messages are stored. With an Idempotency-Key the run's id follows from
 * it, so a repeated request finds the run it had started and watches that.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/wait.h"
#include "http/buckets.h"
#include "http/runner.h"
#include "http/server_core.h"
#include "http/follow.h"
#include "http/http_limits.h"
#include "loop/toldcalls.h"
#include "model/event.h"
#include "routes/own/own_visitor.h"

/* How long a run that is claimed may take to begin, until its request is refused after all. */
#define CLAIMED_SOON_MS 2000
/* So often a turn may come to nothing before its run has started. */
#define TRIES_MAX 9

struct turn {
        struct runner_turn chat;
        bool stream;
        char run[64];
        char message_id[64];
        bool again;            /* the run is there already */
        const char *new_token; /* a visitor's, told once */
};

/* The conversation to use: the one named, or a new one. */
static bool choose_conversation(struct request *r, const struct json *j, struct turn *t)
{
        struct steno_error err = {0};
        struct steno_conv *conv;
        const char *id = request_member(r, j, 0, "sessionId");
        if (r->who.session[0] && !id)
                id = r->who.session;
        if (id) {
                conv = request_conv(r, id);
                if (!conv)
                        return false;
        } else {
                int rc = request_conv_create(r, NULL, NULL, &conv, NULL, &err);
                if (rc) {
                        request_failed(r, rc, &err);
                        return false;
                }
        }
        t->chat.conversation = arena_dup(&r->arena, str_of(steno_conv_id(conv))).p;
        steno_conv_close(conv);
        return t->chat.conversation != NULL;
}

static bool read_message(struct request *r, const struct json *j, struct turn *t)
{
        json_ref m = json_get(j, 0, "message");
        struct buf b;
        if (json_type(j, m) != JSON_STRING && json_type(j, m) != JSON_OBJECT) {
                request_error(r, 400, "bad_request", "message must be a text or a message object");
                return false;
        }
        if (json_type(j, m) == JSON_STRING && !json_inner(j, m).n) {
                request_error(r, 400, "bad_request", "message is empty");
                return false;
        }
        if (json_type(j, m) == JSON_STRING && request_is_name(j, m)) {
                t->chat.message = request_member(r, j, 0, "message");
                return t->chat.message != NULL;
        }
        buf_init(&b, 0);
        if (json_type(j, m) == JSON_STRING) {
                struct jsonw w = jsonw_to(&b);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "role", "user");
                jsonw_field_copy(&w, "content", j, m);
                jsonw_object_end(&w);
        } else {
                buf_put_str(&b, json_raw(j, m));
        }
        if (t->message_id[0] && json_get(j, m, "id") == JSON_NONE)
                t->chat.message_id = t->message_id;
        t->chat.message_json = b.failed ? NULL : arena_dup(&r->arena, buf_str(&b)).p;
        buf_release(&b);
        if (!t->chat.message_json)
                request_error(r, 503, "busy", "out of memory");
        return t->chat.message_json != NULL;
}

static const struct body_rule TURN[] = {{"sessionId", BODY_NAME}, {"mode", BODY_NAME},
    {"model", BODY_NAME}, {"stream", BODY_BOOL}, {"message", BODY_TEXT | BODY_OBJECT | BODY_LIST},
    {0}};

static int is_start(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        (void)seq, (void)at, (void)data, (void)n;
        *(bool *)ctx = event_find(type) == STENO_EVENT_RUN_STARTED;
        return 1;
}

/* Did the run come to nothing? It has stored its message before it tells that it has started. */
static bool died_early(struct request *r, const char *run, const struct json *info)
{
        bool started = false;
        return !json_is(info, json_get(info, 0, "state"), "running") &&
               steno_run_read(r->store, r->who.project, run, 0, is_start, &started, NULL) >= 0 &&
               !started;
}

/*
 * Was this turn begun before? Then its run says in which conversation. Behind a run that came to
 * nothing the turn begins once more, under another id.
 */
static void find_again(struct request *r, struct turn *t)
{
        size_t n = strcspn(t->run, "-");
        t->run[n] = '\0';
        for (unsigned tries = 1; !t->again && tries <= TRIES_MAX; tries++) {
                struct json j;
                char *info = NULL;
                json_init(&j);
                if (tries > 1)
                        snprintf(t->run + n, sizeof t->run - n, "-%u", tries);
                int rc = steno_run_info(r->store, r->who.project, t->run, &info, NULL);
                if (rc == 0 && json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
                    (tries == TRIES_MAX || !died_early(r, t->run, &j))) {
                        t->chat.conversation = request_member(r, &j, 0, "conversation");
                        t->again = t->chat.conversation != NULL;
                }
                json_release(&j);
                steno_free(info);
                if (rc)
                        break;
        }
}

static bool read_mode(struct request *r, const struct json *j, struct turn *t)
{
        static const char *const MODES[] = {"chat", "agent", "run"};
        t->chat.mode = request_member(r, j, 0, "mode");
        bool known = !t->chat.mode;
        for (size_t i = 0; i < 3 && !known; i++)
                known = strcmp(t->chat.mode, MODES[i]) == 0;
        if (!known)
                request_error(r, 400, "bad_request", "mode must be chat, agent or run");
        return known;
}

static bool read_turn(struct request *r, const struct json *j, struct turn *t)
{
        char hex[SHA256_HEX];
        if (!read_mode(r, j, t))
                return false;
        t->chat.project = r->who.project;
        t->chat.model = request_member(r, j, 0, "model");
        t->stream = json_bool(j, json_get(j, 0, "stream"), true);
        if (request_keyed(r, r->path, hex)) {
                snprintf(t->run, sizeof t->run, "run_k%.31s", hex);
                snprintf(t->message_id, sizeof t->message_id, "msg_k%.31s", hex);
                t->chat.run = t->run;
                find_again(r, t);
        }
        return true;
}

/* ---- answering ---- */

static void answer_stream(struct request *r, struct turn *t)
{
        struct steno_error err = {0};
        struct stream *s = stream_events(r, NULL, NULL);
        if (!s)
                return;
        request_header_out(r, "X-Run-Id", t->run);
        if (t->chat.conversation)
                request_header_out(r, "X-Session-Id", t->chat.conversation);
        struct buf first;
        buf_init(&first, 0);
        struct jsonw w = jsonw_to(&first);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "sessionId", t->chat.conversation);
        jsonw_field_cstr(&w, "runId", t->run);
        if (t->new_token) {
                jsonw_field_cstr(&w, "token", t->new_token);
        }
        jsonw_object_end(&w);
        stream_event(s, NULL, "session", first.p, first.n);
        buf_release(&first);
        if (follow_add(
                r->server->follow, r->who.project, t->run, 0, projection_find(NULL), s, &err)) {
                stream_break(s);
                stream_unref(s);
        }
}

static void put_result(
    struct request *r, const struct turn *t, const char *result, const char *final)
{
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "sessionId", t->chat.conversation);
        jsonw_field_cstr(&w, "runId", t->run);
        if (t->new_token) {
                jsonw_field_cstr(&w, "token", t->new_token);
        }
        static const char *const MEMBERS[] = {
            "reason", "messageId", "text", "error", "turns", "usage"};
        struct json j, f;
        json_init(&j);
        json_init(&f);
        bool told = result && json_parse(&j, result, strlen(result), NULL, NULL) == 0;
        bool ended = final && json_parse(&f, final, strlen(final), NULL, NULL) == 0;
        for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
                json_ref v = told ? json_get(&j, 0, MEMBERS[i]) : JSON_NONE;
                const struct json *in = &j;
                if (v == JSON_NONE && ended) {
                        in = &f;
                        v = json_get(&f, 0, MEMBERS[i]);
                }
                if (v == JSON_NONE)
                        continue;
                jsonw_field_copy(&w, MEMBERS[i], in, v);
                if (strcmp(MEMBERS[i], "text") == 0)
                        jsonw_field_copy(&w, "message", in, v);
        }
        /* A run that failed or was stopped has no final message, and calls all the same. */
        const struct json *from = ended ? &f : &j;
        json_ref calls = ended || told ? json_get(from, 0, "toolCalls") : JSON_NONE;
        jsonw_field_raw(&w, "toolCalls", calls == JSON_NONE ? STR("[]") : json_raw(from, calls));
        json_release(&j);
        json_release(&f);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

/* ---- answering again ---- */

/* What the journal of a run says about its end. */
struct ending {
        uint64_t seen; /* the last event that was read */
        char *final;   /* the data of these events, or NULL */
        char *error;
        char *finished;
        char *last_id;   /* of the message that was asked for or told last */
        struct buf ids;  /* of those that were asked for; each ends with a zero byte */
        uint64_t before; /* all of these stand behind this place in the log */
};

static void ending_release(struct ending *e)
{
        free(e->final);
        free(e->error);
        free(e->finished);
        free(e->last_id);
        buf_release(&e->ids);
}

static void keep_text(char **to, char *text)
{
        free(*to);
        *to = text;
}

static void keep_message(struct ending *e, const char *data, size_t n, bool asked)
{
        struct json j;
        json_init(&j);
        char *id = json_parse(&j, data, n, NULL, NULL)
                       ? NULL
                       : json_dup_string(&j, json_get(&j, 0, "messageId"));
        if (id && asked) {
                if (e->ids.n == 0)
                        json_u64(&j, json_get(&j, 0, "after"), &e->before);
                buf_put(&e->ids, id, strlen(id) + 1);
        }
        if (id)
                keep_text(&e->last_id, id);
        json_release(&j);
}

static int keep_ending(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct ending *e = ctx;
        enum steno_event kind = event_find(type);
        (void)at;
        e->seen = seq;
        if (kind == STENO_EVENT_REQUEST || kind == STENO_EVENT_RUN_ERROR)
                keep_message(e, data, n, kind == STENO_EVENT_REQUEST);
        if (kind == STENO_EVENT_FINAL_MESSAGE)
                keep_text(&e->final, strndup(data, n));
        else if (kind == STENO_EVENT_RUN_ERROR)
                keep_text(&e->error, strndup(data, n));
        else if (kind == STENO_EVENT_RUN_FINISHED)
                keep_text(&e->finished, strndup(data, n));
        return 0;
}

static void copy_members(struct jsonw *w, const char *text, const char *const *names)
{
        struct json j;
        json_init(&j);
        bool read = text && json_parse(&j, text, strlen(text), NULL, NULL) == 0;
        for (; read && *names; names++) {
                json_ref v = json_get(&j, 0, *names);
                if (v != JSON_NONE)
                        jsonw_field_copy(w, *names, &j, v);
        }
        json_release(&j);
}

/* The answer of a run that has already ended, from its journal. */
static int put_ending(struct request *r, const struct turn *t, const struct ending *e,
    struct buf *out, struct steno_error *err)
{
        static const char *const FINISHED[] = {"reason", "turns", "usage", NULL};
        static const char *const FAULT[] = {"code", "message", "retryable", NULL};
        struct steno_conv *conv = NULL;
        struct buf calls;
        int rc = 0;
        buf_init(&calls, MESSAGE_MAX);
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        copy_members(&w, e->finished, FINISHED);
        if (e->last_id)
                jsonw_field_cstr(&w, "messageId", e->last_id);
        if (e->error) {
                jsonw_key(&w, "error");
                jsonw_object(&w);
                copy_members(&w, e->error, FAULT);
                jsonw_object_end(&w);
        }
        if (!e->final) {
                rc = steno_conv_open(r->store, r->who.project, t->chat.conversation, &conv, err);
                if (rc == 0)
                        rc = toldcalls_put(conv, e->before, &e->ids, &calls, err);
                if (rc == 0 && !calls.failed)
                        jsonw_field_raw(&w, "toolCalls", buf_str(&calls));
                steno_conv_close(conv);
        }
        jsonw_object_end(&w);
        buf_release(&calls);
        return rc ? rc : buf_check(out, err);
}

static void answer_again(struct request *r, struct turn *t)
{
        struct steno_error err = {0};
        struct ending e = {0};
        struct buf result;
        buf_init(&e.ids, 0);
        buf_init(&result, 0);
        int rc;
        while ((rc = steno_run_read(
                    r->store, r->who.project, t->run, e.seen, keep_ending, &e, &err)) == 0 &&
               !e.finished) {
                rc = steno_run_wait(r->store, r->who.project, t->run, e.seen, 200, &err);
                if (rc < 0)
                        break;
        }
        if (rc == 0)
                rc = put_ending(r, t, &e, &result, &err);
        if (rc == 0)
                put_result(r, t, buf_cstr(&result), e.final);
        else
                request_failed(r, rc, &err);
        buf_release(&result);
        ending_release(&e);
}

/* Answers from the run that is there. */
static void take_again(struct request *r, struct turn *t)
{
        if (t->stream)
                answer_stream(r, t);
        else
                answer_again(r, t);
}

/*
 * Was the conversation refused because this very turn is running in it? Two requests with one key
 * can arrive at the same moment, and a run makes its claim shortly before the journal by which it
 * is found.
 */
static bool lost_to_itself(struct request *r, struct turn *t, const struct steno_error *err)
{
        if (err->code != STENO_ECONFLICT || !t->chat.run || !strstr(err->msg, t->chat.run))
                return false;
        for (int64_t until = http_now_ms() + CLAIMED_SOON_MS; !t->again; wait_sleep(10)) {
                find_again(r, t);
                if (http_now_ms() > until)
                        break;
        }
        return t->again;
}

static void take_turn(struct request *r, struct turn *t)
{
        struct steno_error err = {0};
        char *result = NULL, *final = NULL;
        int rc = 0;
        if (!r->server->chat) {
                request_error(r, 501, "unsupported", "this server was started without a model");
                return;
        }
        if (t->again) {
                take_again(r, t);
                return;
        }
        if (t->chat.message && t->message_id[0])
                t->chat.message_id = t->message_id;
        if (t->stream) {
                rc = runner_start(r->server->chat, &t->chat, t->run, &err);
                if (rc == 0)
                        answer_stream(r, t);
        } else {
                rc = runner_run(r->server->chat, &t->chat, t->run, &result, &final, &err);
                if (rc == 0)
                        put_result(r, t, result, final);
        }
        if (rc && lost_to_itself(r, t, &err))
                take_again(r, t);
        else if (rc)
                request_failed(r, rc, &err);
        steno_free(result);
        free(final);
}

/* ---- the routes ---- */

void own_chatbot(struct request *r)
{
        struct turn t = {0};
        struct json j;
        json_init(&j);
        if (request_json(r, &j, TURN) && read_turn(r, &j, &t) &&
            (t.again || (read_message(r, &j, &t) && choose_conversation(r, &j, &t))))
                take_turn(r, &t);
        json_release(&j);
}

void own_session_continue(struct request *r)
{
        struct turn t = {0};
        struct json j;
        json_init(&j);
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (conv && request_json(r, &j, TURN) && read_turn(r, &j, &t)) {
                t.chat.conversation = r->params[0].p;
                take_turn(r, &t);
        }
        steno_conv_close(conv);
        json_release(&j);
}

/* ---- visitors ---- */

/* Gives a visitor without a token a conversation and a token for it. */
static bool admit_visitor(struct request *r, struct turn *t)
{
        struct steno_error err = {0};
        struct steno_conv *conv;
        char token[TOKEN_TEXT];
        snprintf(r->who.project, sizeof r->who.project, "%s", r->server->public_project);
        int rc = steno_conv_create(r->store, r->who.project, NULL, NULL, &conv, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return false;
        }
        t->chat.conversation = arena_dup(&r->arena, str_of(steno_conv_id(conv))).p;
        steno_conv_close(conv);
        rc = identities_add(
            r->server->identities, r->who.project, t->chat.conversation, NULL, token, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return false;
        }
        t->new_token = arena_dup(&r->arena, str_of(token)).p;
        identities_check(r->server->identities, str_of(token), &r->who);
        return t->new_token && t->chat.conversation;
}

/* Only its visitor may name a conversation. Without this check, a visitor without the token would
 * silently get a new conversation that knows nothing of the earlier one. */
static bool may_go_on(struct request *r, const struct json *j, bool visitor)
{
        bool named = request_member(r, j, 0, "sessionId") != NULL;
        bool unknown = !r->who.known && request_header(r, "Authorization");
        if (visitor || (!named && !unknown))
                return true;
        request_error(r, 401, "unauthorized",
            "this needs the token that the conversation began with; without sessionId and token a "
            "new one begins");
        return false;
}

static bool is_open(const struct request *r, bool visitor)
{
        const char *open = r->server->public_project;
        return open && (!visitor || strcmp(open, r->who.project) == 0);
}

static void take_visitors_turn(struct request *r)
{
        struct turn t = {.chat.public_only = true};
        struct json j;
        bool visitor = r->who.known && r->who.session[0];
        /* A visitor with a token from the time when the chatbot was open can read the conversation,
         * but cannot add to it. */
        if (!is_open(r, visitor)) {
                request_error(r, 404, "not_found", "the public chatbot is not open");
                return;
        }
        if (!buckets_take(r->server->buckets, visitor ? r->who.token_id : "new visitors",
                visitor ? SERVER_PUBLIC_PER_MINUTE : SERVER_PUBLIC_SESSIONS_PER_MINUTE)) {
                request_header_out(r, "Retry-After", "60");
                request_error(r, 429, "rate_limit", "too many turns; wait a minute");
                return;
        }
        json_init(&j);
        if (request_json(r, &j, TURN) && may_go_on(r, &j, visitor) &&
            (t.chat.message = own_visitor_text(r, &j)) && read_mode(r, &j, &t) &&
            (visitor ? choose_conversation(r, &j, &t) : admit_visitor(r, &t)) &&
            own_visitor_has_room(r, t.chat.conversation) && read_turn(r, &j, &t)) {
                t.chat.model = NULL; /* the owner's choice, not the visitor's */
                take_turn(r, &t);
        }
        json_release(&j);
}

/* A visitor who asks again for the answer of a running turn waits on a thread that the owner's
 * turns need, so this is limited. */
void own_chatbot_public(struct request *r)
{
        atomic_uint *asking = &r->server->visitors_asking;
        if (atomic_fetch_add(asking, 1) < SERVER_VISITORS_ASKING_MAX) {
                take_visitors_turn(r);
        } else {
                request_header_out(r, "Retry-After", "1");
                request_error(r, 503, "busy", "too many visitors at once; try again later");
        }
        atomic_fetch_sub(asking, 1);
}
