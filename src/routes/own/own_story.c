/*
 * own_story.c - what happened in a conversation and when: GET .../timeline and GET .../errors.
 *
 * A page of the timeline is made of the records that it is about; behind its end records are read
 * on only as far as calls of the page still want their results.
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/error.h"
#include "http/digests.h"
#include "http/server_core.h"
#include "http/walk.h"
#include "routes/own/own_digest.h"
#include "routes/own/own_shells.h"

#define ROWS_MAX 1000
#define BEHIND_MAX 4000 /* records behind a page that are read for results */
#define DIGEST_MS 2000
#define HINT_MAX 200
#define TEXT_MAX 160

/* ---- the timeline ---- */

enum row_kind { ROW_USER, ROW_REPLY, ROW_CALL };

struct row {
        enum row_kind kind;
        uint64_t seq;
        struct str id;
        struct str name;
        struct str hint;
        int64_t at;
        int64_t ms;        /* negative: still open */
        const char *state; /* NULL: no result */
        struct str ref;
        uint64_t bytes;
        bool has_exit;
        int64_t exit;
        uint64_t result; /* its seq */
        size_t reply;    /* of a call: the row of its reply */
};

struct timeline {
        struct walk walk;
        struct arena arena;
        struct row rows[ROWS_MAX];
        size_t count;
        size_t limit;
        size_t reply;      /* the row of the last one */
        size_t open;       /* calls of the page without a result */
        uint64_t seq;      /* read up to here */
        uint64_t end;      /* the last seq of the page; 0: it is not full */
        int64_t before_at; /* when the record before came */
        struct steno_error *err;
};

static struct str keep(struct timeline *t, struct str s, size_t max)
{
        if (s.n > max) {
                s.n = max;
                while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
                        s.n--;
        }
        struct str copy = arena_dup(&t->arena, s);
        return copy.p ? copy : STR("");
}

/* Is there room, and is the page not yet complete? A message and its calls stay together. */
static struct row *row_add(struct timeline *t)
{
        if (t->end || t->count == ROWS_MAX)
                return NULL;
        struct row *r = &t->rows[t->count++];
        *r = (struct row){.ms = -1};
        return r;
}

static int take_message(void *ctx, const struct walk_message *m)
{
        struct timeline *t = ctx;
        bool reply = strcmp(m->role, "assistant") == 0;
        bool user = strcmp(m->role, "user") == 0;
        if (!t->end && t->count >= t->limit)
                t->end = m->seq - 1;
        struct row *r = reply || user ? row_add(t) : NULL;
        if (r) {
                r->kind = reply ? ROW_REPLY : ROW_USER;
                r->seq = m->seq;
                r->id = keep(t, str_of(m->id), 1200);
                r->name = keep(t, m->model, HINT_MAX);
                r->hint = keep(t, m->failed && m->error.n ? m->error : m->text, TEXT_MAX);
                r->at = reply && t->before_at ? t->before_at : m->at;
                r->ms = m->at - r->at;
                r->state = m->failed ? "error" : "complete";
                t->reply = t->count - 1;
        }
        t->before_at = m->at;
        return 0;
}

/* Does a tool of this name run commands? */
static bool runs_commands(struct str name)
{
        for (size_t i = 0; i < sizeof OWN_SHELLS / sizeof *OWN_SHELLS; i++) {
                size_t n = strlen(OWN_SHELLS[i]), before = name.n - n;
                if (name.n >= n && strncasecmp(name.p + before, OWN_SHELLS[i], n) == 0 &&
                    (!before || memchr("._/-", name.p[before - 1], 4)))
                        return true;
        }
        return false;
}

static void put_words(const struct json *j, json_ref list, struct buf *out)
{
        for (json_ref a = json_child(j, list); a != JSON_NONE && out->n < HINT_MAX;
             a = json_next(j, list, a)) {
                if (out->n)
                        buf_putc(out, ' ');
                json_string(j, a, out, NULL);
        }
}

static void put_command(const struct json *j, struct buf *out)
{
        static const char *const NAMES[] = {"shell", "command", "cmd", "script"};
        json_ref list = json_get(j, 0, "argv");
        if (json_type(j, list) != JSON_ARRAY)
                list = json_get(j, 0, "command");
        if (json_type(j, list) == JSON_ARRAY)
                put_words(j, list, out);
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !out->n; i++)
                json_string(j, json_get(j, 0, NAMES[i]), out, NULL);
}

