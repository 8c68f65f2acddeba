/*
 * files_catalogue.c - lists and searches of an embedded store: its index (store/index) and its
 * words (store/search), opened when they are first needed; and figures that need a look at every
 * folder.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/files_backend.h"
#include "store/index/index.h"
#include "store/search/search.h"

/* ---- the index ---- */

static int open_index(struct files_store *s, struct index **out, struct steno_error *err)
{
        pthread_mutex_lock(&s->derived_mutex);
        int rc = s->index ? 0 : index_open(s, &s->index, err);
        *out = s->index;
        pthread_mutex_unlock(&s->derived_mutex);
        return rc;
}

int files_catch_up(struct files_store *s, bool at_once, steno_progress progress, void *progress_ctx,
    struct backend_caught_up *out, struct steno_error *err)
{
        struct index *index;
        int rc = open_index(s, &index, err);
        return rc ? rc : index_catch_up(index, at_once, progress, progress_ctx, out, err);
}

int files_list(
    struct files_store *s, const struct backend_query *q, char **json, struct steno_error *err)
{
        struct index *index;
        int rc = open_index(s, &index, err);
        return rc ? rc : index_list(index, q, json, err);
}

struct rows {
        int (*each)(void *ctx, const struct backend_listed *row);
        void *ctx;
};

static int hand_out(void *ctx, const struct index_row *row)
{
        struct rows *r = ctx;
        return r->each(r->ctx, &(struct backend_listed){row->project, row->id, row->last_seq});
}

int files_list_each(struct files_store *s, int (*each)(void *ctx, const struct backend_listed *row),
    void *ctx, struct steno_error *err)
{
        struct index *index;
        struct rows rows = {each, ctx};
        int rc = open_index(s, &index, err);
        return rc ? rc : index_each(index, hand_out, &rows, err);
}

int files_totals(struct files_store *s, struct backend_totals *out, struct steno_error *err)
{
        struct index *index;
        int rc = open_index(s, &index, err);
        return rc ? rc : index_totals(index, out, err);
}

int files_unfinished(
    struct files_store *s, const char *project, uint32_t max, char **json, struct steno_error *err)
{
        struct index *index;
        int rc = open_index(s, &index, err);
        return rc ? rc : index_unfinished(index, project, max, json, err);
}

/* ---- the conversation of a run ---- */

static int open_if_there(struct files_store *s, const char *project_folder, const char *folder,
    const char *name, struct files_conv **out, struct steno_error *err)
{
        struct files_conv *conv;
        int rc = files_conv_open_folder(s, project_folder, folder, &conv, err);
        if (rc)
                return rc;
        if (!run_exists(conv, name)) {
                files_conv_release(conv);
                return STENO_ENOTFOUND;
        }
        *out = conv;
        return 0;
}

struct scan {
        const struct fs *fs;
        int root;
        const char *project_folder;
        const char *name;
        char folder[PLAIN_NAME_MAX + 1];
};

static int has_run(void *ctx, const char *project_folder, const char *folder, bool link)
{
        struct scan *s = ctx;
        struct stat st;
        char path[512];
        if (link || strcmp(project_folder, s->project_folder) != 0)
                return 0;
        snprintf(path, sizeof path, "projects/%s/conversations/%s/runs/%s.jsonl", project_folder,
            folder, s->name);
        if (s->fs->stat(s->fs, s->root, path, &st) != 0)
                return 0;
        snprintf(s->folder, sizeof s->folder, "%s", folder);
        return 1;
}

/* By the index as it is, then caught up, then by looking everywhere. */
int files_run_find(struct files_store *s, struct str project, const char *name,
    struct files_conv **out, struct steno_error *err)
{
        char project_folder[PLAIN_NAME_MAX + 1], project_id[ID_MAX + 1], folder[65];
        struct index *index;
        struct backend_caught_up up;
        if (id_file_name(project, project_folder))
                return error_nomem(err);
        snprintf(project_id, sizeof project_id, "%.*s", (int)project.n, project.p);
        pthread_mutex_lock(&s->derived_mutex);
        index = s->index;
        pthread_mutex_unlock(&s->derived_mutex);
        if (index && index_find_run(index, project_id, name, folder, NULL) == 0 &&
            open_if_there(s, project_folder, folder, name, out, NULL) == 0)
                return 0;
        if (files_catch_up(s, false, NULL, NULL, &up, NULL) == 0 &&
            index_find_run(s->index, project_id, name, folder, NULL) == 0 &&
            open_if_there(s, project_folder, folder, name, out, NULL) == 0)
                return 0;
        struct scan scan = {
            .fs = s->env->fs, .root = s->root, .project_folder = project_folder, .name = name};
        int rc = files_each_conv(s, has_run, &scan, err);
        if (rc < 0)
                return rc;
        return rc ? open_if_there(s, project_folder, scan.folder, name, out, err) : STENO_ENOTFOUND;
}

