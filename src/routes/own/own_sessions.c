/*
 * own_sessions.c - /api/chat-sessions: conversations and their messages.
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "http/server_core.h"
#include "routes/own/own_digest.h"
#include "routes/own/own_facts.h"
#include "http/http_limits.h"

#define LIST_STEP 50 /* conversations between two looks at the clock */
#define LIST_MS 600  /* for the figures of a list; then a cursor goes on */

/* ---- conversations ---- */

static void reply_text(struct request *r, int status, char *json)
{
        buf_puts(&r->reply, json);
        steno_free(json);
        request_reply_json(r, status);
}

static void reply_meta(struct request *r, struct steno_conv *conv, int status)
{
        struct steno_error err = {0};
        char *json;
        int rc = steno_conv_meta(conv, &json, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                reply_text(r, status, json);
}

/* What a caller may set for a conversation. The last rows are refused: Steno itself knows these
 * members, so a caller's value would occur twice in an answer, or would be false. */
static const struct body_rule ABOUT[] = {
    {"id", BODY_NAME},
    {"sessionId", BODY_NAME},
    {"title", BODY_TEXT},
    {"metadata", BODY_OBJECT},
    {"configs", BODY_OBJECT},
    {"user", BODY_NAME},
    {"space_id", BODY_NAME},
    {"disable_task_tracking", BODY_BOOL},
    {"lastSeq", BODY_OURS},
    {"bytes", BODY_OURS},
    {"runs", BODY_OURS},
    {"import", BODY_OURS},
    {"gateway", BODY_OURS},
    {"acp", BODY_OURS},
    {"events", BODY_OURS},
    {"deletedResponses", BODY_OURS},
    {0},
};

void own_session_create(struct request *r)
{
        struct steno_error err = {0};
        struct steno_conv *conv = NULL;
        struct json j;
        json_init(&j);
        if (request_json(r, &j, ABOUT)) {
                const char *id = request_member(r, &j, 0, "id");
                if (!id)
                        id = request_member(r, &j, 0, "sessionId");
                const char *text = buf_cstr(&r->body);
                int rc = text ? request_conv_create(r, id, text, &conv, NULL, &err) : STENO_ENOMEM;
                if (rc)
                        request_failed(r, rc, &err);
                else
                        reply_meta(r, conv, 201);
        }
        steno_conv_close(conv);
        json_release(&j);
}

struct rows {
        struct request *r;
        const struct own_filter *filter;
        struct jsonw w;
        int64_t until; /* then a cursor goes on */
        uint64_t read, shown;
        bool behind; /* a page says that the list is */
};

/* A conversation that takes longer than the time of this request is left to the next one, which
 * goes on reading where this one stopped. The first one is read to its end, so that each request
 * gets further: *unread stays false. */
static int put_row(
    struct rows *rows, const struct json *j, json_ref item, bool *unread, struct steno_error *err)
{
        enum own_row row;
        int rc;
        do {
                int64_t left = rows->until - http_now_ms();
                rc = own_row_put(rows->r, j, item, rows->filter, left > 20 ? (int)left : 20,
                    &rows->w, &row, err);
        } while (rc == 0 && row == OWN_ROW_UNREAD && rows->read == 0);
        *unread = rc == 0 && row == OWN_ROW_UNREAD;
        rows->read += !*unread;
        rows->shown += rc == 0 && row == OWN_ROW_SHOWN;
        return rc;
}

/* The cursor behind the first `n` of the page that `opt` asks for. */
static int cursor_behind(struct rows *rows, const struct steno_list_options *opt, uint32_t n,
    char **cursor, struct steno_error *err)
{
        struct steno_list_options part = *opt;
        struct json j;
        char *page = NULL;
        if (n == 0) {
                *cursor = strdup(opt->cursor);
                return *cursor ? 0 : error_nomem(err);
        }
        json_init(&j);
        part.limit = n;
        int rc = steno_list(rows->r->store, rows->r->who.project, &part, &page, err);
        if (rc == 0)
                rc = json_parse(&j, page, strlen(page), NULL, err);
        *cursor = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "next_cursor"));
        json_release(&j);
        steno_free(page);
        return rc;
}

