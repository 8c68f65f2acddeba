/*
 * answers.c - /v1/responses: OpenAI's Responses with the state kept here.
 *
 * A response is a run of a conversation, under the response's id. Its events are written to the
 * run's journal before anybody sees them (`response_event`, steno_events.h), so that they can be
 * read again, from any point, by any number of readers, also after a kill. The model, behind an
 * upstream of the gateway that speaks the same API, gets the view of the conversation and the
 * input; both, input and output, become part of the conversation in one append when the response
 * is complete, before its last event is told. Instructions are never stored.
 *
 * A response without a conversation has one of its own, which previous_response_id goes on in; from
 * an earlier response it goes on in a fork.
 */
#include "routes/openai/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "gateway/asking.h"
#include "gateway/chatwire.h"
#include "http/follow.h"
#include "http/http_limits.h"
#include "http/server_core.h"
#include "model/event.h"
#include "routes/handlers.h"
#include "routes/openai/items.h"

#define ITEMS_DEFAULT 20
#define ITEMS_MAX 100

/* One response while it is made; `r` is NULL once it was answered. */
struct answer {
        struct request *r;
        struct server *server;
        struct steno_store *store;
        char *project;
        struct json body;
        struct buf text; /* the request's, as long as this lives */
        char id[64];
        struct steno_conv *conv;
        bool named; /* by `conversation` */
        char previous[64];
        bool stream, background;
        struct steno_run *run;
        struct steno_stop *stop;
        struct buf given;      /* the input as it came, a JSON array */
        struct buf input;      /* the same as it is stored */
        struct buf output;     /* items that are done, with commas between */
        struct chatwire *chat; /* of an upstream that has chat completions only; else NULL */
        struct json event;
        struct buf last; /* the response as it was told last */
        int64_t sequence;
        bool over;  /* the last event was told */
        int status; /* of the upstream's refusal */
        struct buf refusal;
};

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

/* ---- which conversation ---- */

/* What the journal of a response says at its end. */
struct facts {
        struct buf response; /* as it was told last */
        struct buf input;
        uint64_t stored; /* the seq of its last item; 0: nothing was stored */
        uint64_t last;   /* event of the journal */
        int64_t behind;  /* of the response's events: where to begin reading, by their number */
        uint64_t from;   /* and that event of the journal */
        bool failed;     /* the run died */
};

static int take_fact(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct facts *f = ctx;
        struct json j;
        (void)at;
        f->last = seq;
        f->failed = f->failed || strcmp(type, event_name(STENO_EVENT_RUN_ERROR)) == 0;
        if (strcmp(type, event_name(STENO_EVENT_RESPONSE_EVENT)) != 0)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0) {
                json_ref event = json_get(&j, 0, "event"), input = json_get(&j, 0, "input");
                json_ref response = json_get(&j, event, "response");
                int64_t number;
                json_u64(&j, json_get(&j, 0, "stored"), &f->stored);
                if (json_type(&j, response) == JSON_OBJECT) {
                        buf_clear(&f->response);
                        buf_put_str(&f->response, json_raw(&j, response));
                }
                if (json_type(&j, input) == JSON_ARRAY)
                        buf_put_str(&f->input, json_raw(&j, input));
                if (json_i64(&j, json_get(&j, event, "sequence_number"), &number) &&
                    number <= f->behind)
                        f->from = seq;
        }
        json_release(&j);
        return 0;
}

static void facts_init(struct facts *f, int64_t behind)
{
        *f = (struct facts){.behind = behind};
        buf_init(&f->response, 0);
        buf_init(&f->input, 0);
}

static void facts_release(struct facts *f)
{
        buf_release(&f->response);
        buf_release(&f->input);
}

static void not_found(struct request *r, const char *id)
{
        request_error(r, 404, "not_found", "Response with id '%.80s' not found.", id);
}

static bool is_deleted(struct steno_conv *conv, const char *id)
{
        struct json j;
        char *meta = NULL;
        json_init(&j);
        bool is = steno_conv_meta(conv, &meta, NULL) == 0 &&
                  json_parse(&j, meta, strlen(meta), NULL, NULL) == 0 &&
                  json_get(&j, json_get(&j, 0, "deletedResponses"), id) != JSON_NONE;
        json_release(&j);
        steno_free(meta);
        return is;
}

