/* stub.c - see stub.h */
#include "output/stub.h"

#include <string.h>

#include "base/text.h"
#include "output/clean.h"
#include "output/cut.h"
#include "output/magic.h"
#include "output/policy.h"

#define NAME_BYTES 96
#define ESCAPED_MOST 2048  /* a longer text is not shown whole if it is not UTF-8 */
#define SECTIONS_LEAST 160 /* with less room, snippets are not worth their headings */
#define BINARY_LEAST 400   /* room to describe bytes that are not text */

/* One attempt: how many bytes each section may have, and the result. */
struct draft {
        size_t head_room, tail_room, error_room, outline_room;
        bool failed; /* sticky: the result is incomplete */
        struct snippet head;
        struct snippet tail;
        struct error_snippet errors;
};

static void draft_init(struct draft *d)
{
        memset(d, 0, sizeof(*d));
        excerpt_snippet_init(&d->head);
        excerpt_snippet_init(&d->tail);
        excerpt_error_snippet_init(&d->errors);
}

static void draft_release(struct draft *d)
{
        excerpt_error_snippet_release(&d->errors);
        excerpt_snippet_release(&d->tail);
        excerpt_snippet_release(&d->head);
}

/* ---- the frame ---- */

static void put_first_line(
    struct buf *out, const struct stub_meta *m, uint64_t shown, uint64_t total)
{
        buf_puts(out, "[INCOMPLETE: ");
        text_put_size(out, shown);
        buf_puts(out, " of ");
        text_put_size(out, total);
        buf_puts(out, " shown; the rest is in ");
        clean_put_name(out, m->ref, NAME_BYTES);
        buf_puts(out, "]\n");
}

static void put_kind(
    struct buf *out, enum stub_kind kind, const struct excerpt *e, const struct excerpt_figures *f)
{
        if (kind == STUB_BINARY) {
                const char *guess = magic_guess(excerpt_first_bytes(e));
                buf_printf(out, guess ? "binary (%s), " : "binary, ", guess);
        } else {
                buf_puts(out, kind == STUB_JSON ? "JSON, " : "text, ");
                buf_puts(out, f->utf8 ? "" : "not UTF-8, ");
                text_put_grouped(out, f->lines);
                buf_puts(out, f->lines == 1 ? " line, " : " lines, ");
        }
        text_put_grouped(out, f->bytes);
        buf_puts(out, " bytes");
}

static void put_second_line(struct buf *out, const struct stub_meta *m, enum stub_kind kind,
    const struct excerpt *e, const struct excerpt_figures *f)
{
        if (m->tool.n)
                buf_puts(out, "tool: ");
        if (m->server.n) {
                clean_put_name(out, m->server, NAME_BYTES);
                buf_putc(out, '/');
        }
        if (m->tool.n)
                clean_put_name(out, m->tool, NAME_BYTES);
        if (m->call.n) {
                buf_puts(out, "   call: ");
                clean_put_name(out, m->call, NAME_BYTES);
        }
        buf_puts(out, m->tool.n ? "   output: " : "output: ");
        put_kind(out, kind, e, f);
        if (m->has_exit)
                buf_printf(out, "   exit: %lld", (long long)m->exit_code);
        if (m->unfinished)
                buf_puts(out, "   unfinished: the tool had not ended");
        buf_putc(out, '\n');
}

struct advice {
        uint32_t tool;
        const char *call;
        const char *rest;
};

static void put_last_line(struct buf *out, const struct stub_meta *m, enum stub_kind kind,
    const struct excerpt_figures *f)
{
        static const struct advice tail = {STUB_HAS_TAIL, "context_tail", ", lines=200"};
        static const struct advice grep = {
            STUB_HAS_GREP, "context_grep", ", pattern=\"Error|Exception\""};
        static const struct advice search = {STUB_HAS_GREP, "context_grep", ", pattern=\"word\""};
        static const struct advice read = {STUB_HAS_READ, "context_read", ", offset=0"};
        const struct advice *text[] = {&tail, &grep, &read};
        const struct advice *json[] = {&read, &search, &tail};
        const struct advice *bytes[] = {&read, &search, &search};
        const struct advice **order = kind == STUB_BINARY ? bytes : text;
        int named = 0;
        if (kind == STUB_JSON || (kind == STUB_TEXT && f->lines < 4))
                order = json;
        for (int i = 0; i < 3 && named < (kind == STUB_BINARY ? 1 : 2); i++) {
                if (!(m->tools & order[i]->tool))
                        continue;
                buf_puts(out, named++ ? " or " : "More: ");
                buf_puts(out, order[i]->call);
                buf_puts(out, "(ref=\"");
                clean_put_name(out, m->ref, NAME_BYTES);
                buf_puts(out, "\"");
                buf_puts(out, order[i]->rest);
                buf_puts(out, ")");
        }
        buf_puts(out, named ? ". Do not run the tool again."
                            : "More: the whole output is stored; no tool of this session reads it. "
                              "If you need more, ask for it.");
}

