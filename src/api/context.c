/*
 * context.c - context files: finding one, its raw bytes, and the operations by name.
 */
#include "api/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/optstruct.h"
#include "base/text.h"

/* ---- opening ---- */

struct ref_of_message {
        size_t output;   /* which of the message's outputs, from 1 */
        struct str path; /* that the message has to name; nothing: it need not */
        char ref[64];
};

static int take_ref(void *ctx, const struct backend_record *r)
{
        struct ref_of_message *m = ctx;
        struct arena arena;
        struct about about;
        if (m->path.n && !memmem(r->rec.m.p, r->rec.m.n, m->path.p, m->path.n))
                return 0;
        arena_init(&arena);
        size_t left = about_read(r->rec.x, &arena, &about, NULL) == 0 ? m->output : 0;
        for (size_t i = 0; left && i < about_ref_slots(&about); i++) {
                struct str ref = about_ref_at(&about, i);
                if (ref.n && --left == 0)
                        snprintf(m->ref, sizeof m->ref, "%.*s", (int)ref.n, ref.p);
        }
        arena_release(&arena);
        return 0;
}

/* "<message>-<n>": the n-th output of a message, where there is none of that id. */
static bool split_output(struct str *message, size_t *output)
{
        size_t at = message->n, value = 0, place = 1;
        while (at && message->p[at - 1] >= '0' && message->p[at - 1] <= '9' && place < 100000) {
                value += place * (size_t)(message->p[--at] - '0');
                place *= 10;
        }
        if (at == message->n || at < 2 || message->p[at - 1] != '-' || value < 2)
                return false;
        message->n = at - 1;
        *output = value;
        return true;
}

/*
 * The ref behind a path of the runtime-store profile (spill.h). A fork, and an import under a new
 * id, keep messages whose path names the conversation that they come from: such a path holds where
 * the message itself names it, because clients may give the same id to other messages elsewhere.
 */
static bool resolve_path(struct steno_conv *conv, struct str path, struct ref_of_message *out)
{
        static const char PREFIX[] = "@state/logs/tool-results/", END[] = ".json";
        size_t prefix = sizeof PREFIX - 1, end = sizeof END - 1;
        *out = (struct ref_of_message){.output = 1};
        if (!str_starts(path, PREFIX) || path.n < prefix + 1 + end ||
            memcmp(path.p + path.n - end, END, end) != 0)
                return false;
        struct str rest = {path.p + prefix, path.n - prefix - end};
        const char *id = steno_conv_id(conv);
        size_t n = strlen(id);
        bool own = str_starts(rest, id) && rest.n > n && rest.p[n] == '/';
        const char *slash = own ? rest.p + n : memrchr(rest.p, '/', rest.n);
        if (!slash)
                return false;
        struct str message = str_span(slash + 1, (size_t)(rest.p + rest.n - slash - 1));
        if (!own)
                out->path = path;
        if (backend_read_id(conv->backend, message, take_ref, out, NULL) == STENO_ENOTFOUND &&
            split_output(&message, &out->output))
                backend_read_id(conv->backend, message, take_ref, out, NULL);
        return out->ref[0];
}

void context_name_bytes(const char sha256[SHA256_HEX], char ref[CONTEXT_BYTES_REF])
{
        snprintf(ref, CONTEXT_BYTES_REF, "ctx_%.32s", sha256);
}

/* An artifact whose bytes a ref names. */
struct bytes_search {
        struct str ref;
        struct artifact_info *out;
};

static int has_bytes(void *ctx, const struct artifact_info *info)
{
        struct bytes_search *s = ctx;
        char ref[CONTEXT_BYTES_REF];
        if (info->state != ARTIFACT_CLOSED)
                return 0;
        context_name_bytes(info->sha256, ref);
        if (!str_is(s->ref, ref))
                return 0;
        *s->out = *info;
        return 1;
}

