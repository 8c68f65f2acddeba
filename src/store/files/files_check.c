/* files_check.c - see files_check.h */
#include "store/files/files_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/files/files_check_work.h"

enum check_state files_check_repaired(const struct check *k, bool could)
{
        return !k->repair ? CHECK_REPAIRABLE : could ? CHECK_REPAIRED : CHECK_STAYS;
}

int files_check_wrote(struct check *k, int rc)
{
        if (rc != STENO_EDENIED && rc != STENO_EFULL)
                return rc;
        k->refused = *k->err;
        k->repair = false;
        return 0;
}

int files_check_tell(struct check *k, uint64_t seq, enum check_state state, const char *fmt, ...)
{
        char what[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        return k->each(k->ctx, &(struct check_finding){.seq = seq,
                                   .what = what,
                                   .repaired = state == CHECK_REPAIRED,
                                   .repairable = state == CHECK_REPAIRABLE});
}

/* What cannot be looked at is a finding, and the rest is looked at all the same. A conversation
 * that was removed meanwhile, and a caller who wants no more, end it. */
static int go_on(struct check *k, int rc)
{
        if (rc >= 0 || rc == STENO_ENOMEM || rc == STENO_EINTERRUPTED || rc == STENO_ENOTFOUND)
                return rc;
        return files_check_tell(k, 0, false, "it cannot be checked: %s", k->err->msg);
}

int files_check_conv(
    struct files_conv *conv, bool repair, check_fn each, void *ctx, struct steno_error *err)
{
        static int (*const PARTS[])(struct check *) = {files_check_meta, files_check_ids_file,
            files_check_artifacts, files_check_log, files_check_runs};
        struct steno_error why = {0};
        struct check k = {.conv = conv,
            .fs = conv->store->env->fs,
            .repair = repair,
            .each = each,
            .ctx = ctx,
            .err = err ? err : &why};
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < sizeof PARTS / sizeof *PARTS; i++)
                rc = go_on(&k, PARTS[i](&k));
        if (rc == 0 && k.refused.code) {
                rc = k.refused.code;
                *k.err = k.refused;
        }
        free(k.artifacts);
        if (k.planned)
                purge_plan_release(&k.plan);
        return rc;
}
