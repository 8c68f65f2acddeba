/*
 * toldcalls.c - see toldcalls.h
 */
#include "loop/toldcalls.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

static int into_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

static bool is_one_of(const struct buf *ids, const struct json *j, json_ref id)
{
        for (size_t at = 0; at < ids->n; at += strlen(ids->p + at) + 1)
                if (json_is(j, id, ids->p + at))
                        return true;
        return false;
}

static void put_calls(struct jsonw *w, const struct json *j, json_ref calls)
{
        for (json_ref k = json_child(j, calls); k != JSON_NONE; k = json_next(j, calls, k))
                jsonw_raw(w, json_raw(j, k));
}

/* The elements of the array. */
static int put_all_calls(struct steno_conv *conv, uint64_t after, const struct buf *ids,
    struct jsonw *w, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof(opt), .format = "chat", .after_seq = after, .no_ids = true};
        struct buf text;
        struct json j;
        if (ids->n == 0)
                return buf_check(ids, err);
        buf_init(&text, 0);
        json_init(&j);
        int rc = steno_view(conv, &opt, into_buf, &text, NULL, err);
        if (rc == 0)
                rc = buf_check(&text, err);
        if (rc == 0)
                rc = json_parse(&j, text.p, text.n, NULL, err);
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE;
             m = json_next(&j, 0, m))
                if (is_one_of(ids, &j, json_get(&j, m, "id")))
                        put_calls(w, &j, json_get(&j, m, "toolCalls"));
        json_release(&j);
        buf_release(&text);
        return rc;
}

int toldcalls_put(struct steno_conv *conv, uint64_t after, const struct buf *ids, struct buf *out,
    struct steno_error *err)
{
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        int rc = put_all_calls(conv, after, ids, &w, err);
        jsonw_array_end(&w);
        return rc;
}