static int find_artifact(
    struct steno_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err)
{
        struct bytes_search s = {id, out};
        int rc = backend_artifact_find(conv->backend, id, out, err);
        if (rc != STENO_ENOTFOUND || id.n != CONTEXT_BYTES_REF - 1)
                return rc;
        int found = backend_artifact_each(conv->backend, has_bytes, &s, NULL);
        return found == 1 ? 0 : rc;
}

int context_open(
    struct steno_conv *conv, struct str ref, struct context_file *out, struct steno_error *err)
{
        struct ref_of_message named;
        char at[TIME_TEXT];
        *out = (struct context_file){0};
        struct str id = ref;
        if (ref.n && ref.p[0] == '@' && resolve_path(conv, ref, &named))
                id = str_of(named.ref);
        int rc = find_artifact(conv, id, &out->info, err);
        if (rc)
                return rc;
        if (out->info.state == ARTIFACT_DELETED) {
                time_format(out->info.deleted_at, at);
                return error_set(err, STENO_ENOTFOUND, "%s (%.100s) was deleted on %s by %s",
                    out->info.id, out->info.hint, at, out->info.deleted_by);
        }
        rc = backend_artifact_open(conv->backend, &out->info, &out->reader, &out->size, err);
        out->damaged = rc == 0 && out->info.state == ARTIFACT_CLOSED && out->size != out->info.size;
        return rc;
}

int context_damage(const struct context_file *f, struct steno_error *err)
{
        return error_set(err, STENO_ECORRUPT, "%s is damaged: of %llu bytes %llu are there",
            f->info.id, (unsigned long long)f->info.size, (unsigned long long)f->size);
}

void context_close(struct context_file *f)
{
        backend_reader_close(f->reader);
        f->reader = NULL;
}

static int read_range(const struct context_file *f, uint64_t offset, uint64_t end, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        char block[65536];
        while (offset < end) {
                size_t want = end - offset < sizeof block ? (size_t)(end - offset) : sizeof block;
                ssize_t got = backend_reader_read(f->reader, offset, block, want, err);
                if (got < 0)
                        return (int)got;
                if (got == 0)
                        break;
                if (sink(ctx, block, (size_t)got))
                        return error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
                offset += (uint64_t)got;
        }
        return f->damaged ? context_damage(f, err) : 0;
}

int steno_context_raw(struct steno_conv *conv, const char *ref, uint64_t offset, uint64_t length,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        struct context_file f;
        int rc = context_open(conv, str_of(ref), &f, err);
        if (rc)
                return rc;
        bool all = offset == 0 && (length == 0 || length >= f.size);
        uint64_t left = f.size - (offset < f.size ? offset : f.size);
        uint64_t end = length && length < left ? offset + length : f.size;
        if (all && f.info.state == ARTIFACT_CLOSED && !f.damaged)
                rc = backend_reader_whole(f.reader, &f.info, sink, ctx, err);
        else
                rc = read_range(&f, offset, end, sink, ctx, err);
        context_close(&f);
        return rc;
}

/* ---- arguments and answers ---- */

/* Models also send numbers as strings and with a point. */
static bool read_number(const struct json *args, json_ref v, int64_t *out)
{
        double d;
        if (json_type(args, v) == JSON_STRING) {
                struct str s = json_inner(args, v);
                char *end;
                char digits[24];
                snprintf(digits, sizeof digits, "%.*s", (int)(s.n < 23 ? s.n : 23), s.p);
                *out = strtoll(digits, &end, 10);
                return s.n > 0 && !*end;
        }
        if (json_i64(args, v, out))
                return true;
        if (!json_double(args, v, &d))
                return false;
        *out = d >= 9e18 ? INT64_MAX : d <= -9e18 ? INT64_MIN : (int64_t)d;
        return true;
}

