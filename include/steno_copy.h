/*
 * steno_copy.h - a store into another one, and a store of an earlier version.
 */
#ifndef STENO_COPY_H
#define STENO_COPY_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_copy_options {
        size_t size;
        const char *project; /* NULL: all, and what belongs to the store */
        steno_progress progress;
        void *progress_ctx;
};

/*
 * Copies conversations from one store into another, of whatever kinds the two are: records,
 * outputs, journals and seals, byte for byte; each is there whole or not at all, and is compared
 * after it has arrived. What the target has already is left alone; one that has only gone on at the
 * source is replaced, and the older goes to the trash; one that differs otherwise is left as it is.
 * Without a project, tokens and the settings of projects are copied too, where the target has none.
 * Disks are copied file by file, with new times; of two versions of a file that of the source
 * stays. What is in the trash goes to the target's, with the time of the copy; what was removed
 * since an earlier copy is removed there. The log of seals is copied where the target has none.
 * Stopped, it is done again and goes on. *report (may be NULL):
 * {"copied","replaced","unchanged","conflicts":[{"project","id"}],"records","bytes","files",
 * "trashed"}; `files` counts those of disks, and `trashed` what went to the target's trash.
 */
STENO_API int steno_copy(struct steno_store *from, struct steno_store *to,
    const struct steno_copy_options *opt, char **report, struct steno_error *err);
/* Brings a store of an earlier version up to date, all or nothing; one that is stays as it is.
 * *report (may be NULL): {"from","to"}, versions. STENO_EUNSUPPORTED: its kind has no versions, or
 * it is of a later one. */
STENO_API int steno_migrate(const char *store_url, char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
