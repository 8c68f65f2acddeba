/*
 * transcript_piece.c - texts, thoughts, calls and results below their headings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/callview.h"
#include "cli/pieces.h"
#include "cli/term.h"
#include "cli/transcript.h"
#include "cli/wrap.h"

#define INDENT "      "
#define BAR "      │ "
#define RESULT_ROWS 8
#define SECTION_ROWS 5 /* of each end of a stub */
#define THINKING_ROWS 4
#define SYSTEM_ROWS 6

/* ---- which call a result answers ---- */

static void remember_call(struct transcript *t, const struct piece *p)
{
        struct transcript_call *to = &t->calls[t->next_call++ % TRANSCRIPT_CALLS];

        snprintf(to->id, sizeof(to->id), "%.*s", (int)p->id.n, p->id.p);
        snprintf(to->name, sizeof(to->name), "%.*s", (int)p->name.n, p->name.p);
}

static struct str name_of_call(struct transcript *t, struct str id)
{
        /* The latest first: providers use the same id again in every turn. */
        for (size_t back = 1; back <= TRANSCRIPT_CALLS && back <= t->next_call; back++) {
                struct transcript_call *k = &t->calls[(t->next_call - back) % TRANSCRIPT_CALLS];
                if (str_is(id, k->id))
                        return str_of(k->name);
        }
        return STR("");
}

/* ---- blocks ---- */

static void put_left(struct transcript *t, const char *corner, struct wrap_left left)
{
        struct buf b;

        if (left.bytes == 0)
                return;
        buf_init(&b, 0);
        if (left.lines > 0) {
                text_put_grouped(&b, left.lines);
                buf_puts(&b, left.lines == 1 ? " more line" : " more lines");
        } else {
                text_put_size(&b, left.bytes);
                buf_puts(&b, " more");
        }
        out_style(&t->c->out, "2");
        out_printf(&t->c->out, INDENT "%s … ", corner);
        out_str(&t->c->out, buf_str(&b));
        out_plain(&t->c->out);
        out_puts(&t->c->out, "\n");
        buf_release(&b);
}

static void put_prose(struct transcript_entry *e, const struct piece *p)
{
        bool thinking = p->kind == PIECE_THINKING;
        struct wrap w = {
            .o = &e->t->c->out,
            .width = e->t->width,
            .prefix = thinking ? INDENT "┊ " : INDENT,
            .prefix_style = thinking ? "2" : NULL,
            .style = thinking ? "2;3"
                     : e->dim ? "2"
                              : NULL,
            .words = true,
        };

        if (!e->t->full && (thinking || e->dim))
                w.max_rows = thinking ? THINKING_ROWS : SYSTEM_ROWS;
        put_left(e->t, " ", wrap_put(&w, p->body));
}

/* ---- calls ---- */

/* What is known of a call without a result, by its class in the report of steno_conv_recover. */
static const struct {
        const char *class;
        const char *words;
} OPEN_CALLS[] = {
    {"not_dispatched", "it was never started"},
    {"indeterminate", "it was started, and its process died: what it did is unknown"},
    {"cut", "its arguments were cut off, so it was not run"},
    {"interrupted", "it was stopped"},
    {"running", "it is running"},
    {"waiting", "it has not been started yet"},
    {"unrecorded", "no result was stored"},
};

static json_ref find_open(const struct transcript_entry *e, const struct piece *p)
{
        const struct json *j = &e->t->open_json;
        json_ref all = e->t->open ? json_get(j, 0, "open") : JSON_NONE;
        json_ref found = JSON_NONE;
        struct buf id;
        buf_init(&id, 0);
        for (json_ref o = all == JSON_NONE ? JSON_NONE : json_child(j, all);
             o != JSON_NONE && found == JSON_NONE; o = json_next(j, all, o)) {
                uint64_t seq = 0;
                buf_clear(&id);
                if (json_u64(j, json_get(j, o, "seq"), &seq) && seq == steno_record_seq(e->r) &&
                    json_string(j, json_get(j, o, "call"), &id, NULL) &&
                    str_eq(buf_str(&id), p->id))
                        found = o;
        }
        buf_release(&id);
        return found;
}