int context_number(const struct json *args, const char *name, struct context_range range,
    struct buf *said, uint64_t *out, struct steno_error *err)
{
        json_ref v = json_get(args, 0, name);
        int64_t n = 0;
        if (v == JSON_NONE || json_type(args, v) == JSON_NULL) {
                *out = range.fallback;
                return 0;
        }
        if (!read_number(args, v, &n))
                return error_set(err, STENO_EPROTO, "%s must be a whole number", name);
        uint64_t u = n < 0 ? 0 : (uint64_t)n;
        uint64_t clamped = u < range.min ? range.min : u > range.max ? range.max : u;
        if (clamped != u || n < 0)
                buf_printf(said, "%s%s was %lld and was taken as %llu", said->n ? "; " : "", name,
                    (long long)n, (unsigned long long)clamped);
        *out = clamped;
        return 0;
}

static void put_base64(struct buf *b, struct str s)
{
        static const char DIGITS[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *p = (const unsigned char *)s.p;
        buf_putc(b, '"');
        for (size_t i = 0; i < s.n; i += 3) {
                uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < s.n ? (uint32_t)p[i + 1] << 8 : 0) |
                             (i + 2 < s.n ? p[i + 2] : 0);
                buf_putc(b, DIGITS[v >> 18 & 63]);
                buf_putc(b, DIGITS[v >> 12 & 63]);
                buf_putc(b, i + 1 < s.n ? DIGITS[v >> 6 & 63] : '=');
                buf_putc(b, i + 2 < s.n ? DIGITS[v & 63] : '=');
        }
        buf_putc(b, '"');
}

int context_wants_base64(const struct json *args, bool *out, struct steno_error *err)
{
        json_ref v = json_get(args, 0, "encoding");
        *out = json_is(args, v, "base64");
        if (*out || v == JSON_NONE || json_type(args, v) == JSON_NULL || json_is(args, v, "text"))
                return 0;
        return error_set(err, STENO_EPROTO, "encoding is \"text\" or \"base64\"");
}

enum context_encoding context_encoding_of(struct str bytes, bool base64)
{
        if (base64)
                return CONTEXT_BASE64;
        if (text_is_utf8(bytes.p, bytes.n))
                return CONTEXT_TEXT;
        return text_looks_binary(bytes.p, bytes.n) ? CONTEXT_BASE64 : CONTEXT_ESCAPED;
}

size_t context_fit(struct str bytes, enum context_encoding encoding)
{
        size_t most = CONTEXT_READ_MAX;
        if (encoding == CONTEXT_ESCAPED)
                return text_escaped_fit(bytes, most);
        if (encoding == CONTEXT_BASE64)
                most = most / 4 * 3;
        return bytes.n < most ? bytes.n : most;
}

void context_put_content(
    struct jsonw *w, const char *key, struct str bytes, enum context_encoding encoding)
{
        if (encoding == CONTEXT_TEXT) {
                jsonw_field_str(w, key, bytes);
                return;
        }
        if (encoding == CONTEXT_BASE64) {
                jsonw_key(w, key);
                put_base64(jsonw_value(w), bytes);
                jsonw_field_cstr(w, "encoding", "base64");
                return;
        }
        struct buf text;
        buf_init(&text, 0);
        text_put_escaped(&text, bytes);
        if (text.failed)
                w->b->failed = text.failed;
        jsonw_field_str(w, key, buf_str(&text));
        jsonw_field_cstr(w, "encoding", "escaped");
        buf_release(&text);
}

void context_put_state(struct jsonw *w, const struct context_file *f, struct buf *said)
{
        struct steno_error why = {0};
        if (f->info.state == ARTIFACT_OPEN) {
                jsonw_field_bool(w, "unfinished", true);
        }
        if (!f->damaged)
                return;
        jsonw_field_bool(w, "damaged", true);
        context_damage(f, &why);
        buf_printf(said, "%s%s", said->n ? "; " : "", why.msg);
}

void context_put_notes(struct jsonw *w, const struct buf *said)
{
        if (!said->n)
                return;
        jsonw_field_str(w, "notes", buf_str(said));
}

