/*
 * api_fold.c - steno_fold_*: messages pushed one at a time, shown in `chat` format at any time.
 *
 * Each message's text and parts live in an arena of the fold, because parts are spans over it.
 */
#include "steno.h"

#include <stdlib.h>

#include "base/error.h"
#include "format/format.h"
#include "model/fold.h"

struct steno_fold {
        struct fold *fold;
        struct arena arena;
        struct json json; /* the tape, reused */
};

int steno_fold_new(struct steno_fold **out, struct steno_error *err)
{
        struct steno_fold *f = calloc(1, sizeof *f);
        if (f)
                f->fold = fold_new();
        if (!f || !f->fold) {
                free(f);
                return error_nomem(err);
        }
        arena_init(&f->arena);
        json_init(&f->json);
        *out = f;
        return 0;
}

/* A single message does not always show its format. If it fits openai and toolmessage, it counts as
 * openai; other formats are tried only if it fits neither. */
static const struct format *format_of(const struct json *j)
{
        const struct format *best = &format_openai;
        int score = best->detect(j, 0);
        const struct format *const others[] = {&format_toolmessage2, &format_toolmessage};
        for (size_t i = 0; i < 2; i++) {
                int one = others[i]->detect(j, 0);
                if (one > score) {
                        score = one;
                        best = others[i];
                }
        }
        if (score >= 20)
                return best;
        const struct format *any = format_detect(j, 0);
        return any ? any : &format_openai; /* its describe() reports what is wrong */
}

int steno_fold_push(struct steno_fold *f, const char *json, size_t n, struct steno_error *err)
{
        return steno_fold_push_as(f, NULL, json, n, err);
}

int steno_fold_push_as(
    struct steno_fold *f, const char *format, const char *json, size_t n, struct steno_error *err)
{
        const struct format *from = format ? format_find(format) : NULL;
        if (format && !from)
                return error_set(err, STENO_EINVAL, "there is no format \"%.60s\"", format);
        struct str text = arena_dup(&f->arena, str_span(json, n));
        if (!text.p)
                return error_nomem(err);
        int rc = json_parse(&f->json, text.p, text.n, NULL, err);
        if (rc)
                return rc;
        struct message m;
        rc = format_read_message(from ? from : format_of(&f->json), &f->json, 0,
            fold_history(f->fold)->count + 1, &f->arena, &m, err);
        return rc ? rc : fold_push(f->fold, &m, err);
}

int steno_fold_json(struct steno_fold *f, char **json, struct steno_error *err)
{
        struct buf out;
        struct arena arena;
        buf_init(&out, 0);
        arena_init(&arena);
        struct writer w = {.out = &out, .arena = &arena, .valid = true, .strip_own = true};
        int rc = format_write_history(&format_chat, &w, fold_history(f->fold), err);
        char *text = rc ? NULL : buf_take(&out, NULL);
        if (!rc && !text)
                rc = error_nomem(err);
        if (!rc)
                *json = text;
        buf_release(&out);
        arena_release(&arena);
        return rc;
}

void steno_fold_free(struct steno_fold *f)
{
        if (!f)
                return;
        fold_free(f->fold);
        arena_release(&f->arena);
        json_release(&f->json);
        free(f);
}
