/* purge.c - see purge.h */
#include "store/files/purge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/purge_plan.h"
#include "store/files/rewrite.h"
#include "store/files/run.h"
#include "store/files/seal.h"

/* ---- what they refer to ---- */

static int drop_artifacts(struct files_conv *c, const struct purge_plan *plan,
    struct purge_result *out, struct steno_error *err)
{
        for (size_t i = 0; i < plan->refs.count; i++) {
                struct artifact_info info;
                int rc = artifact_find(c, plan->refs.list[i], &info, err);
                if (rc == STENO_ENOTFOUND)
                        continue;
                bool there = rc == 0 && info.state != ARTIFACT_DELETED;
                if (there)
                        rc = artifact_delete(c, info.id, "purge", err);
                if (rc)
                        return rc;
                out->bytes += there ? info.size : 0;
        }
        return 0;
}

static int drop_parts(struct files_conv *c, const struct purge_plan *plan, struct purge_result *out,
    struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        char name[PART_NAME];
        if (!plan->parts.count)
                return 0;
        int dir = fs->open(fs, c->dir, "artifacts/parts", O_RDONLY | O_DIRECTORY, 0);
        int rc = dir == -ENOENT ? 0 : dir < 0 ? dir : 0;
        for (size_t i = 0; dir >= 0 && rc == 0 && i < plan->parts.count; i++) {
                struct str part = plan->parts.list[i];
                snprintf(name, sizeof name, "%.*s", (int)part.n, part.p);
                if (!id_is_plain(part) || fs->stat(fs, dir, name, &st))
                        continue;
                rc = fs->unlink(fs, dir, name, 0);
                out->bytes += rc == 0 ? (uint64_t)st.st_size : 0;
        }
        if (dir >= 0 && rc == 0)
                rc = fs->fsync(fs, dir);
        if (dir >= 0)
                fs->close(fs, dir);
        return rc ? error_sys(err, rc, "removing parts of purged messages") : 0;
}

static int blank_runs(struct files_conv *c, const struct purge_plan *plan, struct purge_result *out,
    struct steno_error *err)
{
        char name[PLAIN_NAME_MAX + 1];
        for (size_t i = 0; i < plan->runs.count; i++) {
                if (id_file_name(plan->runs.list[i], name))
                        return error_nomem(err);
                int rc = run_blank(c, name, &out->bytes, err);
                if (rc < 0 && rc != STENO_ENOTFOUND)
                        return rc;
        }
        return 0;
}

int purge_conv(struct files_conv *c, struct purge_result *out, struct steno_error *err)
{
        struct purge_plan plan = {0};
        struct purge_result result = {0};
        uint64_t smaller = 0;
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        rc = conv_refresh(c, err);
        if (rc == 0)
                rc = purge_plan_make(c, &plan, err);
        result.damaged = plan.damaged;
        if (rc == 0)
                rc = blank_runs(c, &plan, &result, err);
        if (rc == 0 && plan.count) {
                rc = recent_note(c, err);
                if (rc == 0) /* E4 */
                        rc = seal_note_purge(c, plan.seqs, plan.count, err);
                if (rc == 0)
                        rc = drop_artifacts(c, &plan, &result, err);
                if (rc == 0)
                        rc = drop_parts(c, &plan, &result, err);
                if (rc == 0)
                        rc = rewrite_purged(c, &plan, &smaller, err);
                result.messages = plan.count;
                result.bytes += smaller;
        }
        if (plan.count)
                quota_recount(c);
        purge_plan_release(&plan);
        files_conv_unlock(c);
        if (rc == 0)
                *out = result;
        return rc;
}
