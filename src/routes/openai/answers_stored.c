/*
 * answers_stored.c - responses that were made: what the journal of one says, and the routes that
 * read, delete and cancel it (answers_core.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "http/server_core.h"
#include "model/event.h"
#include "routes/handlers.h"
#include "routes/openai/answers_core.h"

#define ITEMS_DEFAULT 20
#define ITEMS_MAX 100

static int take_fact(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct answer_facts *f = ctx;
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

void answers_facts_init(struct answer_facts *f, int64_t behind)
{
        *f = (struct answer_facts){.behind = behind};
        buf_init(&f->response, 0);
        buf_init(&f->input, 0);
}

void answers_facts_release(struct answer_facts *f)
{
        buf_release(&f->response);
        buf_release(&f->input);
}

int answers_facts_read(struct steno_store *store, const char *project, const char *id,
    struct answer_facts *f, struct steno_error *err)
{
        return steno_run_read(store, project, id, 0, take_fact, f, err);
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

struct steno_conv *answers_find(struct request *r, const char *id)
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

/* ---- the routes ---- */

void answers_reply(struct request *r, const char *id)
{
        struct steno_error err = {0};
        struct answer_facts f;
        answers_facts_init(&f, -1);
        int rc = answers_facts_read(r->store, r->who.project, id, &f, &err);
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
        answers_facts_release(&f);
}

void answers_get(struct request *r)
{
        const char *id = r->params[0].p;
        struct steno_conv *conv = answers_find(r, id);
        if (!conv)
                return;
        steno_conv_close(conv);
        if (!request_flag(r, "stream", false)) {
                answers_reply(r, id);
                return;
        }
        struct answer_facts f;
        const char *behind = request_query(r, "starting_after");
        answers_facts_init(&f, behind ? strtoll(behind, NULL, 10) : -1);
        if (behind)
                answers_facts_read(r->store, r->who.project, id, &f, NULL);
        answers_follow(r, id, f.from);
        answers_facts_release(&f);
}

void answers_delete(struct request *r)
{
        struct steno_error err = {0};
        const char *id = r->params[0].p;
        struct steno_conv *conv = answers_find(r, id);
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
        struct steno_conv *conv = answers_find(r, id);
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
        answers_reply(r, id);
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
        struct steno_conv *conv = answers_find(r, id);
        struct answer_facts f;
        struct json j;
        uint64_t limit;
        if (!conv)
                return;
        steno_conv_close(conv);
        if (!request_number(r, "limit", ITEMS_DEFAULT, 1, ITEMS_MAX, &limit))
                return;
        answers_facts_init(&f, -1);
        json_init(&j);
        int rc = answers_facts_read(r->store, r->who.project, id, &f, &err);
        if (rc == 0)
                rc = json_parse(
                    &j, f.input.n ? f.input.p : "[]", f.input.n ? f.input.n : 2, NULL, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                put_page(r, &j, !order || strcmp(order, "asc") != 0, limit,
                    str_of(request_query(r, "after")));
        json_release(&j);
        answers_facts_release(&f);
}
