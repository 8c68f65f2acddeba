/*
 * context_ops.c - list, read, tail and grep.
 *
 *   C1  Boundaries of read never split a character, also where its writer is still at it; reading
 *       on from next_offset until done gives the exact bytes.
 *   C2  tail reads only the end of a file.
 *   C3  The content of an answer is at most CONTEXT_READ_MAX bytes as it is shown.
 */
#include "api/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "output/grep.h"
#include "output/lines.h"
#include "api/spill.h"

int context_open_ref(const struct context_shelf *shelf, const struct json *args,
    struct context_file *f, struct steno_error *err)
{
        struct buf ref;
        json_ref v = json_get(args, 0, "ref");
        /* A whole ref object is taken as well: models copy what they were shown. */
        if (json_type(args, v) == JSON_OBJECT)
                v = json_get(args, v, "id");
        buf_init(&ref, 4 * KIB);
        int rc = json_string(args, v, &ref, NULL)
                     ? buf_check(&ref, err)
                     : error_set(err, STENO_EPROTO, "ref must be given, as a string");
        if (rc == 0)
                rc = shelf->open(shelf, buf_str(&ref), f, err);
        buf_release(&ref);
        return rc;
}

int context_read_at(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        struct context_file *f = ctx;
        if (!f->reader) {
                memcpy(p, f->memory.p + at, n);
                return 0;
        }
        ssize_t got = backend_reader_read(f->reader, at, p, n, err);
        if (got < 0)
                return (int)got;
        if ((size_t)got < n)
                return error_set(
                    err, STENO_EIO, "the file of %s became shorter while it was read", f->info.id);
        return 0;
}

/* ---- list ---- */

struct listing {
        struct jsonw w;
        struct str kind;
        struct str after; /* a ref: those before it are passed over, until it was seen */
        uint64_t left;
};

static int list_one(void *ctx, const struct artifact_info *info)
{
        struct listing *l = ctx;
        if (l->after.n) {
                if (str_is(l->after, info->id))
                        l->after.n = 0;
                return 0;
        }
        if (info->state == ARTIFACT_DELETED)
                return 0;
        if (l->kind.n && !str_is(l->kind, info->kind) && !str_is(l->kind, "artifact"))
                return 0;
        if (l->left-- == 0)
                return 1;
        spill_put_ref(&l->w, info);
        return 0;
}

int context_list(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        struct buf said, kind, after;
        struct listing l = {.w = jsonw_to(out)};
        (void)watch;
        buf_init(&said, 4 * KIB);
        buf_init(&kind, 4 * KIB);
        buf_init(&after, 4 * KIB);
        json_string(args, json_get(args, 0, "kind"), &kind, NULL);
        json_string(args, json_get(args, 0, "after"), &after, NULL);
        l.kind = buf_str(&kind);
        l.after = buf_str(&after);
        int rc = context_number(args, "limit",
            (struct context_range){CONTEXT_LIST_DEFAULT, 1, CONTEXT_LIST_MAX}, &said, &l.left, err);
        if (rc == 0) {
                jsonw_object(&l.w);
                jsonw_key(&l.w, "items");
                jsonw_array(&l.w);
                rc = shelf->each(shelf, list_one, &l, err);
                jsonw_array_end(&l.w);
                context_put_notes(&l.w, &said);
                jsonw_object_end(&l.w);
        }
        if (rc >= 0 && l.after.n)
                rc = error_set(err, STENO_ENOTFOUND, "there is no output \"%.60s\" here",
                    buf_cstr(&after) ? buf_cstr(&after) : "");
        buf_release(&said);
        buf_release(&kind);
        buf_release(&after);
        return rc < 0 ? rc : 0;
}

/* ---- read ---- */

struct range {
        uint64_t offset;
        uint64_t limit;
};

/* line and count as an offset and a limit. */
static int range_of_lines(const struct context_shelf *shelf, struct context_file *f,
    const struct json *args, struct range *out, struct buf *said, struct steno_error *err)
{
        uint64_t line, count, end;
        bool found, more;
        char *index = NULL;
        size_t n = 0;
        struct lines_index x;
        int rc = context_number(
            args, "line", (struct context_range){1, 1, UINT64_MAX >> 1}, said, &line, err);
        if (rc == 0)
                rc = context_number(args, "count",
                    (struct context_range){100, 1, CONTEXT_TAIL_LINES_MAX}, said, &count, err);
        if (rc == 0)
                rc = shelf->lines(shelf, &f->info, &index, &n, err);
        if (rc)
                return rc;
        struct lines_file file = {context_read_at, f, f->size};
        const struct lines_index *known = n && lines_index_open(&x, index, n, f->size) ? &x : NULL;
        rc = lines_seek(&file, known, line, &out->offset, &found, err);
        if (rc == 0 && line > 1 && out->offset >= f->size)
                buf_printf(said, "%sline was beyond the end", said->n ? "; " : "");
        if (rc == 0)
                rc = lines_seek(&file, known, line + count, &end, &more, err);
        if (rc == 0)
                out->limit =
                    end - out->offset < CONTEXT_READ_MAX ? end - out->offset : CONTEXT_READ_MAX;
        free(index);
        return rc;
}

