/*
 * conv_names.c - which conversation a folder holds.
 *
 * The folder is the truth: a plain name is the id itself. Of a hashed one, an id counts only when
 * it hashes to that name, whether a caller says it or meta.json does. The project likewise.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

bool conv_folder_is_of(const char *folder, struct str id)
{
        char name[PLAIN_NAME_MAX + 1];
        return id.n > 0 && id_file_name(id, name) == 0 && strcmp(name, folder) == 0;
}

/* The folder's name stands for an id that is not known. */
static char *name_of(const char *folder, struct str given, const char *claimed, bool *known)
{
        if (conv_folder_is_of(folder, given))
                return strndup(given.p, given.n);
        if (claimed && conv_folder_is_of(folder, str_of(claimed)))
                return strdup(claimed);
        *known = *known && id_is_plain(str_of(folder));
        return strdup(folder);
}

int conv_learn_names(
    struct files_conv *c, struct str project, struct str id, struct steno_error *err)
{
        char *meta = NULL, *said_id = NULL, *said_project = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        int sys = fs_slurp(c->store->env->fs, c->dir, "meta.json", META_MAX, &meta, &n);
        if (sys == 0 && json_parse(&j, meta, n, NULL, NULL) == 0) {
                said_id = json_dup_string(&j, json_get(&j, 0, "id"));
                said_project = json_dup_string(&j, json_get(&j, 0, "project"));
        }
        c->named = true;
        c->id = name_of(c->folder, id, said_id, &c->named);
        c->project_id = name_of(c->project->folder, project, said_project, &c->named);
        int rc = c->id && c->project_id ? 0 : error_nomem(err);
        /* meta.json exists and cannot be read, so the id is unknown. */
        if (rc == 0 && sys && sys != -ENOENT && !c->named)
                rc = error_sys(err, sys, "reading meta.json");
        c->meta_stale = rc == 0 && (!said_id || !said_project || strcmp(said_id, c->id) != 0 ||
                                       strcmp(said_project, c->project_id) != 0);
        json_release(&j);
        free(meta);
        free(said_id);
        free(said_project);
        return rc;
}

int conv_take_names(
    struct files_conv *c, struct str project, struct str id, struct steno_error *err)
{
        c->named = true;
        c->id = strndup(id.p, id.n);
        c->project_id = strndup(project.p, project.n);
        return c->id && c->project_id ? 0 : error_nomem(err);
}
