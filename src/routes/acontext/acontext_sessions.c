/*
 * acontext_sessions.c - /api/v1/session: Acontext's sessions, which are our conversations.
 */
#include "routes/acontext/acontext_wire.h"
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/grow.h"
#include "http/http_limits.h"

#define SESSIONS_MAX 200
#define COPY_MAX 5000

/* ---- a session ---- */

static void put_session(
    struct jsonw *w, struct request *r, const struct json *meta, const char *updated)
{
        json_ref configs = json_get(meta, 0, "configs");
        json_ref user = json_get(meta, 0, "user");
        json_ref created = json_get(meta, 0, "createdAt");
        jsonw_object(w);
        jsonw_field_copy(w, "id", meta, json_get(meta, 0, "id"));
        jsonw_field_cstr(w, "project_id", r->who.project);
        json_ref space = json_get(meta, 0, "space_id");
        jsonw_field_raw(w, "space_id", space == JSON_NONE ? STR("null") : json_raw(meta, space));
        jsonw_field_raw(w, "user_id", user == JSON_NONE ? STR("null") : json_raw(meta, user));
        jsonw_field_bool(w, "disable_task_tracking",
            json_bool(meta, json_get(meta, 0, "disable_task_tracking"), false));
        jsonw_field_raw(w, "configs", configs == JSON_NONE ? STR("{}") : json_raw(meta, configs));
        jsonw_field_copy(w, "created_at", meta, created);
        jsonw_key(w, "updated_at");
        if (updated && *updated)
                jsonw_cstr(w, updated);
        else
                jsonw_raw(w, json_raw(meta, created));
        jsonw_object_end(w);
}

/* Writes the session, or an error; false then. */
static bool put_session_of(
    struct request *r, struct jsonw *w, struct steno_conv *conv, const char *updated)
{
        struct steno_error err = {0};
        struct json j;
        char *meta = NULL;
        json_init(&j);
        int rc = steno_conv_meta(conv, &meta, &err);
        if (rc == 0)
                rc = json_parse(&j, meta, strlen(meta), NULL, &err);
        if (rc == 0)
                put_session(w, r, &j, updated);
        else
                request_failed(r, rc, &err);
        json_release(&j);
        steno_free(meta);
        return rc == 0;
}

static void reply_session(struct request *r, struct steno_conv *conv, int status)
{
        struct jsonw w;
        acontext_begin(r, &w);
        if (put_session_of(r, &w, conv, NULL))
                acontext_end(r, &w, status);
}

/* Members of a body that become the conversation's metadata. */
static void put_meta(const struct json *j, struct buf *out)
{
        static const char *const KEPT[] = {"configs", "user", "disable_task_tracking", "space_id"};
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++) {
                json_ref v = json_get(j, 0, KEPT[i]);
                if (v == JSON_NONE || json_type(j, v) == JSON_NULL)
                        continue;
                jsonw_field_copy(&w, KEPT[i], j, v);
        }
        jsonw_object_end(&w);
}

void acontext_session_create(struct request *r)
{
        static const struct body_rule RULES[] = {{"use_uuid", BODY_NAME}, {"user", BODY_NAME},
            {"space_id", BODY_NAME}, {"configs", BODY_OBJECT}, {"disable_task_tracking", BODY_BOOL},
            {0}};
        struct steno_error err = {0};
        struct steno_conv *conv = NULL;
        struct json j;
        struct buf meta;
        char made[37];
        json_init(&j);
        buf_init(&meta, 0);
        if (request_json(r, &j, RULES)) {
                const char *id = request_member(r, &j, 0, "use_uuid");
                bool given = id != NULL, keyed = false;
                if (!given) {
                        keyed = acontext_new_id(r, "session", made);
                        id = made;
                }
                put_meta(&j, &meta);
                const char *text = buf_cstr(&meta);
                int rc = text ? steno_conv_create(r->store, r->who.project, id, text, &conv, &err)
                              : STENO_ENOMEM;
                bool again = rc == STENO_ECONFLICT && (given || keyed);
                if (again)
                        rc = steno_conv_open(r->store, r->who.project, id, &conv, &err);
                if (rc)
                        request_failed(r, rc, &err);
                else
                        reply_session(r, conv, again && given ? 200 : 201);
        }
        steno_conv_close(conv);
        buf_release(&meta);
        json_release(&j);
}

void acontext_session_delete(struct request *r)
{
        struct jsonw w;
        if (!request_conv_remove(r, r->params[0].p))
                return;
        acontext_begin(r, &w);
        jsonw_raw(&w, STR("{}"));
        acontext_end(r, &w, 200);
}

/* ---- configs ---- */

