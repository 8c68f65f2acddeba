/*
 * grep_play.h - grep over a text in memory, read in blocks of any size.
 */
#ifndef OUTPUT_GREP_PLAY_H
#define OUTPUT_GREP_PLAY_H

#include <string.h>

#include "output/grep.h"

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
        return grep_run(&source, opt, out, err);
}

/* The same with the text as memory. */
static inline int play_grep(const char *p, size_t n, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err)
{
        struct map map = {.p = p, .n = n};
        struct grep_source source = {.file = {.size = n}, .map = &map};
        return grep_run(&source, opt, out, err);
}

#endif