/* Every argument with its name, as "path: x.c  lines: 3". */
static void put_arguments(const struct json *j, struct buf *out)
{
        for (json_ref k = json_child(j, 0); k != JSON_NONE && out->n < HINT_MAX;
             k = json_next_key(j, 0, k)) {
                json_ref v = json_value(j, k);
                if (out->n)
                        buf_puts(out, "  ");
                json_string(j, k, out, NULL);
                buf_puts(out, ": ");
                if (json_type(j, v) == JSON_ARRAY)
                        buf_printf(out, "[%u]", (unsigned)json_count(j, v));
                else if (json_type(j, v) == JSON_OBJECT)
                        buf_printf(out, "{%u}", (unsigned)json_count(j, v));
                else if (json_type(j, v) == JSON_STRING)
                        json_string(j, v, out, NULL);
                else
                        buf_put_str(out, json_raw(j, v));
        }
}

/* What a person would recognise the call by. */
static struct str hint_of(struct timeline *t, struct str name, struct str arguments)
{
        static const char *const NAMES[] = {
            "file_path", "path", "file", "pattern", "query", "url", "ref", "name", "title"};
        struct json j;
        struct buf b;
        json_init(&j);
        buf_init(&b, 0);
        struct str hint = STR("");
        if (json_parse(&j, arguments.p, arguments.n, NULL, NULL) == 0) {
                if (runs_commands(name))
                        put_command(&j, &b);
                for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !b.n; i++)
                        json_string(&j, json_get(&j, 0, NAMES[i]), &b, NULL);
                if (!b.n && json_type(&j, 0) == JSON_OBJECT)
                        put_arguments(&j, &b);
                if (b.n)
                        hint = keep(t, buf_str(&b), HINT_MAX);
        }
        if (!hint.n && arguments.n > 2)
                hint = keep(t, arguments, HINT_MAX);
        buf_release(&b);
        json_release(&j);
        return hint;
}

static int take_call(void *ctx, const struct walk_call *c)
{
        struct timeline *t = ctx;
        struct row *r = row_add(t);
        if (!r)
                return 0;
        r->kind = ROW_CALL;
        r->seq = c->seq;
        r->id = keep(t, c->id, 1200);
        r->name = keep(t, c->name, HINT_MAX);
        r->hint = hint_of(t, c->name, c->arguments);
        r->at = c->at;
        r->reply = t->reply;
        t->open++;
        return 0;
}

static int take_result(void *ctx, const struct walk_result *r)
{
        struct timeline *t = ctx;
        for (size_t i = t->count; i > 0; i--) {
                struct row *call = &t->rows[i - 1];
                if (call->kind != ROW_CALL || call->state || !str_eq(call->id, r->call))
                        continue;
                call->state = walk_state_name(r->state);
                call->ms = r->duration >= 0 ? r->duration : r->at - call->at;
                if (r->duration >= 0 && r->at - r->duration > call->at)
                        call->at = r->at - r->duration;
                call->ref = keep(t, r->ref, 100);
                call->bytes = r->bytes;
                call->has_exit = r->has_exit;
                call->exit = r->exit;
                call->result = r->seq;
                t->open--;
                break;
        }
        t->before_at = r->at;
        return 0;
}

static int take_record(void *ctx, const struct steno_record *r)
{
        struct timeline *t = ctx;
        uint64_t seq = steno_record_seq(r);
        int rc = walk_record(&t->walk, r, t->err);
        t->seq = seq;
        if (rc == 0 && t->end && (t->open == 0 || seq > t->end + BEHIND_MAX))
                rc = 1;
        return rc;
}

/* The state of a row. A call without a result is open, and one that a run has not begun yet is
 * queued; *at becomes the time at which it began, where that is known. */
static const char *state_of(
    const struct timeline *t, const struct row *r, const struct digest *d, int64_t *at)
{
        if (r->kind != ROW_CALL || r->state)
                return r->state ? r->state : "open";
        const struct row *reply = &t->rows[r->reply];
        const struct doing_call *c = doing_find(&d->doing, reply->id, r->id);
        if (c && c->at)
                *at = c->at;
        /* The run has not begun the calls that it has not told of yet. */
        bool untold =
            !c && reply->seq == d->last_reply && doing_newest(&d->doing, reply->at + reply->ms);
        return untold || (c && c->phase == DOING_QUEUED) ? "queued" : "open";
}