void acontext_configs_get(struct request *r)
{
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (conv)
                reply_session(r, conv, 200);
        steno_conv_close(conv);
}

static bool has_key(const struct json *j, json_ref object, const struct json *other, json_ref key)
{
        char *name = json_dup_string(other, key);
        bool has = name && json_get(j, object, name) != JSON_NONE;
        free(name);
        return has;
}

/* {"configs":{...}} as the body wants it. With `old` its members go over the old ones, and null
 * removes one; else they replace them all. */
static void put_configs(
    struct jsonw *w, const struct json *body, json_ref configs, const struct json *old)
{
        json_ref before = old ? json_get(old, 0, "configs") : JSON_NONE;
        jsonw_object(w);
        jsonw_key(w, "configs");
        jsonw_object(w);
        for (json_ref k = old ? json_child(old, before) : JSON_NONE; k != JSON_NONE;
             k = json_next_key(old, before, k))
                if (!has_key(body, configs, old, k))
                        jsonw_copy_member(w, old, k);
        for (json_ref k = json_child(body, configs); k != JSON_NONE;
             k = json_next_key(body, configs, k))
                if (!old || json_type(body, json_value(body, k)) != JSON_NULL)
                        jsonw_copy_member(w, body, k);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static int store_configs(struct steno_conv *conv, const struct json *body, json_ref configs,
    bool merge, struct steno_error *err)
{
        struct json old;
        struct buf patch;
        char *meta = NULL;
        json_init(&old);
        buf_init(&patch, 0);
        int rc = steno_conv_meta(conv, &meta, err);
        if (rc == 0)
                rc = json_parse(&old, meta, strlen(meta), NULL, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(&patch);
                put_configs(&w, body, configs, merge ? &old : NULL);
                const char *text = buf_cstr(&patch);
                rc = text ? steno_conv_set_meta(conv, text, err) : STENO_ENOMEM;
        }
        steno_free(meta);
        buf_release(&patch);
        json_release(&old);
        return rc;
}

/* `merge`: as put_configs() does with the old ones. */
static void change_configs(struct request *r, bool merge)
{
        struct steno_error err = {0};
        struct json body;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&body);
        if (request_json(r, &body, NULL)) {
                json_ref configs = json_get(&body, 0, "configs");
                int rc = 0;
                if (json_type(&body, configs) != JSON_OBJECT)
                        request_error(r, 400, "bad_request", "configs must be an object");
                else if ((rc = store_configs(conv, &body, configs, merge, &err)) != 0)
                        request_failed(r, rc, &err);
                else
                        reply_session(r, conv, 200);
        }
        json_release(&body);
        steno_conv_close(conv);
}

void acontext_configs_put(struct request *r)
{
        change_configs(r, false);
}

void acontext_configs_patch(struct request *r)
{
        change_configs(r, true);
}

/* ---- listing ---- */

struct session_row {
        char *id;
        char *created;
        char *updated;
};

struct session_rows {
        struct session_row *list;
        size_t count;
        size_t cap;
};

static bool add_row(struct session_rows *rows, const struct json *j, json_ref item)
{
        if (!grow_room(rows->list, rows->count, rows->cap))
                return false;
        struct session_row *row = &rows->list[rows->count++];
        row->id = json_dup_string(j, json_get(j, item, "id"));
        row->created = json_dup_string(j, json_get(j, item, "createdAt"));
        row->updated = json_dup_string(j, json_get(j, item, "updatedAt"));
        return row->id && row->created && row->updated;
}

/* All of the project: Acontext lists by the time of creation, we by activity. */
static int read_rows(struct request *r, struct session_rows *rows, struct steno_error *err)
{
        char *cursor = NULL;
        int rc = 0;
        do {
                struct steno_list_options opt = {
                    .size = sizeof opt, .limit = 1000, .cursor = cursor, .complete = 1};
                struct json j;
                char *json = NULL;
                json_init(&j);
                rc = steno_list(r->store, r->who.project, &opt, &json, err);
                if (rc == 0)
                        rc = json_parse(&j, json, strlen(json), NULL, err);
                json_ref items = json_get(&j, 0, "items");
                for (json_ref e = rc ? JSON_NONE : json_child(&j, items); e != JSON_NONE && rc == 0;
                     e = json_next(&j, items, e))
                        rc = add_row(rows, &j, e) ? 0 : STENO_ENOMEM;
                free(cursor);
                cursor = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "next_cursor"));
                json_release(&j);
                steno_free(json);
        } while (cursor && rc == 0);
        free(cursor);
        return rc;
}

static int by_creation(const void *a, const void *b)
{
        const struct session_row *x = a, *y = b;
        int c = strcmp(x->created, y->created);
        return c ? c : strcmp(x->id, y->id);
}