/* The conversation of a response; else 404 was answered. */
static struct steno_conv *find_answer(struct request *r, const char *id)
{
        struct steno_conv *conv = NULL;
        struct json j;
        char *info = NULL, *name = NULL;
        json_init(&j);
        if (strncmp(id, "resp_", 5) == 0 && strlen(id) < 64 &&
            steno_run_info(r->store, r->who.project, id, &info, NULL) == 0 &&
            json_parse(&j, info, strlen(info), NULL, NULL) == 0)
                name = json_dup_string(&j, json_get(&j, 0, "conversation"));
        if (name)
                steno_conv_open(r->store, r->who.project, name, &conv, NULL);
        if (conv && is_deleted(conv, id)) {
                steno_conv_close(conv);
                conv = NULL;
        }
        if (!conv)
                not_found(r, id);
        free(name);
        steno_free(info);
        json_release(&j);
        return conv;
}

static bool create_conv(struct answer *a)
{
        struct steno_error err = {0};
        char id[64];
        id_make(env_real(), "conv_", id);
        int rc =
            steno_conv_create(a->store, a->project, id, "{\"title\":\"Response\"}", &a->conv, &err);
        if (rc)
                request_failed(a->r, rc, &err);
        return rc == 0;
}

/* Goes on behind a response: where it ended, or in a fork from there. */
static bool follow_previous(struct answer *a, const char *previous)
{
        struct steno_error err = {0};
        struct facts f;
        uint64_t now = 0;
        struct steno_conv *conv = find_answer(a->r, previous);
        if (!conv)
                return false;
        facts_init(&f, -1);
        int rc = steno_run_read(a->store, a->project, previous, 0, take_fact, &f, &err);
        if (rc == 0)
                rc = steno_conv_last_seq(conv, &now, &err);
        if (rc == 0 && !f.stored)
                rc = error_set(&err, STENO_EINVAL, "response %.80s was not completed", previous);
        if (rc == 0 && now != f.stored) {
                struct steno_fork_options opt = {.size = sizeof opt, .at_seq = f.stored};
                rc = steno_fork(conv, &opt, &a->conv, &err);
                steno_conv_close(conv);
        } else if (rc == 0) {
                a->conv = conv;
        } else {
                steno_conv_close(conv);
        }
        facts_release(&f);
        if (rc)
                request_failed(a->r, rc, &err);
        snprintf(a->previous, sizeof a->previous, "%s", previous);
        return rc == 0;
}

static bool find_conv(struct answer *a)
{
        struct request *r = a->r;
        json_ref named = json_get(&a->body, 0, "conversation");
        if (json_type(&a->body, named) == JSON_OBJECT)
                named = json_get(&a->body, named, "id");
        char *name = json_dup_string(&a->body, named);
        char *previous = json_dup_string(&a->body, json_get(&a->body, 0, "previous_response_id"));
        bool found = false;
        if (name && previous) {
                request_error(r, 400, "mutually_exclusive_parameters",
                    "conversation and previous_response_id cannot be used together");
        } else if (name) {
                a->conv = request_conv(r, name);
                found = a->named = a->conv != NULL;
        } else if (previous) {
                found = follow_previous(a, previous);
        } else {
                found = create_conv(a);
        }
        free(name);
        free(previous);
        return found;
}

/* ---- the request to the upstream ---- */

static bool take_input(struct answer *a)
{
        const struct json *j = &a->body;
        json_ref input = json_get(j, 0, "input");
        struct json one;
        struct buf *text = &a->given;
        size_t n = 0;
        const char *why = "it must be a string or a list of items";
        json_init(&one);
        if (json_type(j, input) == JSON_STRING) {
                buf_puts(text, "[{\"role\":\"user\",\"content\":");
                buf_put_str(text, json_raw(j, input));
                buf_puts(text, "}]");
        } else if (json_type(j, input) == JSON_ARRAY) {
                buf_put_str(text, json_raw(j, input));
        }
        bool good = !text->failed && text->n && json_parse(&one, text->p, text->n, NULL, NULL) == 0;
        buf_putc(&a->input, '[');
        for (json_ref e = good ? json_child(&one, 0) : JSON_NONE; good && e != JSON_NONE;
             e = json_next(&one, 0, e)) {
                if (n)
                        buf_putc(&a->input, ',');
                good = items_normalise(&one, e, str_of(NULL), n++, &a->input, &why);
        }
        buf_putc(&a->input, ']');
        if (!good)
                request_error_in(a->r, "input", 400, "invalid_input", "input: %s", why);
        json_release(&one);
        return good && !a->input.failed;
}

