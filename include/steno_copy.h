/*
 * steno_copy.h - copies one store into another, and migrates a store of an earlier version.
 */
#ifndef STENO_COPY_H
#define STENO_COPY_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_copy_options {
        size_t size;
        const char *project; /* NULL: all projects, and what belongs to the store itself */
        steno_progress progress;
        void *progress_ctx;
};

/*
 * Copies conversations from one store into another: records, outputs, journals and seals, byte for
 * byte. The two stores may be of different kinds. Each conversation arrives completely or not at
 * all, and is compared after it has arrived. A conversation that the target already has is left
 * alone. Where the source has more records behind the same ones, the target's copy goes to the
 * trash and is replaced. Where the two differ otherwise, the target's is left as it is, and is
 * named in "conflicts". Without a project, tokens and the settings of projects are copied too,
 * where the target has none. Disks are copied file by file, with new times; where the versions of a
 * file differ, the source's wins. Conversations in the trash go to the target's trash, with the
 * time of the copy. What was removed from the source since an earlier copy is removed from the
 * target. The log of seals is copied where the target has none. A copy that was stopped can be
 * called again and continues. *report (may be NULL):
 * {"copied","replaced","unchanged","conflicts":[{"project","id"}],"records","bytes","files",
 * "trashed"}; `files` counts the files of disks, and `trashed` the conversations that went to the
 * target's trash.
 */
STENO_API int steno_copy(struct steno_store *from, struct steno_store *to,
    const struct steno_copy_options *opt, char **report, struct steno_error *err);
/* Migrates a store of an earlier version to the present one, completely or not at all. A store of
 * the present version is left as it is. *report (may be NULL): {"from","to"}, the versions.
 * STENO_EUNSUPPORTED: this kind of store has no versions, or the store has a later version. */
STENO_API int steno_migrate(const char *store_url, char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
