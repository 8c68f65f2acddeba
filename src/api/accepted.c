/* accepted.c - see accepted.h */
#include "api/accepted.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"

#define FILE_MAX (256 * MIB)
#define PATIENCE_MS 10000 /* with another process that writes there */

static int compare(const void *a, const void *b)
{
        const struct str *x = a, *y = b;
        int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
        return order ? order : (x->n > y->n) - (x->n < y->n);
}

static void put_key(struct buf *b, const struct accepted_loss *loss)
{
        buf_puts(b, loss->project ? loss->project : "");
        buf_putc(b, '\0');
        buf_puts(b, loss->conversation ? loss->conversation : "");
        buf_putc(b, '\0');
        buf_put_u64(b, loss->seq);
        buf_putc(b, '\0');
        buf_puts(b, loss->what);
}

static int keep(struct accepted *a, const struct accepted_loss *loss, struct steno_error *err)
{
        struct buf key;
        if (!grow_room(a->keys, a->count, a->cap))
                return error_nomem(err);
        buf_init(&key, 0);
        put_key(&key, loss);
        struct str copy = key.failed ? (struct str){0} : arena_dup(&a->arena, buf_str(&key));
        buf_release(&key);
        if (!copy.p)
                return error_nomem(err);
        a->keys[a->count++] = copy;
        return 0;
}

static int read_line(struct accepted *a, struct json *j, struct str line, struct steno_error *err)
{
        int rc = json_parse(j, line.p, line.n, NULL, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? error_nomem(err) : 0; /* such a line is ignored */
        char *project = json_dup_string(j, json_get(j, 0, "project"));
        char *conversation = json_dup_string(j, json_get(j, 0, "conversation"));
        char *what = json_dup_string(j, json_get(j, 0, "what"));
        struct accepted_loss loss = {
            .project = project, .conversation = conversation, .what = what};
        json_u64(j, json_get(j, 0, "seq"), &loss.seq);
        if (what)
                rc = keep(a, &loss, err);
        free(project);
        free(conversation);
        free(what);
        return rc;
}

int accepted_read(struct accepted *a, struct backend_store *store, struct steno_error *err)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        *a = (struct accepted){0};
        arena_init(&a->arena);
        buf_init(&a->lines, 0);
        int rc = backend_document_read(store, ACCEPTED_NAME, FILE_MAX, &text, &n, NULL, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        if (rc)
                return 0; /* without the file no loss is accepted */
        json_init(&j);
        for (size_t at = 0; rc == 0 && at < n;) {
                const char *lf = memchr(text + at, '\n', n - at);
                size_t line = lf ? (size_t)(lf - text) - at : n - at;
                rc = read_line(a, &j, str_span(text + at, line), err);
                at += line + 1;
        }
        json_release(&j);
        free(text);
        if (a->count)
                qsort(a->keys, a->count, sizeof *a->keys, compare);
        a->sorted = a->count;
        return rc;
}

bool accepted_has(const struct accepted *a, const struct accepted_loss *loss)
{
        struct buf key;
        buf_init(&key, 0);
        put_key(&key, loss);
        struct str want = buf_str(&key);
        bool has = !key.failed && a->sorted &&
                   bsearch(&want, a->keys, a->sorted, sizeof *a->keys, compare);
        for (size_t i = a->sorted; !key.failed && !has && i < a->count; i++)
                has = str_eq(want, a->keys[i]);
        buf_release(&key);
        return has;
}

int accepted_add(struct accepted *a, const struct env *env, const struct accepted_loss *loss,
    struct steno_error *err)
{
        char at[TIME_TEXT];
        struct jsonw w = jsonw_to(&a->lines);
        time_format(env->now(env), at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "at", at);
        if (loss->project)
                jsonw_field_cstr(&w, "project", loss->project);
        if (loss->conversation)
                jsonw_field_cstr(&w, "conversation", loss->conversation);
        if (loss->seq)
                jsonw_field_u64(&w, "seq", loss->seq);
        jsonw_field_cstr(&w, "what", loss->what);
        jsonw_object_end(&w);
        buf_putc(&a->lines, '\n');
        int rc = buf_check(&a->lines, err);
        return rc ? rc : keep(a, loss, err);
}

static int add_lines(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        struct accepted *a = ctx;
        (void)err;
        buf_put_str(out, old);
        if (old.n && old.p[old.n - 1] != '\n')
                buf_putc(out, '\n');
        buf_put_str(out, buf_str(&a->lines));
        return 0;
}

int accepted_write(struct accepted *a, struct backend_store *store, struct steno_error *err)
{
        if (a->lines.n == 0)
                return 0;
        int rc =
            backend_document_change(store, ACCEPTED_NAME, FILE_MAX, PATIENCE_MS, add_lines, a, err);
        buf_clear(&a->lines);
        return rc;
}

void accepted_release(struct accepted *a)
{
        free(a->keys);
        arena_release(&a->arena);
        buf_release(&a->lines);
        *a = (struct accepted){0};
}