static int put_bytes(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* Is this an output of a call that the input answers? */
static bool is_answered(const struct json *view, json_ref item, const struct json *given)
{
        struct str call = json_inner(view, json_get(view, item, "call_id"));
        json_ref output = json_get(view, item, "output");
        for (json_ref g = call.n && output != JSON_NONE ? json_child(given, 0) : JSON_NONE;
             g != JSON_NONE; g = json_next(given, 0, g))
                if (json_get(given, g, "output") != JSON_NONE &&
                    str_eq(json_inner(given, json_get(given, g, "call_id")), call))
                        return true;
        return false;
}

/* The view of the conversation, and the input. A call that nobody has answered has a result in a
 * view, which gives way to the input's. */
static int put_history(struct answer *a, struct buf *out, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "responses", .no_ids = true, .strict = true};
        struct buf text;
        struct json view, given;
        buf_init(&text, 0);
        json_init(&view);
        json_init(&given);
        int rc = steno_view(a->conv, &opt, put_bytes, &text, NULL, err);
        if (rc == 0)
                rc = json_parse(&view, text.p, text.n, NULL, err);
        if (rc == 0)
                rc = json_parse(&given, a->given.p, a->given.n, NULL, err);
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        for (json_ref i = rc ? JSON_NONE : json_child(&view, 0); i != JSON_NONE;
             i = json_next(&view, 0, i))
                if (!is_answered(&view, i, &given))
                        jsonw_raw(&w, json_raw(&view, i));
        for (json_ref i = rc ? JSON_NONE : json_child(&given, 0); i != JSON_NONE;
             i = json_next(&given, 0, i))
                jsonw_raw(&w, json_raw(&given, i));
        jsonw_array_end(&w);
        json_release(&view);
        json_release(&given);
        buf_release(&text);
        return rc ? rc : buf_check(out, err);
}

static int put_request(struct answer *a, struct buf *out, struct steno_error *err)
{
        static const char *const ours[] = {"conversation", "previous_response_id", "background",
            "store", "input", "stream", "metadata"};
        struct buf history;
        buf_init(&history, 0);
        int rc = put_history(a, &history, err);
        if (rc == 0 && a->chat) {
                rc = chatwire_put_request(&a->body, buf_str(&history), out, err);
                buf_release(&history);
                return rc;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(&a->body, 0); k != JSON_NONE;
             k = json_next_key(&a->body, 0, k)) {
                bool own = false;
                for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
                        own = own || json_is(&a->body, k, ours[i]);
                if (!own)
                        jsonw_copy_member(&w, &a->body, k);
        }
        jsonw_field_raw(&w, "input", buf_str(&history));
        jsonw_field_bool(&w, "stream", true);
        jsonw_field_bool(&w, "store", false); /* the state is here */
        jsonw_object_end(&w);
        buf_release(&history);
        return rc ? rc : buf_check(out, err);
}

/* ---- events ---- */

/* The upstream's response object as this server's. */
static void put_response(struct answer *a, const struct json *j, json_ref response, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", a->id);
        for (json_ref k = json_child(j, response); k != JSON_NONE;
             k = json_next_key(j, response, k)) {
                static const char *const ours[] = {"id", "conversation", "previous_response_id",
                    "store", "background", "metadata"};
                bool own = false;
                for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
                        own = own || json_is(j, k, ours[i]);
                if (!own)
                        jsonw_copy_member(&w, j, k);
        }
        jsonw_key(&w, "conversation");
        if (a->named) {
                jsonw_object(&w);
                jsonw_field_cstr(&w, "id", steno_conv_id(a->conv));
                jsonw_object_end(&w);
        } else {
                jsonw_null(&w);
        }
        jsonw_field_cstr(&w, "previous_response_id", a->previous[0] ? a->previous : NULL);
        jsonw_field_bool(&w, "store", json_bool(&a->body, json_get(&a->body, 0, "store"), true));
        jsonw_field_bool(&w, "background", a->background);
        json_ref metadata = json_get(&a->body, 0, "metadata");
        jsonw_field_raw(&w, "metadata",
            json_type(&a->body, metadata) == JSON_OBJECT ? json_raw(&a->body, metadata)
                                                         : STR("{}"));
        jsonw_object_end(&w);
}