static bool is_given(const struct json *args, const char *name)
{
        enum json_type t = json_type(args, json_get(args, 0, name));
        return t != JSON_NOTHING && t != JSON_NULL;
}

/* Bytes before `offset` that belong to a character which it would split. */
static int back_to_character(struct context_file *f, uint64_t *offset, struct steno_error *err)
{
        char around[8];
        size_t before = *offset < 3 ? (size_t)*offset : 3;
        size_t n = f->size - *offset < 4 ? (size_t)(f->size - *offset) : 4;
        if (f->info.state != ARTIFACT_CLOSED || !f->info.utf8 || before == 0)
                return 0;
        int rc = context_read_at(f, *offset - before, around, before + n, err);
        if (rc == 0)
                *offset -= before - text_floor(around, before + n, before);
        return rc;
}

/* How many bytes at the end are a character that its writer has not finished. */
static size_t unfinished_character(const struct context_file *f, const char *p, size_t n)
{
        size_t valid = f->info.live ? text_utf8_prefix(p, n) : n;
        bool begun = valid < n && n - valid < 4 && (unsigned char)p[valid] >= 0xC2;
        return begun ? n - valid : 0;
}

/* What is asked for: by lines, or by bytes. */
static int range_of(const struct context_shelf *shelf, struct context_file *f,
    const struct json *args, struct range *r, struct buf *said, struct steno_error *err)
{
        static const struct context_range offsets = {0, 0, UINT64_MAX >> 1},
                                          limits = {CONTEXT_READ_DEFAULT, 1, CONTEXT_READ_MAX};
        int rc;
        if (is_given(args, "line") || is_given(args, "count")) {
                rc = range_of_lines(shelf, f, args, r, said, err);
        } else {
                rc = context_number(args, "offset", offsets, said, &r->offset, err);
                if (rc == 0)
                        rc = context_number(args, "limit", limits, said, &r->limit, err);
        }
        if (rc == 0 && r->offset > f->size) {
                buf_printf(said, "%soffset was beyond the end", said->n ? "; " : "");
                r->offset = f->size;
        }
        return rc ? rc : back_to_character(f, &r->offset, err);
}

/* Reads the range, up to the end of a character: *n bytes. `page` has room for
 * CONTEXT_READ_MAX + 8. */
static int read_page(
    struct context_file *f, const struct range *r, char *page, size_t *n, struct steno_error *err)
{
        uint64_t left = f->size - r->offset;
        size_t want = left < r->limit ? (size_t)left : (size_t)r->limit;
        /* Up to three bytes more, so that the last character can be completed when the limit is
         * smaller than it. */
        size_t extra = left - want < 3 ? (size_t)(left - want) : 3;
        int rc = context_read_at(f, r->offset, page, want + extra, err);
        if (rc)
                return rc;
        if (extra) {
                size_t floor = text_floor(page, want + extra, want);
                want = floor ? floor : text_ceil(page, want + extra, want);
        } else {
                want -= unfinished_character(f, page, want);
        }
        *n = want;
        return 0;
}

int context_read(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        struct context_file f;
        struct buf said;
        struct range r;
        char page[CONTEXT_READ_MAX + 8];
        size_t n = 0;
        bool base64 = false;
        (void)watch;
        int rc = context_open_ref(shelf, args, &f, err);
        if (rc)
                return rc;
        buf_init(&said, 4 * KIB);
        rc = context_wants_base64(args, &base64, err);
        if (rc == 0)
                rc = range_of(shelf, &f, args, &r, &said, err);
        if (rc == 0)
                rc = read_page(&f, &r, page, &n, err);
        if (rc == 0) {
                enum context_encoding encoding = context_encoding_of(str_span(page, n), base64);
                n = context_fit(str_span(page, n), encoding);
                struct jsonw w = jsonw_to(out);
                jsonw_object(&w);
                context_put_content(&w, "content", str_span(page, n), encoding);
                jsonw_field_u64(&w, "offset", r.offset);
                jsonw_field_u64(&w, "next_offset", r.offset + n);
                jsonw_field_bool(&w, "done", r.offset + n >= f.size);
                jsonw_field_u64(&w, "total_bytes", f.size);
                context_put_state(&w, &f, &said);
                context_put_notes(&w, &said);
                jsonw_object_end(&w);
        }
        buf_release(&said);
        context_close(&f);
        return rc;
}