/* One page of the store's list; *cursor: where the next one begins, NULL at the end. */
static int put_page(struct rows *rows, const struct steno_list_options *opt, char **cursor,
    bool *unread, struct steno_error *err)
{
        struct json j;
        char *page = NULL;
        uint32_t n = 0;
        *cursor = NULL;
        *unread = false;
        json_init(&j);
        int rc = steno_list(rows->r->store, rows->r->who.project, opt, &page, err);
        if (rc == 0)
                rc = json_parse(&j, page, strlen(page), NULL, err);
        rows->behind = rows->behind || json_bool(&j, json_get(&j, 0, "catching_up"), false);
        json_ref items = json_get(&j, 0, "items");
        for (json_ref i = rc ? JSON_NONE : json_child(&j, items); rc == 0 && i != JSON_NONE;
             i = json_next(&j, items, i), n++) {
                rc = put_row(rows, &j, i, unread, err);
                if (*unread)
                        break;
        }
        if (rc == 0 && *unread)
                rc = cursor_behind(rows, opt, n, cursor, err);
        else if (rc == 0)
                *cursor = json_dup_string(&j, json_get(&j, 0, "next_cursor"));
        json_release(&j);
        steno_free(page);
        return rc;
}

/* Pages of the store's list until there are enough that pass the filter, or the time is over: the
 * cursor goes on from there. */
static int put_rows(struct request *r, struct steno_list_options *opt, const struct own_filter *f,
    uint64_t limit, struct steno_error *err)
{
        struct rows rows = {
            .r = r, .filter = f, .w = jsonw_to(&r->reply), .until = http_now_ms() + LIST_MS};
        char *cursor = NULL;
        bool unread;
        int rc;
        jsonw_object(&rows.w);
        jsonw_key(&rows.w, "items");
        jsonw_array(&rows.w);
        opt->limit = limit < LIST_STEP ? (uint32_t)limit : LIST_STEP;
        do {
                char *next;
                rc = put_page(&rows, opt, &next, &unread, err);
                free(cursor);
                opt->cursor = cursor = next;
        } while (rc == 0 && cursor && !unread && rows.shown < limit && http_now_ms() < rows.until);
        jsonw_array_end(&rows.w);
        if (cursor)
                jsonw_field_cstr(&rows.w, "next_cursor", cursor);
        if (rows.behind)
                jsonw_field_bool(&rows.w, "catching_up", true);
        jsonw_object_end(&rows.w);
        free(cursor);
        return rc;
}