/* What a list of sessions was asked for. */
struct session_query {
        uint64_t limit;
        uint64_t from;
        bool newest_first;
        const char *user;
        const char *space;         /* only sessions that are connected to it */
        bool not_connected;        /* only sessions that are connected to none */
        const struct json *filter; /* NULL: none */
};

/* Does a session's metadata hold every member of the filter? */
static bool matches(struct steno_conv *conv, const struct session_query *q)
{
        const struct json *filter = q->filter;
        struct json j;
        char *meta = NULL;
        bool ok = true;
        json_init(&j);
        if (steno_conv_meta(conv, &meta, NULL) || json_parse(&j, meta, strlen(meta), NULL, NULL)) {
                ok = false;
        } else {
                json_ref configs = json_get(&j, 0, "configs");
                json_ref space = json_get(&j, 0, "space_id");
                if (q->user)
                        ok = json_is(&j, json_get(&j, 0, "user"), q->user);
                if (q->space)
                        ok = ok && json_is(&j, space, q->space);
                if (q->not_connected)
                        ok = ok && json_type(&j, space) != JSON_STRING;
                for (json_ref k = filter ? json_child(filter, 0) : JSON_NONE; ok && k != JSON_NONE;
                     k = json_next_key(filter, 0, k)) {
                        char *name = json_dup_string(filter, k);
                        ok = name && str_eq(json_raw(&j, json_get(&j, configs, name)),
                                         json_raw(filter, json_value(filter, k)));
                        free(name);
                }
        }
        json_release(&j);
        steno_free(meta);
        return ok;
}

static void release_rows(struct session_rows *rows)
{
        for (size_t k = 0; k < rows->count; k++) {
                free(rows->list[k].id);
                free(rows->list[k].created);
                free(rows->list[k].updated);
        }
        free(rows->list);
}

/* Writes a session that matches; one that was removed meanwhile does not. False: the answer is an
 * error now. */
static bool put_if_wanted(struct request *r, struct jsonw *w, const struct session_query *q,
    const struct session_row *row, uint64_t *count)
{
        struct steno_conv *conv;
        bool ok = true;
        if (steno_conv_open(r->store, r->who.project, row->id, &conv, NULL))
                return true;
        if (matches(conv, q)) {
                ok = put_session_of(r, w, conv, row->updated);
                ++*count;
        }
        steno_conv_close(conv);
        return ok;
}

static void reply_list(
    struct request *r, const struct session_rows *rows, const struct session_query *q)
{
        struct jsonw w;
        uint64_t count = 0, i = q->from;
        acontext_page_begin(r, &w);
        for (; i < rows->count && count < q->limit; i++) {
                size_t at = (size_t)(q->newest_first ? rows->count - 1 - i : i);
                if (!put_if_wanted(r, &w, q, &rows->list[at], &count))
                        return;
        }
        acontext_page_end(r, &w, i, rows->count);
}

static void list_sessions(struct request *r, const struct session_query *q)
{
        struct steno_error err = {0};
        struct session_rows rows = {0};
        int rc = read_rows(r, &rows, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                if (rows.count > 0) /* else there is no list, and qsort must have one */
                        qsort(rows.list, rows.count, sizeof *rows.list, by_creation);
                reply_list(r, &rows, q);
        }
        release_rows(&rows);
}

void acontext_session_list(struct request *r)
{
        struct json filter;
        const char *wanted = request_query(r, "filter_by_configs");
        struct session_query q = {.user = request_query(r, "user"),
            .space = request_query(r, "space_id"),
            .not_connected = request_flag(r, "not_connected", false),
            .newest_first = request_flag(r, "time_desc", false)};
        if (q.space && !*q.space)
                q.space = NULL;
        if (!request_number(r, "limit", 20, 1, SESSIONS_MAX, &q.limit) ||
            !acontext_cursor(r, &q.from))
                return;
        json_init(&filter);
        q.filter = wanted && *wanted ? &filter : NULL;
        if (!q.filter || request_parse(r, &filter, str_of(wanted), "filter_by_configs"))
                list_sessions(r, &q);
        json_release(&filter);
}

/* ---- small answers ---- */

/* A constant answer about a session that must be there. */
static void reply_constant(struct request *r, const char *data, int status)
{
        struct jsonw w;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        acontext_begin(r, &w);
        jsonw_raw(&w, str_of(data));
        acontext_end(r, &w, status);
        steno_conv_close(conv);
}

void acontext_flush(struct request *r)
{
        reply_constant(r, "{\"status\":0,\"errmsg\":\"\"}", 200);
}

