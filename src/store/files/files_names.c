/*
 * files_names.c - what callers name by project and id, found by the names of folders; and small
 * questions about a conversation that its files answer.
 */
#include <fcntl.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/files_backend.h"

struct names {
        backend_conv_fn each;
        void *ctx;
};

/* The names of folders open a conversation (files_conv_open). A link does not. */
static int hand_out(void *ctx, const char *project_folder, const char *folder, bool link)
{
        struct names *n = ctx;
        return link ? 0 : n->each(n->ctx, project_folder, folder);
}

int files_each_name(struct files_store *s, const char *project, backend_conv_fn each, void *ctx,
    struct steno_error *err)
{
        struct names n = {each, ctx};
        char folder[PLAIN_NAME_MAX + 1];
        if (!project)
                return files_each_conv(s, hand_out, &n, err);
        if (id_file_name(str_of(project), folder))
                return error_nomem(err);
        return files_each_in(s, folder, hand_out, &n, err);
}

int files_conv_exclusively(
    struct files_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err)
{
        int rc = files_conv_lock(conv, err);
        if (rc)
                return rc;
        rc = work(ctx);
        files_conv_unlock(conv);
        return rc;
}

static bool look_at_log(struct files_conv *conv, struct stat *st)
{
        const struct fs *fs = conv->store->env->fs;
        return fs->stat(fs, conv->dir, "messages.jsonl", st) == 0;
}

uint64_t files_generation(struct files_conv *conv)
{
        struct stat st;
        return look_at_log(conv, &st) ? (uint64_t)st.st_ino : 0;
}

enum seal_standing files_seal_standing(struct files_conv *conv)
{
        struct stat st;
        if (seal_is_fresh(conv))
                return SEAL_FRESH;
        return look_at_log(conv, &st) && st.st_size > 0 ? SEAL_DUE : SEAL_EMPTY;
}

int files_seal_name(struct files_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        int sys = seal_name_at(
            conv->store->env->fs, conv->dir, str_of(conv->project_id), str_of(conv->id), out);
        return sys ? error_sys(err, sys, "reading meta.json") : 0;
}

bool files_seal_has_log(struct files_store *s)
{
        struct stat st;
        return s->env->fs->stat(s->env->fs, s->root, "seal/log.jsonl", &st) == 0;
}