void own_session_list(struct request *r)
{
        struct steno_error err = {0};
        struct steno_list_options opt = {.size = sizeof opt};
        struct own_filter filter;
        uint64_t limit;
        char *json;
        if (!request_number(r, "limit", 20, 1, SERVER_PAGE_MAX, &limit) ||
            !own_filter_read(r, &filter))
                return;
        opt.limit = (uint32_t)limit;
        opt.cursor = request_query(r, "cursor");
        opt.query = request_query(r, "q");
        if (request_flag(r, "figures", false) || own_filter_is_set(&filter)) {
                int rc = put_rows(r, &opt, &filter, limit, &err);
                if (rc)
                        request_failed(r, rc, &err);
                else
                        request_reply_json(r, 200);
                return;
        }
        int rc = steno_list(r->store, r->who.project, &opt, &json, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                reply_text(r, 200, json);
}

void own_session_get(struct request *r)
{
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        struct steno_error err = {0};
        uint64_t seq, bytes;
        char *meta = NULL, *runs = NULL;
        if (!conv)
                return;
        int rc = steno_conv_meta(conv, &meta, &err);
        if (rc == 0)
                rc = steno_conv_last_seq(conv, &seq, &err);
        if (rc == 0)
                rc = steno_conv_size(conv, &bytes, &err);
        if (rc == 0)
                rc = steno_run_list(conv, &runs, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                /* The stored object with the last seq, the size and the runs added to it. */
                size_t n = strlen(meta);
                while (n && meta[n - 1] != '}')
                        n--;
                buf_put(&r->reply, meta, n ? n - 1 : 0);
                buf_printf(&r->reply,
                    ",\"lastSeq\":%llu,\"bytes\":%llu,\"runs\":", (unsigned long long)seq,
                    (unsigned long long)bytes);
                struct json j;
                json_init(&j);
                if (json_parse(&j, runs, strlen(runs), NULL, NULL) == 0)
                        buf_put_str(&r->reply, json_raw(&j, json_get(&j, 0, "items")));
                json_release(&j);
                buf_putc(&r->reply, '}');
                request_reply_json(r, 200);
        }
        steno_free(meta);
        steno_free(runs);
        steno_conv_close(conv);
}

void own_session_patch(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        if (request_json(r, &j, ABOUT)) {
                const char *text = buf_cstr(&r->body);
                int rc = text ? steno_conv_set_meta(conv, text, &err) : STENO_ENOMEM;
                if (rc)
                        request_failed(r, rc, &err);
                else
                        reply_meta(r, conv, 200);
        }
        json_release(&j);
        steno_conv_close(conv);
}

void own_session_delete(struct request *r)
{
        if (!request_conv_remove(r, r->params[0].p))
                return;
        buf_puts(&r->reply, "{\"deleted\":true}");
        request_reply_json(r, 200);
}

void own_session_restore(struct request *r)
{
        struct steno_error err = {0};
        int rc = steno_trash_restore(r->store, r->who.project, r->params[0].p, NULL, &err);
        if (rc == STENO_EINVAL)
                request_error(r, 404, "not_found", "no such conversation");
        else if (rc)
                request_failed(r, rc, &err);
        else {
                buf_puts(&r->reply, "{\"restored\":true}");
                request_reply_json(r, 200);
        }
}

/* ---- reading messages ---- */

static int to_reply(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* Moves a member of the report into the answer. */
static void put_member(struct buf *out, const struct json *report, const char *name, const char *as,
    const char *fallback)
{
        json_ref v = json_get(report, 0, name);
        buf_printf(out, ",\"%s\":", as);
        if (v == JSON_NONE)
                buf_puts(out, fallback);
        else
                buf_put_str(out, json_raw(report, v));
}

static bool view_options(struct request *r, struct steno_view_options *opt)
{
        static const char *const OUTPUTS[] = {"", "stub", "full", NULL};
        static const int MODES[] = {STENO_OUTPUTS_DEFAULT, STENO_OUTPUTS_STUB, STENO_OUTPUTS_FULL};
        unsigned outputs;
        uint64_t limit;
        if (!request_choice(r, "outputs", OUTPUTS, &outputs) ||
            !request_number(r, "limit", 0, 0, SERVER_PAGE_MAX, &limit) ||
            !request_number(r, "after", 0, 0, UINT64_MAX >> 1, &opt->after_seq) ||
            !request_number(r, "before", 0, 0, UINT64_MAX >> 1, &opt->before_seq) ||
            !request_number(r, "last", 0, 0, SERVER_PAGE_MAX, &opt->last) ||
            !request_number(r, "budget", 0, 0, UINT64_MAX >> 1, &opt->budget))
                return false;
        const char *cursor = request_query(r, "cursor");
        if (cursor && *cursor) {
                char *end;
                opt->after_seq = strtoull(cursor, &end, 10);
                if (*end) {
                        request_error(r, 400, "bad_request", "not a cursor of this list");
                        return false;
                }
        }
        opt->limit = limit;
        /* A page before something is its end, not its beginning. */
        if (opt->before_seq && limit) {
                opt->last = limit;
                opt->limit = 0;
        }
        opt->format = request_query(r, "format");
        if (!opt->format || !*opt->format)
                opt->format = "chat";
        opt->edit_strategies = request_query(r, "edit_strategies");
        opt->pin = request_query(r, "pin");
        opt->count_tokens = request_flag(r, "tokens", true);
        opt->strict = request_flag(r, "strict", false);
        opt->outputs = MODES[outputs];
        opt->all_messages = strcmp(opt->format, "chat") == 0;
        return true;
}

static int put_facts(
    struct steno_conv *conv, const struct json *report, struct buf *out, struct steno_error *err)
{
        uint64_t first = 0, last = 0;
        json_u64(report, json_get(report, 0, "first_seq"), &first);
        json_u64(report, json_get(report, 0, "last_seq"), &last);
        buf_puts(out, ",\"facts\":");
        return own_facts_put(conv, first, last, out, err);
}

void own_messages_get(struct request *r)
{
        struct steno_error err = {0};
        struct steno_view_options opt = {.size = sizeof opt, .no_ids = true};
        struct json report;
        char *text = NULL;
        if (!view_options(r, &opt))
                return;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        buf_puts(&r->reply, "{\"messages\":");
        int rc = steno_view(conv, &opt, to_reply, &r->reply, &text, &err);
        json_init(&report);
        if (rc == 0)
                rc = json_parse(&report, text, strlen(text), NULL, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                uint64_t last = 0;
                if (json_bool(&report, json_get(&report, 0, "has_more"), false) &&
                    json_u64(&report, json_get(&report, 0, "last_seq"), &last))
                        buf_printf(
                            &r->reply, ",\"next_cursor\":\"%llu\"", (unsigned long long)last);
                put_member(&r->reply, &report, "repairs", "repairs", "[]");
                put_member(&r->reply, &report, "losses", "losses", "[]");
                put_member(&r->reply, &report, "damaged", "damaged", "[]");
                put_member(&r->reply, &report, "damaged_count", "damagedCount", "0");
                put_member(&r->reply, &report, "edits", "edits", "[]");
                put_member(&r->reply, &report, "tokens", "tokens", "null");
                put_member(&r->reply, &report, "first_seq", "firstSeq", "0");
                put_member(&r->reply, &report, "last_seq", "lastSeq", "0");
                if (request_flag(r, "facts", false))
                        rc = put_facts(conv, &report, &r->reply, &err);
                buf_putc(&r->reply, '}');
                if (rc)
                        request_failed(r, rc, &err);
                else
                        request_reply_json(r, 200);
        }
        json_release(&report);
        steno_free(text);
        steno_conv_close(conv);
}

/* ---- appending ---- */

/* If-Match: a seq, quoted or not. */
static bool if_match(struct request *r, struct steno_append_options *opt)
{
        const char *h = request_header(r, "If-Match");
        if (!h)
                return true;
        char *end;
        const char *p = *h == '"' ? h + 1 : h;
        opt->expected_seq = strtoull(p, &end, 10);
        if (end == p || (*end && *end != '"')) {
                request_error(r, 400, "bad_request", "If-Match must be a seq");
                return false;
        }
        opt->flags |= STENO_EXPECT_SEQ;
        return true;
}

void own_messages_post(struct request *r)
{
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt};
        struct steno_receipt *receipt;
        if (r->body.n == 0) {
                request_error(r, 400, "bad_request", "there is no message");
                return;
        }
        opt.idempotency_key = request_header(r, "Idempotency-Key");
        opt.format = request_query(r, "format");
        if (request_flag(r, "record", false))
                opt.flags |= STENO_RECORD;
        static const char *const DURABILITY[] = {"full", "process", NULL};
        unsigned durability;
        if (!request_choice(r, "durability", DURABILITY, &durability) || !if_match(r, &opt))
                return;
        if (durability)
                opt.durability = STENO_PROCESS;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = steno_append(conv, r->body.p, r->body.n, &opt, &receipt, &err);
        if (rc == STENO_ECONFLICT && (opt.flags & STENO_EXPECT_SEQ)) {
                request_error(r, 412, "conflict", "%s", err.msg);
        } else if (rc) {
                request_failed(r, rc, &err);
        } else {
                atomic_fetch_add(&r->server->metrics.appends, 1);
                buf_puts(&r->reply, steno_receipt_json(receipt));
                request_reply_json(r, 201);
                steno_receipt_free(receipt);
        }
        steno_conv_close(conv);
}
