/*
 * view_lines.c - for views.test and pages.test: histories in, views out, a line each.
 *
 *   view_lines STORE_FOLDER
 *
 * A line in is {"format"?,"strict"?,"messages":[...],"amend"?:[{"kind","target","message"?}],
 * "views":[{steno_view_options}]}; targets are indexes into messages. A line out is
 * {"unchanged":bool,"ids":[...],"views":[{"messages","report"} | {"error","text"}]}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "steno.h"

static int to_buf(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static int sum_record(void *ctx, const struct steno_record *r)
{
        uint64_t *sum = ctx;
        char *json = NULL;
        size_t n = 0;
        if (steno_record_message(r, &json, &n, NULL) == 0)
                *sum = *sum * 31 + hash_64(json, n);
        steno_free(json);
        return 0;
}

static uint64_t sum_of(struct steno_conv *conv)
{
        uint64_t sum = 1;
        steno_read(conv, 0, 0, sum_record, &sum, NULL);
        return sum;
}

static uint64_t number(const struct json *j, json_ref o, const char *key)
{
        uint64_t v = 0;
        json_u64(j, json_get(j, o, key), &v);
        return v;
}

static void put_view(struct steno_conv *conv, const struct json *j, json_ref o, struct buf *out)
{
        struct steno_error err = {0};
        char *report = NULL;
        char *format = json_dup_string(j, json_get(j, o, "format"));
        char *edits = json_dup_string(j, json_get(j, o, "edit_strategies"));
        char *pin = json_dup_string(j, json_get(j, o, "pin"));
        struct steno_view_options opt = {.size = sizeof opt,
            .format = format,
            .edit_strategies = edits,
            .pin = pin,
            .budget = number(j, o, "budget"),
            .after_seq = number(j, o, "after_seq"),
            .before_seq = number(j, o, "before_seq"),
            .limit = number(j, o, "limit"),
            .last = number(j, o, "last"),
            .outputs = (int)number(j, o, "outputs"),
            .count_tokens = json_bool(j, json_get(j, o, "count_tokens"), false),
            .all_messages = json_bool(j, json_get(j, o, "all_messages"), false)};
        size_t start = out->n;
        buf_puts(out, "{\"messages\":");
        int rc = steno_view(conv, &opt, to_buf, out, &report, &err);
        if (rc == 0) {
                buf_puts(out, ",\"report\":");
                buf_puts(out, report);
        } else {
                out->n = start;
                buf_printf(out, "{\"error\":\"%s\",\"text\":", steno_code_name(rc));
                json_put_string(out, str_of(err.msg));
        }
        buf_putc(out, '}');
        steno_free(report);
        free(format);
        free(edits);
        free(pin);
}

static int amend(struct steno_conv *conv, const struct json *j, json_ref list, char **ids)
{
        for (json_ref a = json_child(j, list); a != JSON_NONE; a = json_next(j, list, a)) {
                struct steno_error err = {0};
                char *kind = json_dup_string(j, json_get(j, a, "kind"));
                struct str m = json_raw(j, json_get(j, a, "message"));
                int rc = steno_amend(conv, kind, ids[number(j, a, "target")], m.n ? m.p : NULL, m.n,
                    NULL, NULL, &err);
                free(kind);
                if (rc) {
                        fprintf(stderr, "amend: %s\n", err.msg);
                        return rc;
                }
        }
        return 0;
}

/* One by one, as a client would, unless `batch`. */
static int append(struct steno_conv *conv, const struct json *j, json_ref o, char **ids)
{
        struct steno_error err = {0};
        json_ref list = json_get(j, o, "messages");
        size_t i = 0;
        char *format = json_dup_string(j, json_get(j, o, "format"));
        struct steno_append_options opt = {.size = sizeof opt,
            .format = format,
            .durability = STENO_PROCESS,
            .flags = json_bool(j, json_get(j, o, "strict"), false) ? 0 : STENO_RECORD};
        struct steno_receipt *receipt = NULL;
        struct str raw = json_raw(j, list);
        int rc = json_count(j, list) ? steno_append(conv, raw.p, raw.n, &opt, &receipt, &err) : 0;
        if (rc)
                fprintf(stderr, "append: %s\n", err.msg);
        for (; rc == 0 && receipt && i < steno_receipt_count(receipt); i++)
                ids[i] = strdup(steno_receipt_id(receipt, i));
        steno_receipt_free(receipt);
        free(format);
        return rc;
}

static int answer(struct steno_store *store, const struct json *j, struct buf *out)
{
        struct steno_conv *conv = NULL;
        json_ref views = json_get(j, 0, "views");
        size_t count = json_count(j, json_get(j, 0, "messages"));
        char **ids = calloc(count + 1, sizeof *ids);
        int rc = steno_conv_create(store, "default", NULL, NULL, &conv, NULL);
        if (rc == 0)
                rc = append(conv, j, 0, ids);
        if (rc == 0)
                rc = amend(conv, j, json_get(j, 0, "amend"), ids);
        uint64_t before = rc ? 0 : sum_of(conv);
        struct buf list;
        buf_init(&list, 0);
        for (json_ref v = json_child(j, views); rc == 0 && v != JSON_NONE;
             v = json_next(j, views, v)) {
                if (list.n)
                        buf_putc(&list, ',');
                put_view(conv, j, v, &list);
        }
        buf_printf(out, "{\"unchanged\":%s,\"ids\":[",
            rc == 0 && before == sum_of(conv) ? "true" : "false");
        for (size_t i = 0; rc == 0 && i < count; i++) {
                buf_puts(out, i ? "," : "");
                json_put_string(out, str_of(ids[i]));
        }
        buf_puts(out, "],\"views\":[");
        buf_put_str(out, buf_str(&list));
        buf_puts(out, "]}");
        buf_release(&list);
        steno_conv_close(conv);
        for (size_t i = 0; i < count; i++)
                free(ids[i]);
        free(ids);
        return rc;
}

int main(int argc, char **argv)
{
        char *line = NULL;
        size_t cap = 0;
        ssize_t n;
        int failed = 0;
        struct steno_store *store;
        struct steno_error err = {0};
        struct json j;
        struct buf out;
        if (argc != 2 || steno_open(argv[1], NULL, &store, &err)) {
                fprintf(stderr, "view_lines: %s\n", err.msg);
                return 2;
        }
        json_init(&j);
        buf_init(&out, 0);
        while ((n = getline(&line, &cap, stdin)) > 0) {
                buf_clear(&out);
                if (json_parse(&j, line, (size_t)n, NULL, &err) || answer(store, &j, &out))
                        failed = 1;
                printf("%s\n", buf_cstr(&out));
        }
        json_release(&j);
        buf_release(&out);
        free(line);
        steno_close(store);
        return failed;
}
