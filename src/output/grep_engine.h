/*
 * grep_engine.h - what grep requires of a regular expression library. For grep.c and the engines.
 */
#ifndef OUTPUT_GREP_ENGINE_H
#define OUTPUT_GREP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "steno.h"

struct grep_code;

struct grep_mode {
        bool utf8;
        bool case_sensitive;
};

/* The effort that one call may spend. */
enum grep_effort {
        GREP_LIGHT, /* for thousands of starting points at once */
        GREP_HARD,  /* for a few starting points, if GREP_LIGHT was not enough */
};

struct grep_subject {
        const char *p;
        size_t n;
        size_t from;     /* a match must begin at or behind this */
        size_t stop;     /* and before this; n + 1: no limit */
        bool cut_before; /* the line begins before p */
        bool cut_after;  /* the line continues behind p + n */
        enum grep_effort effort;
};

struct grep_engine {
        /* Compiles a pattern. 0; STENO_EPROTO with position and reason; STENO_ELIMIT;
         * STENO_ENOMEM. */
        int (*compile)(struct str pattern, const struct grep_mode *mode, struct grep_code **out,
            struct steno_error *err);
        /* Finds the first match. Lines end with LF, and `^` and `$` are the ends of a line. 1: the
         * match is [*start, *end) relative to s->p; 0: none; STENO_ELIMIT: the effort was not
         * enough; other codes as usual. */
        int (*next)(struct grep_code *code, const struct grep_subject *s, size_t *start,
            size_t *end, struct steno_error *err);
        /* Returns how many starting points one call may have in `n` bytes of text so that it
         * returns soon. SIZE_MAX: no limit. */
        size_t (*points)(const struct grep_code *code, size_t n, enum grep_effort effort);
        void (*free)(struct grep_code *code); /* accepts NULL */
};

const struct grep_engine *grep_pcre2(void);

#endif
