/* spill.c - see spill.h */
#include "api/spill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_stream.h"
#include "base/limits.h"
#include "base/text.h"
#include "output/excerpt.h"
#include "output/lines.h"
#include "output/outline.h"
#include "output/stub.h"

/* An outline needs the whole document in memory; beyond this the stub does without. */
#define OUTLINE_TEXT_MAX (8 * MIB)
#define OUTLINE_BYTES 1024
/* What is held of the line index before it goes to its file: that of 8 million lines. */
#define INDEX_PIECE (64 * KIB)
/* Less room than this is left unused when a quota ends an output. */
#define FILL_STEP 256

struct spill {
        struct steno_conv *conv;
        struct spill_options opt;
        uint64_t bytes;
        struct policy_count count; /* this and utf8 only until it is too large to be shown: */
        struct text_utf8 utf8;     /* then the excerpt, which sees everything, knows better */
        struct json_stream json;
        bool is_json;
        struct buf text; /* all of it until it is too large to be shown */
        bool large;
        bool ended;
        struct backend_artifact *artifact;
        struct excerpt *excerpt;
        struct lines_writer lines;
        struct buf line_index;
        struct buf outline_text; /* the whole, kept while it may be JSON and is not too large */
        struct steno_error full; /* with a code: a quota ended it */
        struct buf mark;         /* the words at its end then */
};

int spill_new(struct steno_conv *conv, const struct spill_options *opt, struct spill **out,
    struct steno_error *err)
{
        struct spill *s = calloc(1, sizeof *s);
        if (!s)
                return error_nomem(err);
        s->conv = conv;
        s->opt = *opt;
        s->is_json = true;
        json_stream_init(&s->json);
        buf_init(&s->text, 0);
        buf_init(&s->line_index, 0);
        buf_init(&s->outline_text, OUTLINE_TEXT_MAX);
        buf_init(&s->mark, 4 * KIB);
        lines_writer_init(&s->lines, &s->line_index);
        *out = s;
        return 0;
}

void spill_free(struct spill *s)
{
        if (!s)
                return;
        backend_artifact_free(s->artifact);
        excerpt_free(s->excerpt);
        buf_release(&s->text);
        buf_release(&s->line_index);
        buf_release(&s->outline_text);
        buf_release(&s->mark);
        free(s);
}

const char *spill_ref(const struct spill *s)
{
        return s->artifact ? backend_artifact_id(s->artifact) : NULL;
}

static void put_hint(const struct spill *s, struct buf *out, bool size)
{
        if (s->opt.server.n) {
                buf_put_str(out, s->opt.server);
                buf_putc(out, '/');
        }
        buf_put_str(out, s->opt.tool);
        if (s->opt.call.n) {
                buf_puts(out, " call ");
                buf_put(out, s->opt.call.p, text_floor(s->opt.call.p, s->opt.call.n, 80));
        }
        if (size) {
                buf_puts(out, ", ");
                text_put_size(out, s->bytes);
        }
}

/* What is collected about the bytes of the file. */
static int look_at(struct spill *s, const void *p, size_t n, struct steno_error *err)
{
        excerpt_feed(s->excerpt, p, n);
        lines_writer_feed(&s->lines, p, n);
        int rc = buf_check(&s->line_index, err);
        if (rc == 0 && s->line_index.n >= INDEX_PIECE) {
                backend_artifact_index(s->artifact, buf_str(&s->line_index));
                buf_clear(&s->line_index);
        }
        return rc;
}

/* Of a piece that a quota has no room for: as much as fits, in whole characters. */
static int fill_up(struct spill *s, const char *p, size_t n, struct steno_error *err)
{
        int rc = 0;
        for (size_t step = n / 2; rc == 0 && step >= FILL_STEP; step /= 2) {
                size_t whole = text_floor(p, n, step);
                if (whole == 0 || backend_artifact_write(s->artifact, p, whole, NULL))
                        continue;
                rc = look_at(s, p, whole, err);
                p += whole;
                n -= whole;
        }
        return rc;
}