/* Writes one to the journal; `more` are members beside it. */
static int journal(
    struct answer *a, struct str event, const char *more, bool sync, struct steno_error *err)
{
        struct buf b;
        buf_init(&b, 0);
        buf_printf(&b, "{\"runId\":\"%s\"", a->id);
        if (event.n) {
                buf_puts(&b, ",\"event\":");
                buf_put_str(&b, event);
        }
        buf_puts(&b, more);
        buf_putc(&b, '}');
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = steno_run_event(a->run, event_name(STENO_EVENT_RESPONSE_EVENT), b.p, b.n,
                    sync ? STENO_FULL : STENO_PROCESS, NULL, err);
        buf_release(&b);
        if (rc == 0)
                follow_poke(a->server->follow, a->id);
        return rc;
}

/* An event of the upstream with our number and our response. */
static void put_event(struct answer *a, const struct json *j, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k)) {
                if (json_is(j, k, "sequence_number"))
                        continue;
                if (!json_is(j, k, "response")) {
                        jsonw_copy_member(&w, j, k);
                        continue;
                }
                buf_clear(&a->last);
                put_response(a, j, json_value(j, k), &a->last);
                jsonw_field_raw(&w, "response", buf_str(&a->last));
        }
        jsonw_field_i64(&w, "sequence_number", a->sequence++);
        jsonw_object_end(&w);
}

/* Input and output become part of the conversation, together. */
static int store_items(struct answer *a, uint64_t *seq, struct steno_error *err)
{
        struct buf all;
        struct steno_receipt *receipt = NULL;
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS | STENO_ANEW,
            .format = "responses",
            .idempotency_key = a->id};
        buf_init(&all, 0);
        buf_put(&all, a->input.p, a->input.n - 1);
        if (a->input.n > 2 && a->output.n)
                buf_putc(&all, ',');
        buf_put_str(&all, buf_str(&a->output));
        buf_putc(&all, ']');
        int rc = buf_check(&all, err);
        if (rc == 0 && all.n > 2)
                rc = steno_append(a->conv, all.p, all.n, &opt, &receipt, err);
        if (receipt)
                *seq = steno_receipt_last_seq(receipt);
        steno_receipt_free(receipt);
        buf_release(&all);
        return rc;
}

static int keep_item(struct answer *a, const struct json *j)
{
        const char *why;
        json_ref item = json_get(j, 0, "item");
        if (a->output.n)
                buf_putc(&a->output, ',');
        if (!items_normalise(j, item, str_of(NULL), 0, &a->output, &why))
                buf_put_str(&a->output, json_raw(j, item));
        return a->output.failed;
}

static bool follow_answer(struct request *r, const char *id, uint64_t after);

/* The upstream has taken the request: a stream begins, and goes on without the request. */
static void begin_stream(struct answer *a)
{
        if (!a->stream || !a->r)
                return;
        follow_answer(a->r, a->id, 0);
        http_finish(a->r);
        a->r = NULL;
}

static int on_event(void *ctx, struct str name, struct str data)
{
        struct answer *a = ctx;
        struct json *j = &a->event;
        struct steno_error err = {0};
        struct buf out;
        char more[48] = "";
        int rc = 0;
        (void)name;
        if (a->over || json_parse(j, data.p, data.n, NULL, NULL) != 0)
                return 0;
        begin_stream(a);
        json_ref type = json_get(j, 0, "type");
        bool whole =
            json_is(j, type, "response.completed") || json_is(j, type, "response.incomplete");
        if (json_is(j, type, "response.output_item.done"))
                rc = keep_item(a, j);
        if (whole) {
                uint64_t seq = 0;
                rc = store_items(a, &seq, &err);
                snprintf(more, sizeof more, ",\"stored\":%llu", (unsigned long long)seq);
        }
        a->over = whole || json_is(j, type, "response.failed") || json_is(j, type, "error");
        buf_init(&out, 0);
        put_event(a, j, &out);
        if (rc == 0)
                rc = buf_check(&out, &err);
        if (rc == 0)
                rc = journal(a, buf_str(&out), more, a->over, &err);
        buf_release(&out);
        return rc;
}