static void put_row(
    struct jsonw *w, const struct timeline *t, const struct row *r, const struct digest *d)
{
        static const char *const KINDS[] = {"user", "reply", "call"};
        struct digest_tokens tokens;
        int64_t at = r->at;
        const char *state = state_of(t, r, d, &at);
        jsonw_object(w);
        jsonw_field_cstr(w, "k", KINDS[r->kind]);
        jsonw_field_u64(w, "seq", r->seq);
        jsonw_field_str(w, "id", r->id);
        jsonw_field_i64(w, "at", at);
        if (r->ms >= 0)
                jsonw_field_i64(w, "ms", r->ms);
        jsonw_field_str(w, r->kind == ROW_CALL ? "name" : "model", r->name);
        jsonw_field_str(w, "hint", r->hint);
        jsonw_field_cstr(w, "state", state);
        if (r->kind == ROW_CALL) {
                jsonw_field_str(w, "reply", t->rows[r->reply].id);
                jsonw_field_u64(w, "bytes", r->bytes);
                if (r->ref.n)
                        jsonw_field_str(w, "ref", r->ref);
                if (r->has_exit)
                        jsonw_field_i64(w, "exit", r->exit);
        } else if (r->kind == ROW_REPLY && digest_usage_of(d, r->id.p, &tokens)) {
                own_digest_put_tokens(w, "tokens", &tokens);
        }
        jsonw_object_end(w);
}

static int read_page(struct timeline *t, struct steno_conv *conv, uint64_t from)
{
        t->walk = (struct walk){t, take_message, take_call, take_result};
        int rc = steno_read(conv, from ? from - 1 : 0, 0, take_record, t, t->err);
        return rc < 0 ? rc : 0;
}

static void put_timeline(
    struct request *r, const struct timeline *t, const struct digest *d, bool more)
{
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_i64(&w, "now", env_real()->now(env_real()));
        own_digest_put_totals(&w, d);
        own_digest_put_prices(&w, r);
        jsonw_key(&w, "rows");
        jsonw_array(&w);
        for (size_t i = 0; i < t->count; i++)
                put_row(&w, t, &t->rows[i], d);
        jsonw_array_end(&w);
        if (more)
                jsonw_field_u64(&w, "next", t->end + 1);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

void own_session_timeline(struct request *r)
{
        struct steno_error err = {0};
        const struct digest *d = NULL;
        uint64_t from, limit;
        if (!request_number(r, "from", 1, 1, UINT64_MAX >> 1, &from) ||
            !request_number(r, "limit", ROWS_MAX / 2, 1, ROWS_MAX / 2, &limit))
                return;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        struct timeline *t = conv ? calloc(1, sizeof *t) : NULL;
        if (!conv)
                return;
        int rc = t ? 0 : error_nomem(&err);
        if (rc == 0) {
                t->limit = limit;
                t->err = &err;
                arena_init(&t->arena);
                rc = read_page(t, conv, from);
        }
        if (rc == 0)
                rc = digests_open(r->server->digests, r->store, conv, DIGEST_MS, &d, &err);
        if (rc == 0)
                put_timeline(r, t, d, t->end != 0);
        else
                request_failed(r, rc, &err);
        digests_close(r->server->digests, d);
        if (t)
                arena_release(&t->arena);
        free(t);
        steno_conv_close(conv);
}

/* ---- errors ---- */

static void put_failures(struct request *r, const struct digest *d, size_t from, size_t limit)
{
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_u64(&w, "total", d->failed);
        jsonw_field_u64(&w, "seq", d->seq);
        jsonw_field_bool(&w, "whole", d->whole);
        if (d->title[0])
                jsonw_field_cstr(&w, "first", d->title);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        for (size_t i = from; i < d->failure_count && i - from < limit; i++)
                own_digest_put_failure(&w, &d->failures[i], i + 1);
        jsonw_array_end(&w);
        if (from + limit < d->failure_count)
                jsonw_field_u64(&w, "next", from + limit);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

void own_session_errors(struct request *r)
{
        struct steno_error err = {0};
        const struct digest *d = NULL;
        uint64_t from, limit;
        if (!request_number(r, "from", 0, 0, DIGEST_FAILURES_MAX, &from) ||
            !request_number(r, "limit", 1000, 1, 1000, &limit))
                return;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = digests_open(r->server->digests, r->store, conv, DIGEST_MS, &d, &err);
        if (rc == 0)
                put_failures(r, d, from, limit);
        else
                request_failed(r, rc, &err);
        digests_close(r->server->digests, d);
        steno_conv_close(conv);
}