static void put_range(struct buf *out, const char *name, const struct snippet *s)
{
        if (s->text.n == 0)
                return;
        buf_printf(out, "--- %s (line", name);
        if (s->first_line == s->last_line)
                buf_printf(out, " %llu) ---\n", (unsigned long long)s->first_line);
        else
                buf_printf(out, "s %llu-%llu) ---\n", (unsigned long long)s->first_line,
                    (unsigned long long)s->last_line);
        buf_put_str(out, buf_str(&s->text));
}

static void put_errors(struct buf *out, const struct error_snippet *s)
{
        if (s->text.n == 0)
                return;
        buf_puts(out, s->count == 1 ? "--- errors (line " : "--- errors (lines ");
        for (size_t i = 0; i < s->count; i++) {
                buf_puts(out, i ? ", " : "");
                buf_put_u64(out, s->lines[i]);
        }
        buf_puts(out, ") ---\n");
        buf_put_str(out, buf_str(&s->text));
}

static void put_outline(struct buf *out, struct str outline, size_t room)
{
        struct str rest = outline;
        size_t used = 0;
        bool any = false;
        while (rest.n) {
                const char *nl = memchr(rest.p, '\n', rest.n);
                struct str line = {rest.p, nl ? (size_t)(nl - rest.p) : rest.n};
                used += line.n + 1;
                if (used > room)
                        break;
                if (!any)
                        buf_puts(out, "--- outline ---\n");
                any = true;
                if (clean_looks_framed(line))
                        buf_putc(out, '\\');
                buf_put_str(out, line);
                buf_putc(out, '\n');
                rest.p += nl ? line.n + 1 : line.n;
                rest.n -= nl ? line.n + 1 : line.n;
        }
        if (any && rest.n)
                buf_puts(out, "  ...\n");
}

static void put_hex(struct buf *out, struct str first, size_t room)
{
        size_t rows = room / 80 < 8 ? room / 80 : 8;
        if (rows == 0)
                return;
        buf_puts(out, "--- first bytes ---\n");
        for (size_t at = 0; at < first.n && at / 16 < rows; at += 16) {
                buf_printf(out, "%08zx ", at);
                for (size_t i = at; i < at + 16; i++) {
                        if (i < first.n)
                                buf_printf(out, " %02x", (unsigned char)first.p[i]);
                        else
                                buf_puts(out, "   ");
                }
                buf_puts(out, "  |");
                for (size_t i = at; i < at + 16 && i < first.n; i++)
                        buf_putc(out, first.p[i] >= 0x20 && first.p[i] < 0x7F ? first.p[i] : '.');
                buf_puts(out, "|\n");
        }
}

/* ---- sharing the room ---- */

