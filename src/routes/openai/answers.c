/*
 * answers.c - POST /v1/responses: OpenAI's Responses with the state kept here.
 *
 * A response is a run of a conversation, under the response's id. Its events are written to the
 * run's journal before anybody sees them (`response_event`, steno_events.h), so that they can be
 * read again, from any point, by any number of readers, also after a kill. The model, behind an
 * upstream of the gateway that speaks the same API, gets the view of the conversation and the
 * input; input and output are appended to the conversation together when the response is complete,
 * before its last event is sent. Instructions are never stored.
 *
 * A response without a conversation gets one of its own. A request with previous_response_id
 * continues in it, or in a fork if that response is not the last one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "gateway/asking.h"
#include "http/server_core.h"
#include "routes/handlers.h"
#include "routes/openai/answers_core.h"

/* ---- asking the model ---- */

/* An event of a chat completion. */
static int on_chunk(void *ctx, struct str name, struct str data)
{
        struct answer *a = ctx;
        (void)name;
        return chatwire_chunk(a->chat, data);
}

/* A chat completion has come to its end. */
static int finish_chat(struct answer *a, const struct asking *what, struct steno_error *err)
{
        int rc = what->stream ? 0 : chatwire_whole(a->chat, buf_str(&what->answer));
        if (rc == 0)
                rc = chatwire_end(a->chat, err);
        if (rc && !err->msg[0])
                error_set(err, rc, "the upstream's answer could not be accepted");
        return rc;
}

enum { OVER = 1 };

/* Anything that an upstream sends behind the last event is ignored. */
static int on_event(void *ctx, struct str name, struct str data)
{
        const struct answer *a = ctx;
        int rc = answers_on_event(ctx, name, data);
        return rc == 0 && a->over ? OVER : rc;
}

/* Asks the model and writes what it says to the journal. */
static int ask(struct answer *a, struct steno_error *err)
{
        struct buf body;
        struct asking what = {.upstream = gateway_responses(a->server->gateway),
            .path = a->chat ? "/chat/completions" : "/responses",
            .stop = a->stop,
            .event = a->chat ? on_chunk : on_event,
            .ctx = a};
        buf_init(&body, 0);
        buf_init(&what.answer, MESSAGE_MAX);
        int rc = answers_put_request(a, &body, err);
        what.body = buf_str(&body);
        if (rc == 0)
                rc = asking_run(a->server->gateway, &what, err);
        if (rc == OVER)
                rc = 0;
        if (rc == 0 && what.status / 100 != 2) {
                a->status = (int)what.status;
                buf_put_str(&a->refusal, buf_str(&what.answer));
                rc = error_set(err, STENO_EIO, "the upstream answered %ld", what.status);
        } else if (rc == 0 && a->chat) {
                rc = finish_chat(a, &what, err);
        } else if (rc == 0 && !what.stream) {
                rc = answers_tell_whole(a, buf_str(&what.answer), err);
        }
        buf_release(&what.answer);
        buf_release(&body);
        return rc;
}

/* ---- answering ---- */

static void reply_at_end(struct answer *a, int rc, const struct steno_error *err)
{
        struct request *r = a->r;
        if (a->status) { /* the upstream's own words */
                buf_put_str(&r->reply, buf_str(&a->refusal));
                request_reply_json(r, a->status);
        } else if (rc && !a->last.n) {
                request_error(r, 502, "upstream_failed", "%s", err->msg);
        } else {
                buf_put_str(&r->reply, buf_str(&a->last));
                request_reply_json(r, 200);
        }
}

/* A background response answers at once. */
static void reply_queued(struct answer *a)
{
        struct request *r = a->r;
        struct jsonw w = jsonw_to(&a->last);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", a->id);
        jsonw_field_cstr(&w, "object", "response");
        jsonw_field_i64(&w, "created_at", env_real()->now(env_real()) / 1000);
        jsonw_field_cstr(&w, "status", "queued");
        jsonw_field_copy(&w, "model", &a->body, json_get(&a->body, 0, "model"));
        jsonw_field_raw(&w, "output", STR("[]"));
        jsonw_field_null(&w, "error");
        jsonw_field_bool(&w, "background", true);
        jsonw_field_cstr(&w, "previous_response_id", a->previous[0] ? a->previous : NULL);
        jsonw_object_end(&w);
        buf_put_str(&r->reply, buf_str(&a->last));
        request_reply_json(r, 200);
}

