/* check.c - see check.h */
#include "store/files/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/files/check_work.h"

int check_tell(struct check *k, uint64_t seq, bool repaired, const char *fmt, ...)
{
        char what[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        return k->each(
            k->ctx, &(struct check_finding){.seq = seq, .what = what, .repaired = repaired});
}

int check_conv(
    struct files_conv *conv, bool repair, check_fn each, void *ctx, struct steno_error *err)
{
        struct check k = {.conv = conv,
            .fs = conv->store->env->fs,
            .repair = repair,
            .each = each,
            .ctx = ctx,
            .err = err};
        int rc = check_meta(&k);
        if (rc == 0)
                rc = check_artifacts(&k);
        if (rc == 0)
                rc = check_log(&k);
        if (rc == 0)
                rc = check_runs(&k);
        free(k.artifacts);
        if (k.planned)
                purge_plan_release(&k.plan);
        return rc;
}