/* An upstream that answers with one object although it was asked for a stream. */
static int tell_whole(struct answer *a, struct str body, struct steno_error *err)
{
        struct json j;
        struct buf b;
        int64_t index = 0;
        json_init(&j);
        buf_init(&b, 0);
        int rc = json_parse(&j, body.p, body.n, NULL, err);
        if (rc == 0 && !json_is(&j, json_get(&j, 0, "object"), "response"))
                rc = error_set(err, STENO_EPROTO, "the upstream's answer is no response");
        json_ref output = rc ? JSON_NONE : json_get(&j, 0, "output");
        if (rc == 0) {
                buf_puts(&b, "{\"type\":\"response.created\",\"response\":");
                buf_put_str(&b, json_raw(&j, 0));
                buf_putc(&b, '}');
                rc = on_event(a, (struct str){0}, buf_str(&b));
        }
        for (json_ref i = json_child(&j, output); i != JSON_NONE && rc == 0;
             i = json_next(&j, output, i), index++)
                for (int done = 0; done < 2 && rc == 0; done++) {
                        buf_clear(&b);
                        buf_printf(&b,
                            "{\"type\":\"response.output_item.%s\",\"output_index\":%lld,\"item\":",
                            done ? "done" : "added", (long long)index);
                        buf_put_str(&b, json_raw(&j, i));
                        buf_putc(&b, '}');
                        rc = on_event(a, (struct str){0}, buf_str(&b));
                }
        if (rc == 0) {
                struct str status = json_inner(&j, json_get(&j, 0, "status"));
                buf_clear(&b);
                buf_printf(&b, "{\"type\":\"response.%.*s\",\"response\":",
                    (int)(status.n < 40 ? status.n : 40), status.n ? status.p : "");
                buf_put_str(&b, json_raw(&j, 0));
                buf_putc(&b, '}');
                rc = on_event(a, (struct str){0}, buf_str(&b));
        }
        if (rc && !err->msg[0])
                error_set(err, rc, "the upstream's answer could not be taken");
        buf_release(&b);
        json_release(&j);
        return rc;
}

/* ---- the end ---- */

static void put_failure(
    struct answer *a, const char *status, const char *code, const char *message, struct buf *event)
{
        struct json j;
        struct buf response;
        json_init(&j);
        buf_init(&response, 0);
        struct jsonw w = jsonw_to(&response);
        if (a->last.n && json_parse(&j, a->last.p, a->last.n, NULL, NULL) == 0) {
                jsonw_object(&w);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        if (!json_is(&j, k, "status") && !json_is(&j, k, "error"))
                                jsonw_copy_member(&w, &j, k);
        } else {
                jsonw_object(&w);
                jsonw_field_cstr(&w, "id", a->id);
                jsonw_field_cstr(&w, "object", "response");
                jsonw_field_raw(&w, "output", STR("[]"));
        }
        jsonw_field_cstr(&w, "status", status);
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", code);
        jsonw_field_cstr(&w, "message", message);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        struct jsonw e = jsonw_to(event);
        jsonw_object(&e);
        jsonw_field_cstr(&e, "type",
            strcmp(status, "cancelled") == 0 ? "response.cancelled" : "response.failed");
        jsonw_field_raw(&e, "response", buf_str(&response));
        jsonw_field_i64(&e, "sequence_number", a->sequence++);
        jsonw_object_end(&e);
        buf_clear(&a->last);
        buf_put_str(&a->last, buf_str(&response));
        buf_release(&response);
        json_release(&j);
}