/* ---- by name ---- */

/* `counted`: as which of the kinds of reads in struct figures. */
static const struct {
        const char *name;
        size_t counted;
        int (*run)(const struct context_shelf *shelf, const struct json *args,
            const struct context_watch *watch, struct buf *out, struct steno_error *err);
} OPERATIONS[] = {
    {"list", 0, context_list},
    {"read", 1, context_read},
    {"tail", 2, context_tail},
    {"grep", 3, context_grep},
    {"json", 1, context_json},
};

void context_count(struct steno_conv *conv, const char *op)
{
        struct figures more = {0};
        for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
                if (strcmp(op, OPERATIONS[i].name) == 0)
                        more.reads[OPERATIONS[i].counted] = 1;
        backend_figures_add(conv->store->backend, &more);
}

static int run_operation(const struct context_shelf *shelf, const char *op, const struct json *args,
    const struct context_watch *watch, struct buf *out, struct steno_error *err)
{
        for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
                if (strcmp(op, OPERATIONS[i].name) != 0)
                        continue;
                int rc = OPERATIONS[i].run(shelf, args, watch, out, err);
                return rc ? rc : buf_check(out, err);
        }
        return error_set(err, STENO_EINVAL, "there is no context operation \"%.40s\"", op);
}

int context_run(const struct context_shelf *shelf, const char *op, struct str args,
    const struct context_watch *watch, char **json, struct steno_error *err)
{
        static const struct context_watch nobody = {0};
        struct json j;
        struct buf out;
        json_init(&j);
        buf_init(&out, 64 * MIB);
        if (args.n == 0)
                args = STR("{}");
        int rc = json_parse(&j, args.p, args.n, NULL, err);
        if (rc == 0 && json_type(&j, 0) != JSON_OBJECT)
                rc = error_set(err, STENO_EPROTO, "the arguments must be an object");
        if (rc == 0)
                rc = run_operation(shelf, op, &j, watch ? watch : &nobody, &out, err);
        if (rc == 0) {
                char *text = buf_take(&out, NULL);
                if (text)
                        *json = text;
                else
                        rc = error_nomem(err);
        }
        json_release(&j);
        buf_release(&out);
        return rc;
}

/* ---- the shelf of a conversation ---- */

static struct steno_conv *conv_of(const struct context_shelf *self)
{
        return ((const struct context_conv *)self)->conv;
}

static int open_in_conv(const struct context_shelf *self, struct str ref, struct context_file *out,
    struct steno_error *err)
{
        return context_open(conv_of(self), ref, out, err);
}

static int each_in_conv(const struct context_shelf *self,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        return backend_artifact_each(conv_of(self)->backend, each, ctx, err);
}

static int lines_in_conv(const struct context_shelf *self, const struct artifact_info *info,
    char **p, size_t *n, struct steno_error *err)
{
        return backend_artifact_lines(conv_of(self)->backend, info, p, n, err);
}

void context_conv_init(struct context_conv *c, struct steno_conv *conv)
{
        *c = (struct context_conv){{open_in_conv, each_in_conv, lines_in_conv}, conv};
}

int steno_context(struct steno_conv *conv, const char *op, const char *args, size_t n, char **json,
    struct steno_error *err)
{
        return steno_context_with(conv, op, args, n, NULL, json, err);
}

int steno_context_with(struct steno_conv *conv, const char *op, const char *args, size_t n,
    const struct steno_context_options *opt, char **json, struct steno_error *err)
{
        struct context_watch watch = {0};
        struct context_conv shelf;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        watch.progress = OPTION(opt, struct steno_context_options, progress, NULL);
        watch.ctx = OPTION(opt, struct steno_context_options, progress_ctx, NULL);
        context_conv_init(&shelf, conv);
        rc = context_run(&shelf.shelf, op, str_span(args, args ? n : 0), &watch, json, err);
        if (rc == 0)
                context_count(conv, op);
        return rc;
}
