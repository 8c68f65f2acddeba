/*
 * callview.c - see callview.h.
 */
#include "cli/callview.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/term.h"
#include "exec/exec_args.h"

#define BAR "  │ "
#define BROKEN_BAR "  ┆ "
#define BAR_COLUMNS 4
#define BLANK_ROWS 2 /* more of them are counted, not shown */
#define ROWS 5
#define SECTION_ROWS 2

/* ---- calls ---- */

static bool is_plain(const char *word)
{
        static const char plain[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";
        return word[0] && word[strspn(word, plain)] == '\0';
}

static bool has_controls(const char *word)
{
        for (; *word; word++)
                if ((unsigned char)*word < 0x20 || *word == 0x7f)
                        return true;
        return false;
}

/* A word in the shell's $'...' quotes: characters that cannot be seen are written as escapes. */
static void put_spelled(struct buf *b, const char *word)
{
        buf_puts(b, "$'");
        for (; *word; word++) {
                unsigned char ch = (unsigned char)*word;
                if (ch == '\n')
                        buf_puts(b, "\\n");
                else if (ch == '\t')
                        buf_puts(b, "\\t");
                else if (ch < 0x20 || ch == 0x7f)
                        buf_printf(b, "\\x%02x", ch);
                else if (ch == '\'' || ch == '\\')
                        buf_printf(b, "\\%c", ch);
                else
                        buf_putc(b, (char)ch);
        }
        buf_putc(b, '\'');
}

static void put_word(struct buf *b, const char *word)
{
        if (is_plain(word)) {
                buf_puts(b, word);
                return;
        }
        if (has_controls(word)) {
                put_spelled(b, word);
                return;
        }
        buf_putc(b, '\'');
        for (; *word; word++) {
                if (*word == '\'')
                        buf_puts(b, "'\\''");
                else
                        buf_putc(b, *word);
        }
        buf_putc(b, '\'');
}

static void put_command(struct buf *b, const struct exec_args *a)
{
        for (size_t i = 0; a->argv && a->argv[i]; i++) {
                if (i)
                        buf_putc(b, ' ');
                put_word(b, a->argv[i]);
        }
        if (a->shell)
                buf_puts(b, a->shell);
}

void callview_put_word(struct buf *b, const char *word)
{
        struct buf raw;
        buf_init(&raw, 0);
        put_word(&raw, word);
        text_for_decision(b, buf_str(&raw));
        buf_release(&raw);
}

void callview_put(struct buf *b, const char *tool, struct str args)
{
        struct exec_args a;
        struct buf raw;
        buf_init(&raw, 0);
        if (strcmp(tool, "execute_command") == 0 && exec_args_parse(&a, args, NULL) == 0) {
                put_command(&raw, &a);
                exec_args_release(&a);
        } else {
                buf_put_str(&raw, args);
        }
        text_for_decision(b, buf_str(&raw));
        buf_release(&raw);
}

static struct str next_line(struct str *rest)
{
        const char *lf = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
        size_t n = lf ? (size_t)(lf - rest->p) : rest->n;
        struct str line = str_span(rest->p, n);
        n += lf != NULL;
        *rest = str_span(rest->p + n, rest->n - n);
        return line;
}

/* Puts the first line of a text that is safe for a terminal already. */
static void put_fitted(struct buf *b, struct str safe, unsigned columns)
{
        struct str rest = safe;
        struct str line = next_line(&rest);
        bool cut = rest.n > 0;
        size_t fit = term_fit(line, columns);
        if (fit < line.n || cut)
                fit = term_fit(line, columns > 1 ? columns - 1 : 1);
        buf_put(b, line.p, fit);
        if (fit < line.n || cut)
                buf_puts(b, "…");
}

void callview_put_row(struct buf *b, const char *tool, struct str args, unsigned columns)
{
        struct buf safe;
        buf_init(&safe, 0);
        callview_put(&safe, tool, args);
        put_fitted(b, buf_str(&safe), columns);
        buf_release(&safe);
}

/* Rows of a call that is asked about. Each row that belongs to it begins with a bar, and one that
 * goes on where the terminal's width ended the row before it begins with a broken bar: nothing that
 * a model writes can look like the end of the call. */
struct whole {
        struct buf *b;
        unsigned columns;
        uint64_t rows;
        uint64_t blank; /* rows of nothing that wait to be counted */
        const char *blank_bars[BLANK_ROWS];
};

static bool is_blank(struct str row)
{
        for (size_t i = 0; i < row.n; i++)
                if (row.p[i] != ' ' && row.p[i] != '\t')
                        return false;
        return true;
}

static void put_blanks(struct whole *w)
{
        if (w->blank > BLANK_ROWS)
                buf_printf(w->b, "  ⋮ %llu blank rows\n", (unsigned long long)w->blank);
        for (uint64_t i = 0; w->blank <= BLANK_ROWS && i < w->blank; i++)
                buf_printf(w->b, "%s\n", w->blank_bars[i]);
        w->blank = 0;
}

static void put_whole_row(struct whole *w, const char *bar, struct str row)
{
        w->rows++;
        if (is_blank(row)) {
                if (w->blank < BLANK_ROWS)
                        w->blank_bars[w->blank] = bar;
                w->blank++;
                return;
        }
        put_blanks(w);
        buf_puts(w->b, bar);
        buf_put_str(w->b, row);
        buf_putc(w->b, '\n');
}

/* Every line, in rows that fit: the terminal itself never wraps one. */
static void put_barred(struct whole *w, struct str safe)
{
        do {
                struct str line = next_line(&safe);
                const char *bar = BAR;
                do {
                        size_t n = term_fit(line, w->columns - BAR_COLUMNS);
                        if (n == 0 || n > line.n)
                                n = line.n;
                        put_whole_row(w, bar, str_span(line.p, n));
                        line = str_span(line.p + n, line.n - n);
                        bar = BROKEN_BAR;
                } while (line.n > 0);
        } while (safe.n > 0);
        put_blanks(w);
}

/* Where, how, and how long a command may run. */
static void put_circumstances(struct whole *w, struct str args)
{
        struct exec_args a;
        struct buf raw, safe;
        if (exec_args_parse(&a, args, NULL) != 0)
                return;
        if (a.shell)
                buf_puts(w->b, "  as a script of /bin/sh\n");
        if (a.directory) {
                buf_init(&raw, 0);
                buf_init(&safe, 0);
                put_word(&raw, a.directory);
                text_for_decision(&safe, buf_str(&raw));
                buf_puts(w->b, "  in the directory\n");
                put_barred(w, buf_str(&safe));
                buf_release(&raw);
                buf_release(&safe);
        }
        if (a.seconds)
                buf_printf(w->b, "  for at most %llu s\n", (unsigned long long)a.seconds);
        exec_args_release(&a);
}

void callview_put_whole(struct buf *b, const char *tool, struct str args, unsigned columns)
{
        struct buf safe;
        /* Of a narrow terminal each row is as wide as it is, however many that makes. A character
         * may take two columns. */
        unsigned least = BAR_COLUMNS + 2;
        struct whole w = {.b = b, .columns = !columns ? 80 : columns > least ? columns : least};
        buf_init(&safe, 0);
        callview_put(&safe, tool, args);
        put_barred(&w, buf_str(&safe));
        buf_release(&safe);
        if (strcmp(tool, "execute_command") == 0)
                put_circumstances(&w, args);
        if (w.rows > 1)
                buf_printf(b, "  (%llu rows in all)\n", (unsigned long long)w.rows);
}

/* ---- results ---- */

struct rows {
        struct buf *b;
        unsigned columns;
        const char *sgr;
};

static void put_row(const struct rows *r, struct str line)
{
        struct buf safe;
        buf_init(&safe, 0);
        text_for_terminal(&safe, line, false);
        if (r->sgr)
                buf_printf(r->b, "\033[%sm", r->sgr);
        buf_puts(r->b, BAR);
        put_fitted(
            r->b, buf_str(&safe), r->columns > 20 + BAR_COLUMNS ? r->columns - BAR_COLUMNS : 20);
        if (r->sgr)
                buf_puts(r->b, "\033[0m");
        buf_putc(r->b, '\n');
        buf_release(&safe);
}

static void put_more(const struct rows *r, uint64_t n, const char *what)
{
        struct buf words;
        if (n == 0)
                return;
        buf_init(&words, 0);
        buf_puts(&words, "… ");
        text_put_grouped(&words, n);
        buf_printf(&words, " more %s%s", what, n == 1 ? "" : strcmp(what, "match") ? "s" : "es");
        put_row(r, buf_str(&words));
        buf_release(&words);
}

static void put_lines(const struct rows *r, struct str text)
{
        uint64_t left = 0;
        for (unsigned i = 0; text.n > 0; i++) {
                struct str line = next_line(&text);
                if (i < ROWS)
                        put_row(r, line);
                else
                        left++;
        }
        put_more(r, left, "line");
}

/* Bytes up to the next section of a stub. */
static size_t section_length(struct str rest)
{
        struct str look = rest;
        while (look.n > 0 && !str_starts(look, "--- ") && !str_starts(look, "More: "))
                next_line(&look);
        return rest.n - look.n;
}

static struct str last_lines(struct str s, unsigned n)
{
        size_t at = s.n;
        while (at > 0 && s.p[at - 1] == '\n')
                at--;
        for (; at > 0; at--)
                if (s.p[at - 1] == '\n' && --n == 0)
                        break;
        return str_span(s.p + at, s.n - at);
}

static void put_stub(const struct rows *r, struct str text)
{
        put_row(r, next_line(&text));
        while (text.n > 0) {
                struct str line = next_line(&text);
                if (!str_starts(line, "--- "))
                        continue;
                struct str section = str_span(text.p, section_length(text));
                text = str_span(text.p + section.n, text.n - section.n);
                put_row(r, line);
                if (str_starts(line, "--- tail"))
                        section = last_lines(section, SECTION_ROWS);
                for (unsigned i = 0; i < SECTION_ROWS && section.n > 0; i++)
                        put_row(r, next_line(&section));
        }
}

static void put_match(const struct rows *r, const struct json *j, json_ref match)
{
        struct buf line;
        uint64_t number = 0;
        buf_init(&line, 0);
        json_u64(j, json_get(j, match, "line"), &number);
        buf_puts(&line, "line ");
        text_put_grouped(&line, number);
        buf_puts(&line, ": ");
        json_string(j, json_get(j, match, "content"), &line, NULL);
        put_row(r, buf_str(&line));
        buf_release(&line);
}

/* What context_grep answers; false when it is something else. */
static bool put_matches(const struct rows *r, struct str text)
{
        struct json j;
        json_init(&j);
        bool is = text.n > 0 && text.p[0] == '{' &&
                  json_parse(&j, text.p, text.n, NULL, NULL) == 0 &&
                  json_type(&j, json_get(&j, 0, "matches")) == JSON_ARRAY;
        if (is) {
                json_ref all = json_get(&j, 0, "matches");
                unsigned shown = 0;
                for (json_ref m = json_child(&j, all); m != JSON_NONE && shown < ROWS;
                     m = json_next(&j, all, m), shown++)
                        put_match(r, &j, m);
                put_more(r, json_count(&j, all) - shown, "match");
                if (shown == 0)
                        put_row(r, STR("no match"));
        }
        json_release(&j);
        return is;
}

void callview_put_result(struct buf *b, struct str content, unsigned columns, const char *sgr)
{
        struct rows r = {b, columns, sgr};
        while (content.n > 0 && content.p[content.n - 1] == '\n')
                content.n--;
        if (str_starts(content, "[INCOMPLETE: "))
                put_stub(&r, content);
        else if (!put_matches(&r, content))
                put_lines(&r, content);
}
