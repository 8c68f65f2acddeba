/*
 * answers_events.c - the events of a response: from the upstream's to those in the journal of its
 * run, its first and its last, and from the journal to a reader (answers_core.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "http/follow.h"
#include "http/server_core.h"
#include "model/event.h"
#include "routes/openai/answers.h"
#include "routes/openai/answers_core.h"
#include "routes/openai/items.h"

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

/* The upstream has taken the request: a stream begins, and goes on without the request. */
static void begin_stream(struct answer *a)
{
        if (!a->stream || !a->r)
                return;
        answers_follow(a->r, a->id, 0);
        http_finish(a->r);
        a->r = NULL;
}

int answers_on_event(void *ctx, struct str name, struct str data)
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

int answers_tell_whole(struct answer *a, struct str body, struct steno_error *err)
{
        struct json j;
        struct buf b;
        int64_t index = 0;
        json_init(&j);
        buf_init(&b, 0);
        int rc = json_parse(&j, body.p, body.n, NULL, err);
        if (rc == 0 && !json_is(&j, json_get(&j, 0, "object"), "response"))
                rc = error_set(err, STENO_EPROTO, "the upstream's answer is not a response");
        json_ref output = rc ? JSON_NONE : json_get(&j, 0, "output");
        if (rc == 0) {
                buf_puts(&b, "{\"type\":\"response.created\",\"response\":");
                buf_put_str(&b, json_raw(&j, 0));
                buf_putc(&b, '}');
                rc = answers_on_event(a, (struct str){0}, buf_str(&b));
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
                        rc = answers_on_event(a, (struct str){0}, buf_str(&b));
                }
        if (rc == 0) {
                struct str status = json_inner(&j, json_get(&j, 0, "status"));
                buf_clear(&b);
                buf_printf(&b, "{\"type\":\"response.%.*s\",\"response\":",
                    (int)(status.n < 40 ? status.n : 40), status.n ? status.p : "");
                buf_put_str(&b, json_raw(&j, 0));
                buf_putc(&b, '}');
                rc = answers_on_event(a, (struct str){0}, buf_str(&b));
        }
        if (rc && !err->msg[0])
                error_set(err, rc, "the upstream's answer could not be accepted");
        buf_release(&b);
        json_release(&j);
        return rc;
}

/* ---- the run ---- */

static void on_mail(void *ctx, const char *approval, bool allow)
{
        struct answer *a = ctx;
        (void)allow;
        if (!approval)
                steno_stop_request(a->stop);
}

/* For its client, a response is over with its last event. For the store, it is over a moment later,
 * when its run has ended. True: such a response kept the conversation busy. */
static bool wait_for_the_last(struct answer *a)
{
        struct answer_facts f;
        struct json j;
        char *list = NULL, *id = NULL;
        bool over = false;
        json_init(&j);
        answers_facts_init(&f, -1);
        if (steno_run_list(a->conv, &list, NULL) == 0 &&
            json_parse(&j, list, strlen(list), NULL, NULL) == 0)
                id = json_dup_string(
                    &j, json_get(&j, json_child(&j, json_get(&j, 0, "items")), "id"));
        if (id && answers_facts_read(a->store, a->project, id, &f, NULL) == 0 && f.response.n &&
            json_parse(&j, f.response.p, f.response.n, NULL, NULL) == 0) {
                json_ref status = json_get(&j, 0, "status");
                over = !json_is(&j, status, "in_progress") && !json_is(&j, status, "queued");
        }
        if (over)
                answers_wait(a->r, id);
        answers_facts_release(&f);
        json_release(&j);
        steno_free(list);
        free(id);
        return over;
}

bool answers_begin_run(struct answer *a)
{
        struct steno_error err = {0};
        struct buf start;
        char *model = json_dup_string(&a->body, json_get(&a->body, 0, "model"));
        steno_run_make_id(a->store, "resp_", a->id);
        int rc = steno_stop_new(&a->stop, &err);
        if (rc == 0)
                rc = steno_run_begin(a->conv, a->id, "run", &a->run, &err);
        if (rc == STENO_ECONFLICT && wait_for_the_last(a))
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

void answers_finish_run(struct answer *a, int rc, const struct steno_error *why)
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

/* ---- readers ---- */

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

bool answers_follow(struct request *r, const char *id, uint64_t after)
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