/* ---- what only a look at every folder tells ---- */

struct tally {
        const struct fs *fs;
        int root;
        int dir; /* the folder being listed */
        uint64_t count;
        uint64_t bytes;
};

static int tally_file(void *ctx, const char *name, unsigned char type)
{
        struct tally *t = ctx;
        struct stat st;
        (void)type;
        if (name[0] != '.' && t->fs->stat(t->fs, t->dir, name, &st) == 0 && S_ISREG(st.st_mode)) {
                t->count++;
                t->bytes += (uint64_t)st.st_size;
        }
        return 0;
}

static int tally_conv(void *ctx, const char *project_folder, const char *folder, bool link)
{
        static const char *const KINDS[] = {"tool", "terminal", "parts"};
        struct tally *t = ctx;
        char path[256];
        if (link)
                return 0;
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
                snprintf(path, sizeof path, "projects/%s/conversations/%s/artifacts/%s",
                    project_folder, folder, KINDS[i]);
                t->dir = t->fs->open(t->fs, t->root, path, O_RDONLY | O_DIRECTORY, 0);
                if (t->dir < 0)
                        continue;
                t->fs->list(t->fs, t->dir, tally_file, t);
                t->fs->close(t->fs, t->dir);
        }
        return 0;
}

/* Things in the quarantine: each is bytes and a note. */
static uint64_t count_quarantine(struct tally *t)
{
        struct tally q = {.fs = t->fs};
        q.dir = t->fs->open(t->fs, t->root, "quarantine", O_RDONLY | O_DIRECTORY, 0);
        if (q.dir < 0)
                return 0;
        t->fs->list(t->fs, q.dir, tally_file, &q);
        t->fs->close(t->fs, q.dir);
        return (q.count + 1) / 2;
}

int files_tally(struct files_store *s, struct backend_tally *out, struct steno_error *err)
{
        struct tally t = {.fs = s->env->fs, .root = s->root};
        int rc = files_each_conv(s, tally_conv, &t, err);
        /* What cannot be looked at is not counted, here as inside of a conversation. */
        if (rc == STENO_EIO || rc == STENO_EDENIED)
                rc = 0;
        if (rc == 0)
                *out = (struct backend_tally){t.count, t.bytes, count_quarantine(&t)};
        return rc;
}

/* ---- words ---- */

static int open_one(
    struct files_store *s, struct search **one, struct search **out, struct steno_error *err)
{
        pthread_mutex_lock(&s->derived_mutex);
        int rc = *one ? 0 : search_open(s, one, err);
        *out = *one;
        pthread_mutex_unlock(&s->derived_mutex);
        return rc;
}

static int open_search(struct files_store *s, struct search **out, struct steno_error *err)
{
        return open_one(s, &s->search, out, err);
}

int files_search_lock(struct files_store *s, bool wait, struct steno_error *err)
{
        struct search *search;
        int rc = open_search(s, &search, err);
        return rc ? rc : search_lock(search, wait, err);
}

void files_search_unlock(struct files_store *s)
{
        search_unlock(s->search);
}

int files_search_progress(
    struct files_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err)
{
        return search_progress(
            conv->store->search, conv->project->folder, conv->folder, generation, seq, err);
}

int files_search_each_conv(
    struct files_store *s, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        return search_each_conv(s->search, each, ctx, err);
}

int files_search_begin(struct files_conv *conv, uint64_t generation, struct steno_error *err)
{
        struct search_conv c = {.project_folder = conv->project->folder,
            .folder = conv->folder,
            .project = conv->project_id,
            .id = conv->id,
            .log = generation};
        return search_begin(conv->store->search, &c, err);
}

int files_search_add(struct files_store *s, const struct search_block *b, struct steno_error *err)
{
        return search_add(s->search, b, err);
}

int files_search_commit(struct files_store *s, uint64_t seq, struct steno_error *err)
{
        return search_commit(s->search, seq, err);
}

int files_search_forget(
    struct files_store *s, const char *project, const char *id, struct steno_error *err)
{
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        struct search *search;
        if (id_file_name(str_of(project), project_folder) || id_file_name(str_of(id), folder))
                return error_nomem(err);
        int rc = open_search(s, &search, err);
        return rc ? rc : search_forget(search, project_folder, folder, err);
}

int files_search_discard(struct files_store *s, struct steno_error *err)
{
        struct search *search;
        int rc = open_search(s, &search, err);
        return rc ? rc : search_discard(search, err);
}

/* Searches have connections of their own. The indexer holds its connection while it adds a piece.
 * In a server it is a thread of the lowest priority, and searches must not wait for it. */
int files_search_each(struct files_store *s, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err)
{
        struct search *search;
        int rc = open_one(s, &s->asked, &search, err);
        return rc ? rc : search_each(search, ask, each, ctx, err);
}