/* A quota is reached. Keeps what has arrived, and appends the reason why there is no more (F9). */
static int mark_end(
    struct spill *s, const void *p, size_t n, const char *why, struct steno_error *err)
{
        int rc = fill_up(s, p, n, err);
        s->full.code = STENO_EQUOTA;
        snprintf(s->full.msg, sizeof s->full.msg, "%s", why);
        buf_printf(&s->mark, "\n[The output was ended here: %s]\n", why);
        s->is_json = false;
        s->large = true;
        backend_artifact_lift_quota(s->artifact);
        if (rc == 0)
                rc = buf_check(&s->mark, err);
        if (rc == 0)
                rc = backend_artifact_write(s->artifact, s->mark.p, s->mark.n, err);
        if (rc == 0)
                rc = look_at(s, s->mark.p, s->mark.n, err);
        return rc ? rc : spill_refuse(s, err);
}

/* Bytes that go to the file: everything that is collected about it sees them here. */
static int to_file(struct spill *s, const void *p, size_t n, struct steno_error *err)
{
        struct steno_error why = {0};
        int rc = backend_artifact_write(s->artifact, p, n, &why);
        if (rc == STENO_EQUOTA)
                return mark_end(s, p, n, why.msg, err);
        if (rc && err)
                *err = why;
        return rc ? rc : look_at(s, p, n, err);
}

/* From here on the output is a file. Writes first what was held so far. */
static int become_file(struct spill *s, struct steno_error *err)
{
        struct buf hint;
        buf_init(&hint, 4 * KIB);
        put_hint(s, &hint, false);
        s->excerpt = excerpt_new(NULL);
        int rc = s->excerpt ? buf_check(&hint, err) : error_nomem(err);
        if (rc == 0)
                rc = backend_artifact_begin(s->conv->backend, s->opt.terminal ? "terminal" : "tool",
                    s->opt.call, buf_str(&hint), &s->artifact, err);
        if (rc == 0 && s->opt.on_ref)
                s->opt.on_ref(s->opt.on_ref_ctx, backend_artifact_id(s->artifact));
        if (rc == 0)
                rc = to_file(s, s->text.p, s->text.n, err);
        buf_release(&hint);
        return rc;
}

int spill_refuse(const struct spill *s, struct steno_error *err)
{
        return s->full.code ? error_set(err, s->full.code, "%s", s->full.msg) : 0;
}

/* Keeps the document for its outline as long as it can be JSON and is not too large. */
static void look_for_json(struct spill *s, const char *p, size_t n)
{
        if (!s->is_json)
                return;
        s->is_json = json_stream_feed(&s->json, p, n);
        if (s->is_json)
                buf_put(&s->outline_text, p, n);
        if (!s->is_json || s->outline_text.failed) {
                buf_release(&s->outline_text);
                s->outline_text.max = 0;
        }
}

/* Has it become too large to be shown? No more is looked at than that needs. */
static bool is_large(struct spill *s, const void *p, size_t n)
{
        uint64_t room = s->opt.policy.max_bytes - s->count.bytes;
        size_t look = n > room ? (size_t)room + 1 : n;
        policy_count_feed(&s->count, p, look);
        text_utf8_feed(&s->utf8, p, look);
        return s->utf8.bad || policy_passed(&s->opt.policy, &s->count);
}

int spill_write(struct spill *s, const void *p, size_t n, struct steno_error *err)
{
        int rc = spill_refuse(s, err);
        if (rc)
                return rc;
        bool large = s->large || is_large(s, p, n);
        s->bytes += n;
        look_for_json(s, p, n);
        if (!s->artifact && (large || s->opt.terminal))
                rc = become_file(s, err);
        if (rc == 0 && s->artifact)
                rc = to_file(s, p, n, err);
        if (large && !s->large) {
                s->large = true;
                buf_release(&s->text);
        }
        if (rc == 0 && !large) {
                buf_put(&s->text, p, n);
                rc = buf_check(&s->text, err);
        }
        return rc;
}