/* The row below a call that has no result: its state, and how a call that waits is answered. */
static void put_state(struct transcript_entry *e, const struct piece *p)
{
        const struct json *j = &e->t->open_json;
        struct out *o = &e->t->c->out;
        json_ref open = find_open(e, p);
        struct buf line;
        if (open == JSON_NONE)
                return;
        buf_init(&line, 0);
        json_string(j, json_get(j, open, "class"), &line, NULL);
        bool waits = str_is(buf_str(&line), "waiting");
        for (size_t i = 0; i < sizeof OPEN_CALLS / sizeof *OPEN_CALLS; i++)
                if (str_is(buf_str(&line), OPEN_CALLS[i].class)) {
                        buf_printf(&line, ": %s", OPEN_CALLS[i].words);
                        break;
                }
        if (waits) {
                char *run = json_dup_string(j, json_get(j, open, "run"));
                char *id = json_dup_string(j, json_get(j, open, "call"));
                if (run && id) {
                        buf_printf(&line, " (steno approve %s ", run);
                        callview_put_word(&line, id);
                        buf_putc(&line, ')');
                }
                free(run);
                free(id);
        }
        out_style(o, "2");
        out_puts(o, INDENT "  · ");
        wrap_one_line(o, buf_str(&line), 0);
        out_plain(o);
        out_puts(o, "\n");
        buf_release(&line);
}

/* Ids are shown whole, because `steno approve` and `steno output` need them. Only an id that is
 * longer than any provider's is cut. */
#define ID_COLUMNS 128

static void put_call_row(struct transcript_entry *e, const struct piece *p)
{
        struct transcript *t = e->t;
        struct out *o = &t->c->out;
        unsigned id_columns = term_columns(p->id) < ID_COLUMNS ? term_columns(p->id) : ID_COLUMNS;

        remember_call(t, p);
        out_puts(o, INDENT);
        out_style(o, "1;33");
        out_puts(o, "→ ");
        wrap_one_line(o, p->name, 40);
        out_plain(o);
        if (t->full) {
                struct wrap w = {o, t->width, BAR, "2", NULL, false, false, 0};
                out_style(o, "2");
                out_puts(o, "  ");
                wrap_one_line(o, p->id, 0);
                out_plain(o);
                out_puts(o, "\n");
                wrap_put(&w, p->body);
                return;
        }
        unsigned used = 6 + 2 + term_columns(p->name) + 2 + 2 + id_columns;
        out_puts(o, "  ");
        wrap_one_line(o, p->body, t->width > used + 12 ? t->width - used : 12);
        out_style(o, "2");
        out_puts(o, "  ");
        wrap_one_line(o, p->id, ID_COLUMNS);
        out_plain(o);
        out_puts(o, "\n");
}

static void put_call(struct transcript_entry *e, const struct piece *p)
{
        put_call_row(e, p);
        put_state(e, p);
}

/* ---- results ---- */

static struct str next_line(struct str *rest)
{
        const char *lf = memchr(rest->p, '\n', rest->n);
        size_t n = lf ? (size_t)(lf - rest->p) : rest->n;
        struct str line = str_span(rest->p, n);

        n += lf != NULL;
        *rest = str_span(rest->p + n, rest->n - n);
        return line;
}

/* "text, 31,204 lines, 1,843,220 bytes" out of a stub's second line. */
static struct str stub_figures(struct str body)
{
        static const char word[] = "output: ";
        next_line(&body);
        struct str line = next_line(&body);
        const char *at = memmem(line.p, line.n, word, sizeof(word) - 1);

        if (at == NULL)
                return STR("");
        at += sizeof(word) - 1;
        struct str rest = str_span(at, (size_t)(line.p + line.n - at));
        const char *gap = memmem(rest.p, rest.n, "   ", 3);
        return gap ? str_span(rest.p, (size_t)(gap - rest.p)) : rest;
}

static void put_label(struct transcript *t, struct str line)
{
        struct out *o = &t->c->out;

        out_style(o, "2");
        out_puts(o, BAR);
        wrap_one_line(o, line, t->width > 8 ? t->width - 8 : 12);
        out_plain(o);
        out_puts(o, "\n");
}

/* Bytes of a section of a stub: up to the next one, or to the last line. */
static size_t section_length(struct str rest)
{
        struct str look = rest;

        while (look.n > 0 && !str_starts(look, "--- ") && !str_starts(look, "More: "))
                next_line(&look);
        return rest.n - look.n;
}

/* Only the last `rows` lines: of a tail, the end is what matters. */
static struct str last_rows(struct str s, size_t rows)
{
        size_t at = s.n;

        while (at > 0 && s.p[at - 1] == '\n')
                at--;
        for (; at > 0; at--) {
                if (s.p[at - 1] == '\n' && --rows == 0)
                        break;
        }
        return str_span(s.p + at, s.n - at);
}