static void finish_run(struct answer *a, int rc, const struct steno_error *why)
{
        struct steno_error err = {0};
        char done[120];
        if (!a->over) {
                struct buf event;
                bool stopped = rc == STENO_EINTERRUPTED;
                buf_init(&event, 0);
                put_failure(a, stopped ? "cancelled" : "failed",
                    stopped ? "cancelled" : "server_error",
                    why->msg[0] ? why->msg : "the upstream ended before the response was complete",
                    &event);
                journal(a, buf_str(&event), "", true, &err);
                buf_release(&event);
        }
        snprintf(done, sizeof done, "{\"runId\":\"%s\",\"reason\":\"%s\"}", a->id,
            rc == STENO_EINTERRUPTED ? "stopped"
            : rc                     ? "error"
                                     : "done");
        steno_run_event(a->run, event_name(STENO_EVENT_RUN_FINISHED), done, strlen(done),
            STENO_FULL, NULL, &err);
        follow_poke(a->server->follow, a->id);
}

static void on_mail(void *ctx, const char *approval, bool allow)
{
        struct answer *a = ctx;
        (void)allow;
        if (!approval)
                steno_stop_request(a->stop);
}

/* Who asks what: project and body. */
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
                error_set(err, rc, "the upstream's answer could not be taken");
        return rc;
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
        int rc = put_request(a, &body, err);
        what.body = buf_str(&body);
        if (rc == 0)
                rc = asking_run(a->server->gateway, &what, err);
        if (rc == 0 && what.status / 100 != 2) {
                a->status = (int)what.status;
                buf_put_str(&a->refusal, buf_str(&what.answer));
                rc = error_set(err, STENO_EIO, "the upstream answered %ld", what.status);
        } else if (rc == 0 && a->chat) {
                rc = finish_chat(a, &what, err);
        } else if (rc == 0 && !what.stream) {
                rc = tell_whole(a, buf_str(&what.answer), err);
        }
        buf_release(&what.answer);
        buf_release(&body);
        return rc;
}

static bool begin_run(struct answer *a)
{
        struct steno_error err = {0};
        struct buf start;
        char *model = json_dup_string(&a->body, json_get(&a->body, 0, "model"));
        id_make(env_real(), "resp_", a->id);
        int rc = steno_stop_new(&a->stop, &err);
        if (rc == 0)
                rc = steno_run_begin(a->conv, a->id, "run", &a->run, &err);
        if (rc == 0) {
                steno_run_listen(a->run, on_mail, a);
                buf_init(&start, 4 * KIB);
                struct jsonw w = jsonw_to(&start);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "runId", a->id);
                jsonw_field_cstr(&w, "mode", "run");
                jsonw_field_cstr(&w, "model", model);
                jsonw_field_cstr(&w, "conversation", steno_conv_id(a->conv));
                jsonw_object_end(&w);
                rc = buf_check(&start, &err);
                if (rc == 0)
                        rc = steno_run_event(a->run, event_name(STENO_EVENT_RUN_STARTED), start.p,
                            start.n, STENO_PROCESS, NULL, &err);
                buf_release(&start);
        }
        if (rc == 0) {
                struct buf more;
                buf_init(&more, 0);
                buf_puts(&more, ",\"input\":");
                buf_put_str(&more, buf_str(&a->input));
                const char *z = buf_cstr(&more);
                rc = z ? journal(a, (struct str){0}, z, false, &err) : error_nomem(&err);
                buf_release(&more);
        }
        free(model);
        if (rc == STENO_ECONFLICT)
                request_error(a->r, 409, "conversation_locked",
                    "Another process is currently operating on this conversation.");
        else if (rc)
                request_failed(a->r, rc, &err);
        return rc == 0;
}

/* ---- answering ---- */

/* A reader of the response from an event of its journal on. */
static bool follow_answer(struct request *r, const char *id, uint64_t after)
{
        struct steno_error err = {0};
        struct stream *s = stream_events(r, NULL, NULL);
        if (!s)
                return false;
        if (follow_add(
                r->server->follow, r->who.project, id, after, &answers_projection, s, &err)) {
                stream_break(s);
                stream_unref(s);
        }
        return true;
}

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

static void wait_for_end(struct request *r, const char *id)
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

static void reply_facts(struct request *r, const char *id);

