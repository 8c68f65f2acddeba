/*
 * grep_pcre2.c - implements grep_engine.h with PCRE2: compiled to machine code if possible, with
 * limits on the cost of a starting point.
 *
 * Invalid UTF-8 in a text matches nothing and is never undefined behaviour: patterns are compiled
 * with PCRE2_MATCH_INVALID_UTF.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "output/grep_engine.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "output/grep.h"

/* PCRE2 limits the steps of each starting point. A light call may have 16 Ki starting points, a
 * hard one 8: both take well under a second even if each uses all its steps. */
#define LIGHT_STEPS 20000
#define HARD_STEPS 4000000
/*
 * A back-reference compares up to the whole text in one step, and machine code does not count the
 * steps of simple repeats. So a pattern with a back-reference is interpreted, which counts every
 * step. It gets fewer steps and fewer starting points if the text is longer. This limits the number
 * of bytes that one call may read.
 */
#define STEP_COST 64 /* the cost of a step that compares nothing */
#define LIGHT_WORK ((size_t)20 * 1000 * 1000)
#define LIGHT_CALL_WORK ((size_t)100 * 1000 * 1000)
#define HARD_WORK ((size_t)300 * 1000 * 1000)
#define REFERRING_STEPS_LEAST 100
#define HEAP_KIB (16 * 1024)
#define STACK_MAX ((size_t)1024 * 1024)

struct grep_code {
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *light;
        pcre2_match_context *hard;
        pcre2_jit_stack *stack;
        bool refers_back;
        bool direct;      /* the machine code can be called without pcre2_match and its checks */
        size_t byte_cost; /* the cost of comparing one byte */
};

static void code_free(struct grep_code *c)
{
        if (!c)
                return;
        pcre2_match_data_free(c->data);
        pcre2_match_context_free(c->hard);
        pcre2_match_context_free(c->light);
        pcre2_jit_stack_free(c->stack);
        pcre2_code_free(c->code);
        free(c);
}

static int bad_pattern(int code, size_t at, struct steno_error *err)
{
        PCRE2_UCHAR reason[160];
        pcre2_get_error_message(code, reason, sizeof(reason));
        if (code == PCRE2_ERROR_PATTERN_TOO_LARGE ||
            code == PCRE2_ERROR_PARENTHESES_NEST_TOO_DEEP ||
            code == PCRE2_ERROR_PATTERN_TOO_COMPLICATED)
                return error_set(err, STENO_ELIMIT, "pattern too costly: %s", (char *)reason);
        if (code == PCRE2_ERROR_HEAP_FAILED)
                return error_nomem(err);
        return error_set(err, STENO_EPROTO, "bad pattern at byte %zu: %s", at, (char *)reason);
}

static pcre2_match_context *context(pcre2_jit_stack *stack, uint32_t steps)
{
        pcre2_match_context *m = pcre2_match_context_create(NULL);
        if (!m)
                return NULL;
        pcre2_set_match_limit(m, steps);
        pcre2_set_depth_limit(m, steps);
        pcre2_set_heap_limit(m, HEAP_KIB);
        pcre2_jit_stack_assign(m, NULL, stack);
        return m;
}