/* A stub for a person: some rows of each of its sections, the errors in red. */
static void put_stub(struct transcript *t, struct str body)
{
        struct wrap w = {&t->c->out, t->width, BAR, "2", NULL, false, true, SECTION_ROWS};
        struct str rest = body;

        next_line(&rest);
        next_line(&rest);
        while (rest.n > 0) {
                struct str line = next_line(&rest);
                if (str_starts(line, "More: "))
                        break;
                if (!str_starts(line, "--- "))
                        continue;
                struct str section = str_span(rest.p, section_length(rest));
                rest = str_span(rest.p + section.n, rest.n - section.n);
                put_label(t, line);
                if (str_starts(line, "--- tail"))
                        section = last_rows(section, SECTION_ROWS);
                w.style = str_starts(line, "--- errors") ? "31" : NULL;
                put_left(t, "│", wrap_put(&w, section));
        }
}

static void put_way_back(struct transcript_entry *e)
{
        struct out *o = &e->t->c->out;
        struct buf b;

        buf_init(&b, 0);
        buf_printf(&b, "steno context read %s ", steno_conv_id(e->t->c->conv));
        buf_put_str(&b, e->ref);
        out_style(o, "2");
        out_puts(o, INDENT "╰ whole: ");
        wrap_one_line(o, buf_str(&b), 0);
        out_plain(o);
        out_puts(o, "\n");
        buf_release(&b);
}

static void result_details(struct buf *b, const struct piece *p, struct str figures)
{
        if (p->ended)
                buf_printf(b, "%s · ", p->ended);
        if (p->duration >= 0) {
                term_duration(b, p->duration);
                buf_puts(b, " · ");
        }
        if (figures.n > 0)
                buf_put_str(b, figures);
        else
                text_put_size(b, p->body.n);
        if (p->id.n > 0) {
                buf_puts(b, " · ");
                buf_put_str(b, p->id);
        }
}

static void put_result_heading(
    struct transcript_entry *e, const struct piece *p, struct str figures)
{
        struct transcript *t = e->t;
        struct out *o = &t->c->out;
        struct buf name, details;

        buf_init(&name, 0);
        buf_init(&details, 0);
        if (p->server.n > 0) {
                buf_put_str(&name, p->server);
                buf_putc(&name, '/');
        }
        buf_put_str(&name, p->name.n > 0 ? p->name : name_of_call(t, p->id));
        result_details(&details, p, figures);
        if (!e->heading_done) {
                transcript_row(t, e->r, p->failed ? "1;31" : "1;33", p->failed ? "✗ " : "✓ ",
                    buf_str(&name), buf_str(&details));
        } else {
                out_puts(o, INDENT);
                out_style(o, p->failed ? "1;31" : "1;33");
                out_puts(o, p->failed ? "✗ " : "✓ ");
                wrap_one_line(o, buf_str(&name), 40);
                out_plain(o);
                out_style(o, "2");
                out_puts(o, "  ");
                wrap_one_line(o, buf_str(&details), 60);
                out_plain(o);
                out_puts(o, "\n");
        }
        buf_release(&details);
        buf_release(&name);
}

static void put_result(struct transcript_entry *e, const struct piece *p)
{
        struct transcript *t = e->t;
        bool stub = str_starts(p->body, "[INCOMPLETE: ");
        struct wrap w = {&t->c->out, t->width, BAR, "2", p->failed ? "31" : NULL, false, !p->failed,
            t->full ? 0 : RESULT_ROWS};

        put_result_heading(e, p, stub ? stub_figures(p->body) : STR(""));
        if (stub && !t->full)
                put_stub(t, p->body);
        else
                put_left(t, e->ref.n > 0 ? "│" : "╰", wrap_put(&w, p->body));
        if (e->ref.n > 0)
                put_way_back(e);
}

static void put_error(struct transcript_entry *e, const struct piece *p)
{
        struct out *o = &e->t->c->out;
        struct wrap w = {o, e->t->width, INDENT "  ", NULL, "31", true, false, 0};

        out_style(o, "1;31");
        out_puts(o, INDENT "✗ ");
        wrap_one_line(o, p->name.n > 0 ? p->name : STR("error"), 40);
        out_plain(o);
        out_puts(o, "\n");
        wrap_put(&w, p->body);
}

void transcript_piece(void *ctx, const struct piece *p)
{
        struct transcript_entry *e = ctx;
        struct out *o = &e->t->c->out;

        switch (p->kind) {
        case PIECE_TEXT:
        case PIECE_THINKING:
                put_prose(e, p);
                break;
        case PIECE_CALL:
                put_call(e, p);
                break;
        case PIECE_RESULT:
                put_result(e, p);
                break;
        case PIECE_ERROR:
                put_error(e, p);
                break;
        case PIECE_MEDIA:
                out_style(o, "2");
                out_puts(o, INDENT "[");
                wrap_one_line(o, p->name, 60);
                out_puts(o, "]");
                out_plain(o);
                out_puts(o, "\n");
                break;
        }
}