/* A client that did not get its answer asks again, and says so: it joins the first response. */
static bool join_earlier(struct answer *a)
{
        char key[SHA256_HEX], id[GATEWAY_ASKED];
        const char *count = request_header(a->r, "X-Stainless-Retry-Count");
        if (!count || strtol(count, NULL, 10) <= 0 || !key_of(a, key) ||
            !gateway_recall(a->server->gateway, key, id))
                return false;
        if (a->stream) {
                follow_answer(a->r, id, 0);
        } else {
                if (!a->background)
                        wait_for_end(a->r, id);
                reply_facts(a->r, id);
        }
        return true;
}

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
        a->chat = chatwire_new(&a->body, on_event, a, &err);
        if (!a->chat)
                request_failed(a->r, STENO_ENOMEM, &err);
        return a->chat != NULL;
}

static bool prepare(struct answer *a)
{
        struct request *r = a->r;
        struct steno_error err = {0};
        if (!r->server->gateway) {
                request_error(r, 503, "no_gateway", "this server has no gateway");
                return false;
        }
        if (json_parse(&a->body, a->text.p, a->text.n, NULL, &err) ||
            json_type(&a->body, 0) != JSON_OBJECT) {
                request_error(r, 400, "invalid_json", "the body must be a JSON object");
                return false;
        }
        a->stream = json_bool(&a->body, json_get(&a->body, 0, "stream"), false);
        a->background = json_bool(&a->body, json_get(&a->body, 0, "background"), false);
        char key[SHA256_HEX];
        if (!prepare_chat(a) || join_earlier(a) || !take_input(a) || !find_conv(a) || !begin_run(a))
                return false;
        if (key_of(a, key))
                gateway_remember(a->server->gateway, key, a->id);
        return true;
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
        finish_run(&a, rc, &err);
        if (a.r) {
                reply_at_end(&a, rc, &err);
                http_finish(a.r);
        }
        answer_release(&a);
}

