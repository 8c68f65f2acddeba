/*
 * wrap.c - see wrap.h. A line is made safe first and laid out then, so that what is measured is
 * what will be seen.
 */
#include "cli/wrap.h"

#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "cli/term.h"

#define TAB_COLUMNS 4
#define MIN_COLUMNS 10

/* Length of a colour sequence at the start of `s`, 0 when there is none. */
static size_t colour_length(struct str s)
{
        size_t i = 2;

        if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
                return 0;
        while (i < s.n && s.p[i] != 'm' && (unsigned char)s.p[i] < 0x40)
                i++;
        return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

/* Bytes of the next row of a safe line: as many columns as fit, ended at a space if wanted. */
static size_t row_length(struct str line, unsigned columns, bool words)
{
        unsigned used = 0;
        size_t i = 0, after_space = 0;

        while (i < line.n) {
                struct str rest = str_span(line.p + i, line.n - i);
                size_t k = colour_length(rest);
                if (k == 0) {
                        uint32_t cp;
                        k = text_decode(rest.p, rest.n, &cp);
                        used += term_columns(str_span(rest.p, k));
                        if (used > columns)
                                break;
                        if (cp == ' ')
                                after_space = i + k;
                }
                i += k;
        }
        if (i == line.n || !words || after_space == 0)
                return i > 0 ? i : line.n;
        return after_space;
}

static void put_row(const struct wrap *w, struct str row)
{
        if (w->prefix_style != NULL)
                out_style(w->o, w->prefix_style);
        out_puts(w->o, w->prefix ? w->prefix : "");
        if (w->prefix_style != NULL)
                out_plain(w->o);
        if (w->style != NULL)
                out_style(w->o, w->style);
        while (row.n > 0 && row.p[row.n - 1] == ' ')
                row.n--;
        out_str(w->o, row);
        if (w->style != NULL || w->colours)
                out_plain(w->o);
        out_puts(w->o, "\n");
}

static void make_safe(const struct wrap *w, struct str line, struct buf *safe)
{
        struct buf flat;

        buf_clear(safe);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
                line.n--;
        if (w->o->raw) {
                buf_put_str(safe, line);
                return;
        }
        buf_init(&flat, 0);
        text_for_terminal(&flat, line, w->colours && w->o->colours);
        for (size_t i = 0; i < flat.n; i++) {
                for (unsigned k = 0; flat.p[i] == '\t' && k < TAB_COLUMNS; k++)
                        buf_putc(safe, ' ');
                if (flat.p[i] != '\t')
                        buf_putc(safe, flat.p[i]);
        }
        buf_release(&flat);
}

/* Lays out one line; the bytes of it that did not fit into *rows. */
static size_t put_line(
    const struct wrap *w, struct str line, unsigned columns, size_t *rows, struct buf *safe)
{
        size_t most = line.n;
        size_t at = 0;

        /* Of a very long line, only the part that can be shown is processed. */
        if (w->max_rows > 0 && most > *rows * columns * 4)
                most = text_floor(line.p, line.n, *rows * columns * 4);
        make_safe(w, str_span(line.p, most), safe);
        do {
                struct str rest = str_span(safe->p + at, safe->n - at);
                size_t k = row_length(rest, columns, w->words);
                put_row(w, str_span(rest.p, k));
                at += k;
                (*rows)--;
        } while (at<safe->n && * rows> 0);
        return line.n - most + (safe->n - at);
}

struct wrap_left wrap_put(const struct wrap *w, struct str text)
{
        unsigned indent = term_columns(str_of(w->prefix ? w->prefix : ""));
        unsigned columns = w->width > indent + MIN_COLUMNS ? w->width - indent : MIN_COLUMNS;
        size_t rows = w->max_rows > 0 ? w->max_rows : SIZE_MAX;
        struct wrap_left left = {0, 0};
        struct buf safe;

        buf_init(&safe, 0);
        while (text.n > 0 && text.p[text.n - 1] == '\n')
                text.n--;
        while (text.n > 0 && rows > 0 && left.bytes == 0) {
                const char *lf = memchr(text.p, '\n', text.n);
                size_t n = lf ? (size_t)(lf - text.p) : text.n;
                left.bytes += put_line(w, str_span(text.p, n), columns, &rows, &safe);
                n += lf != NULL;
                text = str_span(text.p + n, text.n - n);
        }
        left.bytes += text.n;
        for (const char *p = text.p; text.n > 0 && p != NULL;) {
                left.lines++;
                p = memchr(p, '\n', (size_t)(text.p + text.n - p));
                p = p ? p + 1 : NULL;
        }
        buf_release(&safe);
        return left;
}

void wrap_one_line(struct out *o, struct str text, unsigned columns)
{
        struct buf cell;
        size_t most = text.n < 4 * KIB ? text.n : text_floor(text.p, text.n, 4 * KIB);

        buf_init(&cell, 0);
        if (o->raw)
                buf_put_str(&cell, text);
        else
                term_cell(&cell, str_span(text.p, most), columns);
        while (cell.n > 0 && cell.p[cell.n - 1] == ' ')
                cell.n--;
        out_str(o, buf_str(&cell));
        buf_release(&cell);
}