/* ---- tail ---- */

/* The last lines, as many as an answer can show. */
static int read_tail(struct context_file *f, uint64_t lines, bool base64, char *page,
    struct lines_span *span, enum context_encoding *encoding, struct steno_error *err)
{
        struct lines_file file = {context_read_at, f, f->size};
        for (size_t room = CONTEXT_READ_MAX;; room = room / 4 * 3) {
                int rc = lines_tail(&file, lines, room, span, err);
                if (rc == 0)
                        rc = context_read_at(f, span->offset, page, (size_t)span->size, err);
                if (rc)
                        return rc;
                span->size -= unfinished_character(f, page, (size_t)span->size);
                struct str shown = str_span(page, (size_t)span->size);
                *encoding = context_encoding_of(shown, base64);
                if (context_fit(shown, *encoding) == shown.n)
                        return 0;
        }
}

int context_tail(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        struct context_file f;
        struct buf said;
        struct lines_span span;
        uint64_t lines;
        char page[CONTEXT_READ_MAX];
        (void)watch;
        int rc = context_open_ref(shelf, args, &f, err);
        if (rc)
                return rc;
        buf_init(&said, 4 * KIB);
        bool base64 = false;
        enum context_encoding encoding = CONTEXT_TEXT;
        rc = context_wants_base64(args, &base64, err);
        if (rc == 0)
                rc = context_number(args, "lines",
                    (struct context_range){CONTEXT_TAIL_LINES_DEFAULT, 1, CONTEXT_TAIL_LINES_MAX},
                    &said, &lines, err);
        if (rc == 0)
                rc = read_tail(&f, lines, base64, page, &span, &encoding, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                bool counted = f.info.state == ARTIFACT_CLOSED && !f.damaged;
                jsonw_object(&w);
                context_put_content(&w, "content", str_span(page, (size_t)span.size), encoding);
                jsonw_key(&w, "first_line");
                if (counted)
                        jsonw_u64(&w, span.lines ? f.info.lines - span.lines + 1 : 0);
                else
                        jsonw_null(&w);
                jsonw_key(&w, "total_lines");
                if (counted)
                        jsonw_u64(&w, f.info.lines);
                else
                        jsonw_null(&w);
                jsonw_field_u64(&w, "offset", span.offset);
                jsonw_field_u64(&w, "total_bytes", f.size);
                context_put_state(&w, &f, &said);
                context_put_notes(&w, &said);
                jsonw_object_end(&w);
        }
        buf_release(&said);
        context_close(&f);
        return rc;
}

/* ---- grep ---- */

static void put_lines(struct jsonw *w, const char *key, const struct grep_line *lines, uint32_t n)
{
        struct buf text;
        if (n == 0)
                return;
        buf_init(&text, 0);
        jsonw_key(w, key);
        jsonw_array(w);
        for (uint32_t i = 0; i < n; i++) {
                buf_clear(&text);
                text_put_escaped(&text, lines[i].text);
                if (text.failed)
                        w->b->failed = text.failed;
                jsonw_str(w, buf_str(&text));
        }
        jsonw_array_end(w);
        buf_release(&text);
}

/* Lines are always shown as text. */
static void put_match(struct jsonw *w, const struct grep_match *m)
{
        struct str text = m->content.text;
        bool plain = text_is_utf8(text.p, text.n);
        jsonw_object(w);
        jsonw_field_u64(w, "line", m->line);
        jsonw_field_u64(w, "byte_offset", m->match_offset);
        context_put_content(w, "content", text, plain ? CONTEXT_TEXT : CONTEXT_ESCAPED);
        if (m->content.cut_before || m->content.cut_after) {
                jsonw_field_bool(w, "window", true);
        }
        put_lines(w, "before", m->before, m->before_count);
        put_lines(w, "after", m->after, m->after_count);
        jsonw_object_end(w);
}

static int take_direction(
    const struct json *args, struct grep_options *opt, struct buf *said, struct steno_error *err)
{
        json_ref v = json_get(args, 0, "direction");
        opt->backward = json_is(args, v, "backward");
        if (!opt->backward && v != JSON_NONE && json_type(args, v) != JSON_NULL &&
            !json_is(args, v, "forward"))
                return error_set(err, STENO_EPROTO, "direction is \"forward\" or \"backward\"");
        return context_number(args, "from_line", (struct context_range){0, 0, UINT64_MAX >> 1},
            said, &opt->from_line, err);
}