void answers_wait(struct request *r, const char *id)
{
        struct json j;
        char *info = NULL;
        uint64_t last = 0;
        bool running = true;
        json_init(&j);
        while (running && !atomic_load(&r->server->stopping)) {
                running = steno_run_info(r->store, r->who.project, id, &info, NULL) == 0 &&
                          json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
                          json_is(&j, json_get(&j, 0, "state"), "running");
                json_u64(&j, json_get(&j, 0, "lastSeq"), &last);
                steno_free(info);
                info = NULL;
                if (running)
                        steno_run_wait(r->store, r->who.project, id, last, 1000, NULL);
        }
        json_release(&j);
}

/* The key of a request: its project and body. */
static bool key_of(const struct answer *a, char key[SHA256_HEX])
{
        struct buf b;
        buf_init(&b, 0);
        buf_printf(&b, "%s\n", a->project);
        buf_put_str(&b, buf_str(&a->text));
        bool good = !b.failed && hash_sha256_hex(b.p, b.n, key) == 0;
        buf_release(&b);
        return good;
}

/* A client that got no answer sends the request again, marked as a retry. Then it gets the first
 * response. */
static bool join_earlier(struct answer *a)
{
        char key[SHA256_HEX], id[GATEWAY_ASKED];
        const char *count = request_header(a->r, "X-Stainless-Retry-Count");
        if (!count || strtol(count, NULL, 10) <= 0 || !key_of(a, key) ||
            !gateway_recall(a->server->gateway, key, id))
                return false;
        if (a->stream) {
                answers_follow(a->r, id, 0);
        } else {
                if (!a->background)
                        answers_wait(a->r, id);
                answers_reply(a->r, id);
        }
        return true;
}

/* ---- the request ---- */

/* For an upstream that has chat completions only. False: it was refused. */
static bool prepare_chat(struct answer *a)
{
        struct steno_error err = {0};
        if (!gateway_responses_chat(a->server->gateway))
                return true;
        if (!chatwire_has_tools(&a->body)) {
                request_error_in(a->r, "tools", 400, "unsupported_tool",
                    "tools: the upstream of this server has chat completions, which know "
                    "functions only");
                return false;
        }
        a->chat = chatwire_new(&a->body, answers_on_event, a, &err);
        if (!a->chat)
                request_failed(a->r, STENO_ENOMEM, &err);
        return a->chat != NULL;
}

static bool prepare(struct answer *a)
{
        struct request *r = a->r;
        if (!r->server->gateway) {
                request_error(r, 503, "no_gateway", "this server has no gateway");
                return false;
        }
        if (!request_parse(r, &a->body, buf_str(&a->text), "the body"))
                return false;
        if (json_type(&a->body, 0) != JSON_OBJECT) {
                request_error(r, 400, "invalid_json", "the body must be a JSON object");
                return false;
        }
        a->stream = json_bool(&a->body, json_get(&a->body, 0, "stream"), false);
        a->background = json_bool(&a->body, json_get(&a->body, 0, "background"), false);
        char key[SHA256_HEX];
        if (!prepare_chat(a) || join_earlier(a) || !answers_take_input(a) ||
            !answers_find_conv(a) || !answers_begin_run(a))
                return false;
        if (key_of(a, key))
                gateway_remember(a->server->gateway, key, a->id);
        return true;
}

static void answer_release(struct answer *a)
{
        chatwire_free(a->chat);
        steno_run_close(a->run);
        steno_conv_close(a->conv);
        steno_stop_free(a->stop);
        json_release(&a->body);
        json_release(&a->event);
        buf_release(&a->text);
        buf_release(&a->given);
        buf_release(&a->input);
        buf_release(&a->output);
        buf_release(&a->last);
        buf_release(&a->refusal);
        free(a->project);
}

void answers_create(struct request *r)
{
        struct answer a = {.r = r, .server = r->server, .store = r->store};
        struct steno_error err = {0};
        json_init(&a.body);
        json_init(&a.event);
        buf_init(&a.text, 0);
        buf_init(&a.given, 0);
        buf_init(&a.input, 0);
        buf_init(&a.output, 0);
        buf_init(&a.last, 0);
        buf_init(&a.refusal, MESSAGE_MAX);
        buf_put_str(&a.text, buf_str(&r->body));
        a.project = strdup(r->who.project);
        if (a.text.failed || !a.project || !prepare(&a)) {
                if (a.text.failed || !a.project)
                        request_error(r, 503, "busy", "out of memory");
                http_finish(r);
                answer_release(&a);
                return;
        }
        if (a.background && !a.stream) {
                reply_queued(&a);
                http_finish(r);
                a.r = NULL;
        }
        int rc = ask(&a, &err);
        answers_finish_run(&a, rc, &err);
        if (a.r) {
                reply_at_end(&a, rc, &err);
                http_finish(a.r);
        }
        answer_release(&a);
}
