/*
 * grep_play.h - grep over a text in memory, read in blocks of any size.
 *
 * What does not say which engines it wants gets those of the program: tests are built twice.
 */
#ifndef OUTPUT_GREP_PLAY_H
#define OUTPUT_GREP_PLAY_H

#include <string.h>

#include "base/buf.h"
#include "output/grep.h"

#ifndef PLAY_ENGINES
#define PLAY_ENGINES GREP_WITH_SIEVE
#endif

static inline int play_read(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        (void)err;
        memcpy(p, (const char *)ctx + at, n);
        return 0;
}

static inline int play_grep_blocks(struct str text, size_t block, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err)
{
        struct grep_source source = {{play_read, (void *)(uintptr_t)text.p, text.n}, block, NULL};
        struct grep_options with = *opt;
        with.engines = opt->engines ? opt->engines : PLAY_ENGINES;
        return grep_run(&source, &with, out, err);
}

static inline int play_grep(const char *p, size_t n, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err)
{
        return play_grep_blocks(str_span(p, n), 0, opt, out, err);
}

/* ---- all that a result says ---- */

static inline void play_put_line(struct buf *out, const struct grep_line *l)
{
        buf_printf(out, "[%llu %d%d %.*s]", (unsigned long long)l->byte_offset, l->cut_before,
            l->cut_after, (int)l->text.n, l->text.p);
}

static inline void play_describe(const struct grep_result *r, struct buf *out)
{
        buf_clear(out);
        buf_printf(out, "%llu %llu %d %llu\n", (unsigned long long)r->total_matches,
            (unsigned long long)r->matches_before, r->truncated, (unsigned long long)r->next_line);
        for (size_t i = 0; i < r->count; i++) {
                const struct grep_match *m = &r->matches[i];
                buf_printf(out, "%llu %llu+%llu ", (unsigned long long)m->line,
                    (unsigned long long)m->match_offset, (unsigned long long)m->match_size);
                play_put_line(out, &m->content);
                for (uint32_t k = 0; k < m->before_count; k++)
                        play_put_line(out, &m->before[k]);
                buf_putc(out, '/');
                for (uint32_t k = 0; k < m->after_count; k++)
                        play_put_line(out, &m->after[k]);
                buf_putc(out, '\n');
        }
}

#endif