static int take_options(const struct json *args, struct grep_options *opt, struct buf *pattern,
    struct buf *said, struct steno_error *err)
{
        uint64_t results, context, spread;
        bool given = json_string(args, json_get(args, 0, "pattern"), pattern, NULL);
        if (pattern->failed)
                return error_set(
                    err, STENO_ELIMIT, "pattern too long: at most %d bytes", GREP_PATTERN_MAX);
        if (!given || pattern->n == 0)
                return error_set(err, STENO_EPROTO, "pattern must be given, as a string");
        int rc = context_number(args, "max_results",
            (struct context_range){CONTEXT_GREP_RESULTS_DEFAULT, 1, CONTEXT_GREP_RESULTS_MAX}, said,
            &results, err);
        if (rc == 0)
                rc = context_number(args, "context_lines",
                    (struct context_range){0, 0, CONTEXT_GREP_CONTEXT_MAX}, said, &context, err);
        if (rc == 0)
                rc = context_number(args, "spread", (struct context_range){0, 0, GREP_SPREAD_MAX},
                    said, &spread, err);
        if (rc)
                return rc;
        opt->spread = (uint32_t)spread;
        opt->pattern = buf_str(pattern);
        opt->case_sensitive = json_bool(args, json_get(args, 0, "case_sensitive"), false);
        opt->max_results = (uint32_t)results;
        opt->context_lines = (uint32_t)context;
        opt->max_bytes = CONTEXT_READ_MAX;
        return take_direction(args, opt, said, err);
}

/* Below this, counting the lines is faster than asking for their index. */
#define INDEX_WORTH (1 * MIB)

static int search(const struct context_shelf *shelf, struct context_file *f,
    const struct grep_options *opt, struct grep_result *out, struct steno_error *err)
{
        struct grep_source source = {.file = {context_read_at, f, f->size}};
        struct lines_index x;
        char *index = NULL;
        size_t n = 0;
        if (f->size >= INDEX_WORTH && shelf->lines(shelf, &f->info, &index, &n, NULL) == 0 && n &&
            lines_index_open(&x, index, n, f->size))
                source.index = &x;
        int rc = grep_run(&source, opt, out, err);
        free(index);
        return rc;
}

/* Of the first match in each part of the output, so that a reader can draw where all of them are.
 */
static void put_spread(struct jsonw *w, const struct grep_result *r)
{
        jsonw_key(w, "spread");
        jsonw_array(w);
        for (size_t i = 0; i < r->spread_count; i++)
                jsonw_u64(w, r->spread[i]);
        jsonw_array_end(w);
}

int context_grep(const struct context_shelf *shelf, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        struct context_file f;
        struct buf said, pattern;
        struct grep_options opt = {0};
        struct grep_result result;
        int rc = context_open_ref(shelf, args, &f, err);
        if (rc)
                return rc;
        buf_init(&said, 4 * KIB);
        buf_init(&pattern, 64 * KIB);
        rc = take_options(args, &opt, &pattern, &said, err);
        if (rc == 0) {
                opt.progress = watch->progress;
                opt.progress_ctx = watch->ctx;
                opt.utf8 = f.info.state == ARTIFACT_OPEN || f.info.utf8;
                rc = search(shelf, &f, &opt, &result, err);
        }
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                jsonw_object(&w);
                jsonw_key(&w, "matches");
                jsonw_array(&w);
                for (size_t i = 0; i < result.count; i++)
                        put_match(&w, &result.matches[i]);
                jsonw_array_end(&w);
                jsonw_field_u64(&w, "total_matches", result.total_matches);
                if (opt.from_line)
                        jsonw_field_u64(&w, "matches_before", result.matches_before);
                jsonw_field_bool(&w, "truncated", result.truncated);
                if (result.next_line)
                        jsonw_field_u64(&w, "next_line", result.next_line);
                if (opt.spread)
                        put_spread(&w, &result);
                if (result.narrowed)
                        buf_printf(&said,
                            "%slines around a match were left out to keep the answer "
                            "small",
                            said.n ? "; " : "");
                context_put_state(&w, &f, &said);
                context_put_notes(&w, &said);
                jsonw_object_end(&w);
                grep_release(&result);
        }
        buf_release(&said);
        buf_release(&pattern);
        context_close(&f);
        return rc;
}