static int put_stub(struct spill *s, const struct spill_exit *exit,
    const struct artifact_info *info, bool is_json, struct buf *content, struct steno_error *err)
{
        struct buf outline;
        int rc;
        if (policy_names_path(&s->opt.policy)) {
                struct buf path;
                buf_init(&path, 4 * KIB);
                spill_put_path(&path, steno_conv_id(s->conv), s->opt.message_id, s->opt.output);
                rc = stub_build_runtime(
                    excerpt_first_bytes(s->excerpt), buf_str(&path), content, err);
                buf_release(&path);
                return rc;
        }
        buf_init(&outline, 0);
        if (is_json && s->outline_text.n)
                outline_put(&outline, buf_str(&s->outline_text), OUTLINE_BYTES);
        struct excerpt_figures f;
        excerpt_figures(s->excerpt, &f);
        struct stub_meta meta = {.ref = str_of(info->id),
            .server = s->opt.server,
            .tool = s->opt.tool,
            .call = s->opt.call,
            .kind = f.binary  ? STUB_BINARY
                    : is_json ? STUB_JSON
                              : STUB_TEXT,
            .has_exit = exit->has_code,
            .exit_code = exit->code,
            .unfinished = exit->unfinished,
            .tools = s->opt.context_tools ? STUB_HAS_ALL : 0,
            .outline = buf_str(&outline)};
        rc = stub_build(s->excerpt, &meta, content, err);
        buf_release(&outline);
        return rc;
}

static int close_file(struct spill *s, const struct excerpt_figures *f, bool is_json,
    struct artifact_info *info, struct steno_error *err)
{
        struct buf hint;
        bool utf8 = f->utf8;
        buf_init(&hint, 4 * KIB);
        put_hint(s, &hint, true);
        struct artifact_end end = {.suffix = s->opt.terminal ? ".log"
                                             : is_json       ? ".json"
                                             : utf8          ? ".txt"
                                                             : ".bin",
            .mime = is_json ? "application/json"
                    : utf8  ? "text/plain"
                            : "application/octet-stream",
            .lines = f->lines,
            .utf8 = utf8,
            .hint = buf_str(&hint),
            .line_index = buf_str(&s->line_index)};
        int rc = backend_artifact_close(s->artifact, &end, info, err);
        buf_release(&hint);
        return rc;
}

int spill_finish(struct spill *s, const struct spill_exit *exit, struct buf *content,
    bool *materialized, struct artifact_info *info, struct steno_error *err)
{
        struct excerpt_figures f = {0};
        int rc = 0;
        if (!s->artifact && ((s->large || !text_utf8_finish(&s->utf8)) || s->opt.terminal))
                rc = become_file(s, err);
        if (rc == STENO_EQUOTA)
                rc = 0; /* its file says so */
        bool shown = !s->large && text_utf8_finish(&s->utf8);
        bool is_json = s->is_json && json_stream_finish(&s->json);
        if (rc == 0 && s->artifact && !s->ended) {
                excerpt_finish(s->excerpt);
                lines_writer_finish(&s->lines);
                s->ended = true;
        }
        if (rc == 0 && s->artifact) {
                excerpt_figures(s->excerpt, &f);
                is_json = is_json && f.utf8;
                rc = close_file(s, &f, is_json, info, err);
        }
        if (rc)
                return rc;
        /* What is short is shown whole, also where a terminal's output is a file as well. */
        if (shown) {
                buf_put(content, s->text.p, s->text.n);
                rc = buf_check(content, err);
        } else {
                rc = put_stub(s, exit, info, is_json, content, err);
                /* A short stub may have no room for the end. */
                if (rc == 0 && s->mark.n && !memmem(content->p, content->n, s->mark.p, s->mark.n)) {
                        buf_put_str(content, buf_str(&s->mark));
                        rc = buf_check(content, err);
                }
        }
        if (rc)
                return rc;
        *materialized = s->artifact != NULL;
        if (!shown)
                backend_figures_add(s->conv->store->backend,
                    &(struct figures){.materializations = 1,
                        .bytes = f.bytes,
                        .chars = f.chars,
                        .shown_bytes = content->n,
                        .shown_chars = text_count(content->p, content->n)});
        return 0;
}

void spill_put_ref(struct jsonw *w, const struct artifact_info *info)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "id", info->id);
        jsonw_field_cstr(w, "kind", "artifact");
        jsonw_field_cstr(w, "mimeType", info->mime);
        jsonw_field_u64(w, "byteSize", info->size);
        jsonw_field_i64(w, "createdAt", info->created);
        jsonw_field_cstr(w, "hint", info->hint);
        jsonw_object_end(w);
}

void spill_put_path(struct buf *out, const char *conversation, struct str message_id, size_t output)
{
        buf_puts(out, "@state/logs/tool-results/");
        buf_puts(out, conversation);
        buf_putc(out, '/');
        buf_put_str(out, message_id);
        if (output > 1)
                buf_printf(out, "-%zu", output);
        buf_puts(out, ".json");
}