static void reply_facts(struct request *r, const char *id)
{
        struct steno_error err = {0};
        struct facts f;
        facts_init(&f, -1);
        int rc = steno_run_read(r->store, r->who.project, id, 0, take_fact, &f, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else if (!f.response.n) {
                buf_printf(&r->reply,
                    "{\"id\":\"%s\",\"object\":\"response\",\"status\":\"%s\",\"output\":[],"
                    "\"error\":null}",
                    id, f.failed ? "failed" : "queued");
                request_reply_json(r, 200);
        } else {
                buf_put_str(&r->reply, buf_str(&f.response));
                request_reply_json(r, 200);
        }
        facts_release(&f);
}

void answers_get(struct request *r)
{
        const char *id = r->params[0].p;
        struct steno_conv *conv = find_answer(r, id);
        if (!conv)
                return;
        steno_conv_close(conv);
        if (!request_flag(r, "stream", false)) {
                reply_facts(r, id);
                return;
        }
        struct facts f;
        const char *behind = request_query(r, "starting_after");
        facts_init(&f, behind ? strtoll(behind, NULL, 10) : -1);
        if (behind)
                steno_run_read(r->store, r->who.project, id, 0, take_fact, &f, NULL);
        follow_answer(r, id, f.from);
        facts_release(&f);
}

void answers_delete(struct request *r)
{
        struct steno_error err = {0};
        const char *id = r->params[0].p;
        struct steno_conv *conv = find_answer(r, id);
        if (!conv)
                return;
        struct json j;
        struct buf patch;
        char *meta = NULL;
        json_init(&j);
        buf_init(&patch, MESSAGE_MAX);
        int rc = steno_conv_meta(conv, &meta, &err);
        if (rc == 0)
                rc = json_parse(&j, meta, strlen(meta), NULL, &err);
        json_ref old = rc ? JSON_NONE : json_get(&j, 0, "deletedResponses");
        struct jsonw w = jsonw_to(&patch);
        jsonw_object(&w);
        jsonw_key(&w, "deletedResponses");
        jsonw_object(&w);
        for (json_ref k = json_child(&j, old); k != JSON_NONE; k = json_next_key(&j, old, k))
                jsonw_copy_member(&w, &j, k);
        jsonw_field_bool(&w, id, true);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        const char *z = buf_cstr(&patch);
        if (rc == 0)
                rc = z ? steno_conv_set_meta(conv, z, &err) : error_nomem(&err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                buf_printf(
                    &r->reply, "{\"id\":\"%s\",\"object\":\"response\",\"deleted\":true}", id);
                request_reply_json(r, 200);
        }
        buf_release(&patch);
        json_release(&j);
        steno_free(meta);
        steno_conv_close(conv);
}

void answers_cancel(struct request *r)
{
        const char *id = r->params[0].p;
        struct steno_conv *conv = find_answer(r, id);
        struct steno_error err = {0};
        struct json j;
        char *info = NULL;
        uint64_t last = 0;
        if (!conv)
                return;
        steno_conv_close(conv);
        json_init(&j);
        steno_run_stop(r->store, r->who.project, id, &err);
        /* Until it has ended, which it does soon. */
        for (int i = 0; i < 100; i++) {
                steno_free(info);
                info = NULL;
                if (steno_run_info(r->store, r->who.project, id, &info, &err) ||
                    json_parse(&j, info, strlen(info), NULL, NULL) ||
                    !json_is(&j, json_get(&j, 0, "state"), "running"))
                        break;
                json_u64(&j, json_get(&j, 0, "lastSeq"), &last);
                steno_run_wait(r->store, r->who.project, id, last, 100, NULL);
        }
        steno_free(info);
        json_release(&j);
        reply_facts(r, id);
}

/* ---- items of the input ---- */

static void put_page(
    struct request *r, const struct json *j, bool desc, uint64_t limit, struct str after)
{
        uint32_t count = json_count(j, 0), shown = 0;
        bool behind = after.n == 0, more = false;
        struct str first = {0}, last = {0};
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "object", "list");
        jsonw_key(&w, "data");
        jsonw_array(&w);
        for (uint32_t i = 0; i < count && !more; i++) {
                json_ref item = json_at(j, 0, desc ? count - 1 - i : i);
                struct str id = json_inner(j, json_get(j, item, "id"));
                if (!behind) {
                        behind = str_eq(id, after);
                        continue;
                }
                more = shown == limit;
                if (more)
                        break;
                jsonw_raw(&w, json_raw(j, item));
                first = shown++ ? first : id;
                last = id;
        }
        jsonw_array_end(&w);
        jsonw_field_str(&w, "first_id", first);
        jsonw_field_str(&w, "last_id", last);
        jsonw_field_bool(&w, "has_more", more);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

void answers_inputs(struct request *r)
{
        struct steno_error err = {0};
        const char *id = r->params[0].p, *order = request_query(r, "order");
        struct steno_conv *conv = find_answer(r, id);
        struct facts f;
        struct json j;
        uint64_t limit;
        if (!conv)
                return;
        steno_conv_close(conv);
        if (!request_number(r, "limit", ITEMS_DEFAULT, 1, ITEMS_MAX, &limit))
                return;
        facts_init(&f, -1);
        json_init(&j);
        int rc = steno_run_read(r->store, r->who.project, id, 0, take_fact, &f, &err);
        if (rc == 0)
                rc = json_parse(
                    &j, f.input.n ? f.input.p : "[]", f.input.n ? f.input.n : 2, NULL, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                put_page(r, &j, !order || strcmp(order, "asc") != 0, limit,
                    str_of(request_query(r, "after")));
        json_release(&j);
        facts_release(&f);
}

/* ---- the projection ---- */

static bool project(void *state, const struct projected *e, struct buf *out)
{
        struct json j;
        (void)state;
        json_init(&j);
        bool good = json_parse(&j, e->data, e->n, NULL, NULL) == 0;
        if (good && strcmp(e->type, event_name(STENO_EVENT_RESPONSE_EVENT)) == 0) {
                json_ref event = json_get(&j, 0, "event");
                struct str type = json_inner(&j, json_get(&j, event, "type"));
                if (json_type(&j, event) == JSON_OBJECT) {
                        buf_puts(out, "event: ");
                        buf_put_str(out, type);
                        buf_puts(out, "\ndata: ");
                        buf_put_str(out, json_raw(&j, event));
                        buf_puts(out, "\n\n");
                }
        } else if (good && strcmp(e->type, event_name(STENO_EVENT_RUN_ERROR)) == 0) {
                buf_puts(out, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\","
                              "\"message\":");
                buf_put_str(out, json_raw(&j, json_get(&j, 0, "message")));
                buf_printf(out, ",\"param\":null,\"sequence_number\":%llu}\n\n",
                    (unsigned long long)e->seq);
        }
        json_release(&j);
        return good;
}

const struct projection answers_projection = {.name = "responses", .event = project};
