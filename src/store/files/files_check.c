/*
 * files_check.c - see files_check.h. The order of a check, and the small files beside the log.
 *
 * meta.json: is it there, can it be read, and does it say which conversation this is
 * (conv_names.c)? A repair writes the names where they are known; a file that cannot be read goes
 * to the quarantine first.
 */
#include "store/files/files_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/files_check_work.h"

/* ---- findings ---- */

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
        bool copied = k->copy && (state == CHECK_MISSING || state == CHECK_LOST_LAST);
        return k->each(k->ctx, &(struct check_finding){.seq = seq,
                                   .what = what,
                                   .repaired = state == CHECK_REPAIRED,
                                   .copied = copied,
                                   .lost = state >= CHECK_LOST,
                                   .note = state == CHECK_LOST_BEFORE,
                                   .repairable = state == CHECK_REPAIRABLE || copied});
}

/* ---- what stands where a file should, and is none ---- */

static enum files_check_entry look_at_entry(const struct check *k, const char *path, bool folder)
{
        struct stat st;
        if (k->fs->stat(k->fs, k->conv->dir, path, &st) ||
            (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
                return ENTRY_FINE;
        return S_ISLNK(st.st_mode) ? ENTRY_LINK : ENTRY_STAYS;
}

/* It may have become a file since it was looked at: under the lock, once more. */
static int move_aside(struct check *k, const char *path, bool folder)
{
        int rc = files_conv_lock(k->conv, k->err);
        if (rc)
                return rc;
        if (look_at_entry(k, path, folder) == ENTRY_STAYS)
                rc =
                    quarantine_entry(k->conv, path, folder ? "not a folder" : "not a file", k->err);
        files_conv_unlock(k->conv);
        return rc;
}

static int check_entry(struct check *k, const char *path, bool folder, enum files_check_entry *out)
{
        int rc = 0;
        *out = look_at_entry(k, path, folder);
        if (*out == ENTRY_FINE)
                return 0;
        if (*out == ENTRY_LINK)
                return files_check_tell(
                    k, 0, CHECK_STAYS, "%s is a symbolic link, which is not followed", path);
        if (k->repair)
                rc = files_check_wrote(k, move_aside(k, path, folder));
        if (rc == 0 && k->repair)
                *out = ENTRY_GONE;
        return rc ? rc
                  : files_check_tell(k, 0, files_check_repaired(k, true), "%s is not a %s", path,
                        folder ? "folder" : "file");
}

int files_check_entry(struct check *k, const char *path, enum files_check_entry *out)
{
        return check_entry(k, path, false, out);
}

/* `steno verify` checks what a seal says. Here its files only have to be files that can be read and
 * copied. */
int files_check_seal(struct check *k)
{
        static const char *const FILES[] = {"seal/leaves", "seal/checkpoints", "seal/purged"};
        enum files_check_entry entry;
        int rc = check_entry(k, "seal", true, &entry);
        for (size_t i = 0; rc == 0 && entry == ENTRY_FINE && i < sizeof FILES / sizeof *FILES;
             i++) {
                enum files_check_entry each;
                rc = check_entry(k, FILES[i], false, &each);
        }
        return rc;
}

/* ---- meta.json and ids.idx ---- */

struct meta_state {
        bool unreadable;
        char what[300]; /* "": it is in order */
};

static int look_at_names(struct check *k, const struct json *j, struct meta_state *out)
{
        struct files_conv *c = k->conv;
        json_ref id = json_get(j, 0, "id"), project = json_get(j, 0, "project");
        bool wrong = !json_is(j, id, c->id);
        if (!wrong && json_is(j, project, c->project_id)) {
                /* Every meta.json has this time from the beginning. If it is missing, another
                 * program wrote the file, or its bytes have changed. The log can restore the
                 * time. */
                char created[TIME_TEXT];
                if (json_get(j, 0, "createdAt") == JSON_NONE &&
                    meta_created(k->fs, c->dir, created))
                        snprintf(out->what, sizeof out->what,
                            "meta.json has no createdAt: Steno did not write it like this, and a "
                            "title may be lost");
                return 0;
        }
        if (json_type(j, wrong ? id : project) != JSON_STRING) {
                snprintf(
                    out->what, sizeof out->what, "meta.json has no %s", wrong ? "id" : "project");
                return 0;
        }
        char *said = json_dup_string(j, wrong ? id : project);
        if (!said)
                return error_nomem(k->err);
        snprintf(out->what, sizeof out->what,
            "meta.json says \"%.100s\", which is not the %s of this folder", said,
            wrong ? "id" : "project");
        free(said);
        return 0;
}

static int look_at_meta(struct check *k, struct meta_state *out)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        struct steno_error why = {0};
        int sys = fs_slurp(k->fs, k->conv->dir, "meta.json", META_MAX, &text, &n);
        *out = (struct meta_state){.unreadable = sys && sys != -ENOENT};
        if (sys == -ENOMEM)
                return error_nomem(k->err);
        if (sys) {
                error_sys(&why, sys, "meta.json");
                snprintf(out->what, sizeof out->what, "%s",
                    sys == -ENOENT ? "meta.json is missing" : why.msg);
                return 0;
        }
        json_init(&j);
        int rc = json_parse(&j, text, n, NULL, &why);
        if (rc == STENO_ENOMEM) {
                error_nomem(k->err);
        } else if (rc || json_type(&j, 0) != JSON_OBJECT) {
                out->unreadable = true;
                snprintf(out->what, sizeof out->what, "meta.json is not a JSON object%s%s",
                    rc ? ": " : "", rc ? why.msg : "");
                rc = 0;
        } else {
                rc = look_at_names(k, &j, out);
        }
        json_release(&j);
        free(text);
        return rc;
}

static int repair_meta(struct check *k, struct meta_state *state, bool *repaired)
{
        struct files_conv *c = k->conv;
        int rc = files_conv_lock(c, k->err);
        if (rc)
                return rc;
        if (state->unreadable)
                rc = quarantine_entry(c, "meta.json", state->what, k->err);
        if (rc == 0)
                rc = recent_note(c, k->err);
        if (rc == 0) {
                c->meta_stale = true;
                meta_refresh(c);
                *repaired = !c->meta_stale;
        }
        files_conv_unlock(c);
        return rc;
}

int files_check_meta(struct check *k)
{
        struct meta_state state;
        bool repaired = false;
        int rc = look_at_meta(k, &state);
        if (rc || !state.what[0])
                return rc;
        if (k->repair && k->conv->named)
                rc = files_check_wrote(k, repair_meta(k, &state, &repaired));
        return rc ? rc
                  : files_check_tell(k, 0,
                        k->conv->named ? files_check_repaired(k, repaired) : CHECK_STAYS, "%s%s",
                        state.what,
                        k->conv->named ? "" : "; a change under its id writes it again");
}

int files_check_ids_file(struct check *k)
{
        struct files_conv *c = k->conv;
        if (!conv_has_strange(c, "ids.idx"))
                return 0;
        int rc = k->repair ? files_conv_lock(c, k->err) : 0;
        if (rc)
                return rc;
        if (k->repair) {
                rc = files_check_wrote(k, quarantine_entry(c, "ids.idx", "not a file", k->err));
                files_conv_unlock(c);
        }
        return rc ? rc
                  : files_check_tell(k, 0, files_check_repaired(k, true), "ids.idx is not a file");
}

/* ---- all of it ---- */

/* Something that cannot be read is a finding, and the check continues. It ends if the conversation
 * was removed meanwhile, or if the caller wants no more. */
static int go_on(struct check *k, int rc)
{
        if (rc >= 0 || rc == STENO_ENOMEM || rc == STENO_EINTERRUPTED || rc == STENO_ENOTFOUND)
                return rc;
        return files_check_tell(k, 0, CHECK_STAYS, "it cannot be checked: %s", k->err->msg);
}

int files_check_conv(
    struct files_conv *conv, bool repair, check_fn each, void *ctx, struct steno_error *err)
{
        static int (*const PARTS[])(struct check *) = {files_check_meta, files_check_ids_file,
            files_check_artifacts, files_check_run_files, files_check_log, files_check_runs,
            files_check_seal};
        struct steno_error why = {0};
        struct check k = {.conv = conv,
            .fs = conv->store->env->fs,
            .repair = repair,
            .each = each,
            .ctx = ctx,
            .err = err ? err : &why};
        int rc = 0;
        k.copy = files_is_copied(conv->store);
        for (size_t i = 0; rc == 0 && i < sizeof PARTS / sizeof *PARTS; i++)
                rc = go_on(&k, PARTS[i](&k));
        if (rc == 0 && k.refused.code) {
                rc = k.refused.code;
                *k.err = k.refused;
        }
        free(k.artifacts);
        files_check_origin_release(&k);
        if (k.planned)
                purge_plan_release(&k.plan);
        return rc;
}
