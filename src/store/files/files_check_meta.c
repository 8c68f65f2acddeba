/*
 * files_check_meta.c - small files beside the log. meta.json: is it there, can it be read, and does
 * it say which conversation this is (names.c)? A repair writes the names where they are known; what
 * cannot be read goes to the quarantine first.
 */
#include "store/files/files_check_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

struct meta_state {
        bool unreadable;
        char what[300]; /* "": it is in order */
};

static int look_at_names(struct check *k, const struct json *j, struct meta_state *out)
{
        struct files_conv *c = k->conv;
        json_ref id = json_get(j, 0, "id"), project = json_get(j, 0, "project");
        bool wrong = !json_is(j, id, c->id);
        if (!wrong && json_is(j, project, c->project_id))
                return 0;
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

static int look(struct check *k, struct meta_state *out)
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

static int repair(struct check *k, struct meta_state *state, bool *repaired)
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
        int rc = look(k, &state);
        if (rc || !state.what[0])
                return rc;
        if (k->repair && k->conv->named)
                rc = files_check_wrote(k, repair(k, &state, &repaired));
        return rc ? rc
                  : files_check_tell(k, 0,
                        k->conv->named ? files_check_repaired(k, repaired) : CHECK_STAYS, "%s%s",
                        state.what, k->conv->named ? "" : "; a change under its id writes it anew");
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