static int code_compile(struct str pattern, const struct grep_mode *mode, struct grep_code **out,
    struct steno_error *err)
{
        uint32_t options = PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C |
                           PCRE2_USE_OFFSET_LIMIT;
        int code = 0;
        PCRE2_SIZE at = 0;
        struct grep_code *c = calloc(1, sizeof(*c));
        pcre2_compile_context *how = pcre2_compile_context_create(NULL);
        int rc = STENO_ENOMEM;
        if (!c || !how)
                goto out;
        pcre2_set_newline(how, PCRE2_NEWLINE_LF);
        if (mode->utf8)
                options |= PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
        if (!mode->case_sensitive)
                options |= PCRE2_CASELESS;
        c->code = pcre2_compile(
            (PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n, options, &code, &at, how);
        if (!c->code) {
                rc = bad_pattern(code, at, err);
                goto out;
        }
        uint32_t references = 0;
        pcre2_pattern_info(c->code, PCRE2_INFO_BACKREFMAX, &references);
        c->refers_back = references > 0;
        c->byte_cost = !mode->case_sensitive && mode->utf8 ? 8 : 1;
        /* If this fails, the interpreter is used, with the same limits. */
        if (!c->refers_back)
                c->direct = pcre2_jit_compile(c->code, PCRE2_JIT_COMPLETE) == 0 && !mode->utf8;
        c->data = pcre2_match_data_create(1, NULL);
        c->stack = pcre2_jit_stack_create(32 * 1024, STACK_MAX, NULL);
        c->light = context(c->stack, LIGHT_STEPS);
        c->hard = context(c->stack, HARD_STEPS);
        if (!c->data || !c->light || !c->hard)
                goto out;
        *out = c;
        c = NULL;
        rc = 0;
out:
        pcre2_compile_context_free(how);
        code_free(c);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

static size_t step_work(const struct grep_code *c, size_t n)
{
        return STEP_COST + c->byte_cost * n;
}

/* Returns how many steps a starting point may take in `n` bytes of text. */
static uint32_t steps(const struct grep_code *c, size_t n, enum grep_effort effort)
{
        bool hard = effort == GREP_HARD;
        size_t most = hard ? HARD_STEPS : LIGHT_STEPS;
        if (!c->refers_back)
                return (uint32_t)most;
        size_t count = (hard ? HARD_WORK : LIGHT_WORK) / step_work(c, n);
        if (count < REFERRING_STEPS_LEAST)
                count = REFERRING_STEPS_LEAST;
        return (uint32_t)(count < most ? count : most);
}

static size_t code_points(const struct grep_code *c, size_t n, enum grep_effort effort)
{
        if (!c->refers_back)
                return SIZE_MAX;
        size_t count = LIGHT_CALL_WORK / (step_work(c, n) * steps(c, n, effort));
        return count ? count : 1;
}

static int code_next(struct grep_code *c, const struct grep_subject *s, size_t *start, size_t *end,
    struct steno_error *err)
{
        pcre2_match_context *m = s->effort == GREP_HARD ? c->hard : c->light;
        uint32_t options = (s->cut_before ? PCRE2_NOTBOL : 0) | (s->cut_after ? PCRE2_NOTEOL : 0);
        pcre2_set_match_limit(m, steps(c, s->n, s->effort));
        pcre2_set_offset_limit(m, s->stop > s->n ? PCRE2_UNSET : s->stop - 1);
        int rc = (c->direct ? pcre2_jit_match : pcre2_match)(
            c->code, (PCRE2_SPTR)s->p, s->n, s->from, options, c->data, m);
        if (rc >= 0) {
                PCRE2_SIZE *at = pcre2_get_ovector_pointer(c->data);
                *start = at[0];
                /* With \K in a lookahead, a match can end before it starts. */
                *end = at[1] < at[0] ? at[0] : at[1];
                return 1;
        }
        switch (rc) {
        case PCRE2_ERROR_NOMATCH:
                return 0;
        case PCRE2_ERROR_MATCHLIMIT:
        case PCRE2_ERROR_DEPTHLIMIT:
        case PCRE2_ERROR_HEAPLIMIT:
        case PCRE2_ERROR_JIT_STACKLIMIT:
        case PCRE2_ERROR_RECURSELOOP:
                return error_set(err, STENO_ELIMIT, "pattern too costly: too many ways to match");
        case PCRE2_ERROR_NOMEMORY:
                return error_nomem(err);
        default:
                return error_set(err, STENO_EPROTO, "bad pattern: matching failed (%d)", rc);
        }
}

static const struct grep_engine engine = {code_compile, code_next, code_points, code_free};

const struct grep_engine *grep_pcre2(void)
{
        return &engine;
}
