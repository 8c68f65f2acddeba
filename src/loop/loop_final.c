/*
 * loop_final.c - the event final_message: the last text, and each call of the run as every other
 * reader gets it.
 *
 * The calls are those of the view `chat`, so that a page shows the same before and after it is
 * loaded again: state, result or error, steps, times, ref, display.
 */
#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"

static int into_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

void loop_note_caller(struct loop *c)
{
        buf_put(&c->callers, c->message_id, strlen(c->message_id) + 1);
        c->caller = c->last_stored;
        steno_run_set_caller(c->run, c->caller);
}

/* Is it one of the messages in which this run made calls? */
static bool is_caller(const struct loop *c, const struct json *j, json_ref id)
{
        for (size_t at = 0; at < c->callers.n; at += strlen(c->callers.p + at) + 1)
                if (json_is(j, id, c->callers.p + at))
                        return true;
        return false;
}

static void put_calls(struct jsonw *w, const struct json *j, json_ref calls)
{
        for (json_ref k = json_child(j, calls); k != JSON_NONE; k = json_next(j, calls, k))
                jsonw_raw(w, json_raw(j, k));
}

/* The elements of toolCalls. */
static int put_all_calls(struct loop *c, struct jsonw *w, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof(opt), .format = "chat", .after_seq = c->before, .no_ids = true};
        struct buf text;
        struct json j;
        if (c->callers.n == 0)
                return buf_check(&c->callers, err);
        buf_init(&text, 0);
        json_init(&j);
        int rc = steno_view(c->opt.conv, &opt, into_buf, &text, NULL, err);
        if (rc == 0)
                rc = buf_check(&text, err);
        if (rc == 0)
                rc = json_parse(&j, text.p, text.n, NULL, err);
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE;
             m = json_next(&j, 0, m))
                if (is_caller(c, &j, json_get(&j, m, "id")))
                        put_calls(w, &j, json_get(&j, m, "toolCalls"));
        json_release(&j);
        buf_release(&text);
        return rc;
}

int loop_put_calls(struct loop *c, struct buf *out, struct steno_error *err)
{
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        int rc = put_all_calls(c, &w, err);
        jsonw_array_end(&w);
        return rc;
}

int loop_tell_final(struct loop *c, struct str text, struct steno_error *err)
{
        struct event e;
        struct buf calls;
        buf_init(&calls, MESSAGE_MAX);
        int rc = loop_put_calls(c, &calls, err);
        if (rc == 0) {
                journal_event_begin(&e, &c->journal, STENO_EVENT_FINAL_MESSAGE, c->message_id);
                jsonw_field_str(&e.w, "text", text);
                jsonw_field_str(&e.w, "message", text);
                /* Past its size limit the list would be incomplete. */
                jsonw_field_raw(&e.w, "toolCalls", calls.failed ? STR("[]") : buf_str(&calls));
                journal_event_end(&e, &c->journal);
                rc = journal_check(&c->journal, err);
                c->told_final = true;
        }
        buf_release(&calls);
        return rc;
}