static size_t at_most(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* Errors and outline get a quarter each. The tail gets more of the rest than the head. */
static void share(struct draft *d, size_t room, size_t errors, size_t outline)
{
        d->outline_room = at_most(outline, room / 4);
        d->error_room = at_most(errors, room / 4);
        size_t left = room - d->outline_room - d->error_room;
        d->tail_room = left * 6 / 10;
        d->head_room = left - d->tail_room;
        if (d->tail_room > EXCERPT_BYTES_MAX)
                d->tail_room = EXCERPT_BYTES_MAX;
}

static void render(
    struct draft *d, const struct excerpt *e, size_t room, size_t errors, size_t outline)
{
        share(d, room, errors, outline);
        excerpt_head(e, d->head_room, &d->head);
        /* The tail gets the room that the head does not use. */
        excerpt_tail(
            e, room - d->outline_room - d->error_room - d->head.text.n, &d->head, &d->tail);
        excerpt_errors(e, d->error_room, &d->head, &d->tail, &d->errors);
        d->failed = d->failed || d->head.text.failed || d->tail.text.failed ||
                    d->errors.text.failed || excerpt_failed(e);
}

static void put_sections(struct buf *out, struct draft *d, const struct excerpt *e, size_t room,
    const struct stub_meta *m, enum stub_kind kind)
{
        if (kind == STUB_BINARY) {
                put_hex(out, excerpt_first_bytes(e), room);
                return;
        }
        render(d, e, room, EXCERPT_ERROR_BYTES, m->outline.n);
        /* If head and tail already show the failures, they get the room of the errors section. */
        if (d->errors.text.n < d->error_room)
                render(d, e, room, d->errors.text.n, m->outline.n);
        put_range(out, "head", &d->head);
        put_errors(out, &d->errors);
        put_outline(out, m->outline, d->outline_room);
        put_range(out, "tail", &d->tail);
}

static uint64_t bytes_shown(
    const struct draft *d, const struct excerpt *e, enum stub_kind kind, size_t sections)
{
        size_t first = excerpt_first_bytes(e).n;
        if (kind != STUB_BINARY)
                return d->head.text.n + d->errors.text.n + d->tail.text.n;
        size_t rows = sections / 70;
        return rows * 16 < first ? rows * 16 : first;
}

/* ---- forms, from the longest to one line ---- */

struct builder {
        const struct excerpt *e;
        const struct stub_meta *m;
        struct excerpt_figures f;
        enum stub_kind kind;
        size_t limit; /* the maximum size: less than half of the output */
};

/* Writes a stub with sections in `room` bytes. Their headings may exceed the limit. */
static void put_full(const struct builder *b, struct draft *d, size_t room, struct buf *out)
{
        struct buf sections;
        buf_init(&sections, 0);
        put_sections(&sections, d, b->e, room, b->m, b->kind);
        put_first_line(out, b->m, bytes_shown(d, b->e, b->kind, sections.n), b->f.bytes);
        put_second_line(out, b->m, b->kind, b->e, &b->f);
        buf_put_str(out, buf_str(&sections));
        put_last_line(out, b->m, b->kind, &b->f);
        if (sections.failed || d->failed)
                out->failed = STENO_ENOMEM;
        buf_release(&sections);
}

static void put_small(const struct builder *b, int form, struct buf *out)
{
        put_first_line(out, b->m, 0, b->f.bytes);
        if (form < 1)
                put_second_line(out, b->m, b->kind, b->e, &b->f);
        if (form < 2)
                put_last_line(out, b->m, b->kind, &b->f);
        else
                out->n--; /* this makes one line, without its LF */
}

/* Reduces the room until the stub is small enough. */
static bool try_full(const struct builder *b, struct draft *d, struct buf *stub)
{
        size_t room = b->limit;
        for (int i = 0; i < 12 && room >= SECTIONS_LEAST; i++) {
                buf_clear(stub);
                put_full(b, d, room, stub);
                if (stub->failed || stub->n <= b->limit)
                        return true;
                size_t over = stub->n - b->limit;
                room = room > over ? room - over : 0;
        }
        return false;
}

/* Writes text with escapes, also for control characters. */
static void put_escaped(struct buf *out, struct str text)
{
        struct buf visible;
        buf_init(&visible, 0);
        text_put_escaped(&visible, text);
        for (size_t i = 0; i < visible.n; i++) {
                unsigned char c = (unsigned char)visible.p[i];
                if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
                        buf_printf(out, "\\x%02X", c);
                else
                        buf_putc(out, (char)c);
        }
        if (visible.failed)
                out->failed = visible.failed;
        buf_release(&visible);
}

/*
 * A short text that is not UTF-8 cannot be in a message unchanged, but it need not be cut either:
 * it is shown whole, with escapes. The ref leads to the original bytes.
 */
static bool try_escaped(const struct builder *b, struct buf *stub)
{
        struct str text = excerpt_first_bytes(b->e);
        if (b->f.utf8 || b->kind == STUB_BINARY || b->f.bytes != text.n ||
            text_escaped_size(text) > ESCAPED_MOST)
                return false;
        buf_puts(stub, POLICY_NOT_UTF8);
        text_put_size(stub, text.n);
        buf_puts(stub, POLICY_NOT_UTF8_IN);
        clean_put_name(stub, b->m->ref, NAME_BYTES);
        buf_puts(stub, "]\n");
        put_escaped(stub, text);
        return true;
}

int stub_build(
    const struct excerpt *e, const struct stub_meta *meta, struct buf *out, struct steno_error *err)
{
        struct builder b = {.e = e, .m = meta, .kind = meta->kind};
        struct draft d;
        struct buf stub;
        excerpt_figures(e, &b.f);
        if (b.f.binary)
                b.kind = STUB_BINARY;
        b.limit = b.f.bytes > 0 ? (size_t)at_most((b.f.bytes - 1) / 2, STUB_MAX) : 0;
        /* Even a few bytes that are not text are replaced by a stub: the model must learn what they
         * are, even if the stub is longer than the bytes. */
        if (b.kind == STUB_BINARY && b.limit < BINARY_LEAST)
                b.limit = BINARY_LEAST;
        draft_init(&d);
        buf_init(&stub, 0);
        bool done = try_escaped(&b, &stub) || try_full(&b, &d, &stub);
        for (int form = 0; !done && form < 3; form++) {
                buf_clear(&stub);
                put_small(&b, form, &stub);
                done = stub.failed || stub.n <= b.limit;
        }
        int rc = buf_check(&stub, err);
        if (rc == 0) {
                buf_put_str(out, buf_str(&stub));
                rc = buf_check(out, err);
        }
        buf_release(&stub);
        draft_release(&d);
        return rc;
}

int stub_build_runtime(struct str first, struct str path, struct buf *out, struct steno_error *err)
{
        size_t n = text_bytes_of(first.p, first.n, POLICY_RUNTIME_STORE_PREVIEW);
        n = cut_before(first.p, first.n, n);
        for (size_t i = 0; i < n;) {
                uint32_t cp = 0;
                size_t len = text_decode(first.p + i, n - i, &cp);
                text_encode(out, cp);
                i += len;
        }
        buf_puts(out, "\n\n[Full output: ");
        buf_put_str(out, path);
        buf_putc(out, ']');
        return buf_check(out, err);
}