void acontext_tasks(struct request *r)
{
        reply_constant(r, "{\"items\":[],\"has_more\":false}", 200);
}

void acontext_learning(struct request *r)
{
        reply_constant(r, "{\"space_digested_count\":0,\"not_space_digested_count\":0}", 200);
}

/* Nothing is learned here, but a session says which space it belongs to. */
void acontext_connect(struct request *r)
{
        static const struct body_rule RULES[] = {{"space_id", BODY_NAME}, {0}};
        struct steno_error err = {0};
        struct json j;
        struct buf patch;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        buf_init(&patch, 0);
        if (request_json(r, &j, RULES)) {
                json_ref space = json_get(&j, 0, "space_id");
                struct jsonw w = jsonw_to(&patch);
                jsonw_object(&w);
                if (space != JSON_NONE)
                        jsonw_field_copy(&w, "space_id", &j, space);
                jsonw_object_end(&w);
                const char *text = buf_cstr(&patch);
                int rc = text ? 0 : STENO_ENOMEM;
                if (json_type(&j, space) != JSON_STRING || !json_inner(&j, space).n)
                        request_error(r, 400, "bad_request", "space_id must be a text");
                else if (rc || (rc = steno_conv_set_meta(conv, text, &err)) != 0)
                        request_failed(r, rc, &err);
                else
                        reply_constant(r, "{}", 200);
        }
        buf_release(&patch);
        json_release(&j);
        steno_conv_close(conv);
}

void acontext_observing(struct request *r)
{
        struct steno_error err = {0};
        struct jsonw w;
        uint64_t seq = 0;
        char at[TIME_TEXT];
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = steno_conv_last_seq(conv, &seq, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                /* Nothing is ever pending: what is stored counts as observed. */
                time_format(env_real()->now(env_real()), at);
                acontext_begin(r, &w);
                jsonw_object(&w);
                jsonw_field_u64(&w, "observed", seq);
                jsonw_field_u64(&w, "in_process", 0);
                jsonw_field_u64(&w, "pending", 0);
                jsonw_field_cstr(&w, "updated_at", at);
                jsonw_object_end(&w);
                acontext_end(r, &w, 200);
        }
        steno_conv_close(conv);
}

/* ---- copying ---- */

struct copying {
        struct steno_conv *to;
        uint64_t count;
        struct steno_error *err;
};

static int copy_record(void *ctx, const struct steno_record *rec)
{
        struct copying *c = ctx;
        char *json;
        size_t n;
        if (strcmp(steno_record_kind(rec), "damaged") == 0)
                return 0;
        if (strcmp(steno_record_kind(rec), "message") != 0 &&
            strcmp(steno_record_kind(rec), "tombstone") == 0)
                return 0;
        int rc = steno_record_message(rec, &json, &n, c->err);
        if (rc)
                return rc;
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS,
            .format = steno_record_format(rec),
            .message_id = steno_record_id(rec)};
        if (strcmp(steno_record_kind(rec), "message") == 0)
                rc = steno_append(c->to, json, n, &opt, NULL, c->err);
        else {
                bool none = strcmp(steno_record_kind(rec), "delete") == 0;
                opt.message_id = NULL;
                rc = steno_amend(c->to, steno_record_kind(rec), steno_record_target(rec),
                    none ? NULL : json, none ? 0 : n, &opt, NULL, c->err);
                if (rc == STENO_ENOTFOUND)
                        rc = 0;
        }
        steno_free(json);
        c->count++;
        return rc;
}

void acontext_session_copy(struct request *r)
{
        struct steno_error err = {0};
        struct steno_conv *to = NULL;
        struct jsonw w;
        char id[37];
        uint64_t seq = 0;
        char *meta = NULL;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = steno_conv_last_seq(conv, &seq, &err);
        if (rc == 0 && seq > COPY_MAX) {
                request_error(r, 413, "SESSION_TOO_LARGE", "session has more than 5000 messages");
                steno_conv_close(conv);
                return;
        }
        acontext_uuid(id);
        if (rc == 0)
                rc = steno_conv_meta(conv, &meta, &err);
        if (rc == 0)
                rc = steno_conv_create(r->store, r->who.project, id, meta, &to, &err);
        if (rc == 0) {
                struct copying c = {.to = to, .err = &err};
                rc = steno_read(conv, 0, 0, copy_record, &c, &err);
        }
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                acontext_begin(r, &w);
                jsonw_object(&w);
                jsonw_field_str(&w, "old_session_id", r->params[0]);
                jsonw_field_cstr(&w, "new_session_id", id);
                jsonw_object_end(&w);
                acontext_end(r, &w, 201);
        }
        steno_free(meta);
        steno_conv_close(to);
        steno_conv_close(conv);
}
