/*
 * files_moves.c - conversations that leave or enter an embedded store as the files of a bundle:
 * what bundle.h and incoming.h do, behind handles.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/files_backend.h"
#include "store/files/incoming.h"

/* ---- out ---- */

struct files_bundle {
        struct backend_bundle base;
        struct bundle_conv conv;
        struct bundle_view view;
};

static void look_again(struct files_bundle *b)
{
        b->view = (struct bundle_view){.entries = b->conv.entries,
            .count = b->conv.count,
            .last_seq = b->conv.last_seq,
            .bytes = b->conv.bytes,
            .tombstones = b->conv.tombstones};
}

int files_bundle_prepare(struct files_conv *conv, const struct bundle_options *opt,
    struct files_bundle **out, struct steno_error *err)
{
        struct files_bundle *b = calloc(1, sizeof *b);
        if (!b)
                return error_nomem(err);
        b->base.ops = &files_backend;
        int rc = bundle_prepare(conv, opt, &b->conv, err);
        if (rc) {
                free(b);
                return rc;
        }
        look_again(b);
        *out = b;
        return 0;
}

const struct bundle_view *files_bundle_view(const struct files_bundle *b)
{
        return &b->view;
}

int files_bundle_add_text(
    struct files_bundle *b, const char *name, struct str text, struct steno_error *err)
{
        int rc = bundle_add_text(&b->conv, name, text, err);
        look_again(b);
        return rc;
}

int files_bundle_send(
    struct files_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err)
{
        return bundle_send(&b->conv, &b->conv.entries[i], sink, ctx, err);
}

void files_bundle_release(struct files_bundle *b)
{
        bundle_release(&b->conv);
        free(b);
}

/* ---- in ---- */

struct files_incoming {
        struct backend_incoming base;
        struct incoming in;
        uint32_t number; /* of the conversation at work */
        int dir;         /* its folder, or -1 */
        int fd;          /* the file at work, or -1 */
        char name[160];
        struct files_conv *looked; /* the conversation at work as it is read, or NULL */
};

int files_incoming_open(
    struct files_store *store, struct files_incoming **out, struct steno_error *err)
{
        struct files_incoming *in = calloc(1, sizeof *in);
        if (!in)
                return error_nomem(err);
        in->base.ops = &files_backend;
        in->dir = in->fd = -1;
        int rc = incoming_open(store, &in->in, err);
        if (rc)
                free(in);
        else
                *out = in;
        return rc;
}

static void close_if_open(struct files_incoming *in, int *fd)
{
        const struct fs *fs = in->in.store->env->fs;
        if (*fd >= 0)
                fs->close(fs, *fd);
        *fd = -1;
}

static void end_look(struct files_incoming *in)
{
        if (in->looked)
                files_conv_close_aside(in->looked);
        in->looked = NULL;
}

void files_incoming_close(struct files_incoming *in)
{
        end_look(in);
        close_if_open(in, &in->fd);
        close_if_open(in, &in->dir);
        incoming_close(&in->in);
        free(in);
}

int files_incoming_begin(struct files_incoming *in, uint32_t number, struct steno_error *err)
{
        end_look(in);
        close_if_open(in, &in->fd);
        close_if_open(in, &in->dir);
        in->number = number;
        in->dir = incoming_add(&in->in, number, err);
        return in->dir < 0 ? in->dir : 0;
}

/* Makes the folders of a file. */
static int make_folders(struct files_incoming *in, const char *name)
{
        const struct fs *fs = in->in.store->env->fs;
        char path[160];
        for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
                int rc = fs->mkdir(fs, in->dir, path, 0700);
                if (rc && rc != -EEXIST)
                        return rc;
        }
        return 0;
}

static int unpacking(struct files_incoming *in, int sys, struct steno_error *err)
{
        return error_sys(err, sys, "unpacking %s", in->name);
}

int files_incoming_file(struct files_incoming *in, const char *name, struct steno_error *err)
{
        const struct fs *fs = in->in.store->env->fs;
        close_if_open(in, &in->fd);
        snprintf(in->name, sizeof in->name, "%s", name);
        int rc = make_folders(in, name);
        int fd = rc ? rc : fs->open(fs, in->dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        in->fd = fd < 0 ? -1 : fd;
        return fd < 0 ? unpacking(in, fd, err) : 0;
}

int files_incoming_write(
    struct files_incoming *in, const void *p, size_t n, struct steno_error *err)
{
        int sys = fs_write_all(in->in.store->env->fs, in->fd, p, n);
        return sys ? unpacking(in, sys, err) : 0;
}

int files_incoming_file_end(struct files_incoming *in, struct steno_error *err)
{
        const struct fs *fs = in->in.store->env->fs;
        int sys = fs->fsync(fs, in->fd);
        close_if_open(in, &in->fd);
        return sys ? unpacking(in, sys, err) : 0;
}

int files_incoming_end(struct files_incoming *in, struct str project, struct str id, bool renamed,
    bool trusted, struct steno_error *err)
{
        const struct env *env = in->in.store->env;
        struct files_conv *conv;
        struct stat st;
        char named[ID_MAX + 1], placed[ID_MAX + 1];
        close_if_open(in, &in->fd);
        snprintf(named, sizeof named, "%.*s", (int)id.n, id.p);
        snprintf(placed, sizeof placed, "%.*s", (int)project.n, project.p);
        if (env->fs->stat(env->fs, in->dir, "messages.jsonl", &st) ||
            env->fs->stat(env->fs, in->dir, "meta.json", &st))
                return error_set(
                    err, STENO_EPROTO, "a conversation has no messages.jsonl or meta.json");
        int sys = renamed ? meta_rename(env, in->dir, named, placed) : 0;
        if (sys)
                return error_sys(err, sys, "writing meta.json");
        int rc = incoming_look(&in->in, in->number, project, id, &conv, err);
        if (rc)
                return rc;
        rc = bundle_verify(conv, trusted, err);
        files_conv_close_aside(conv);
        close_if_open(in, &in->dir);
        return rc == STENO_EPROTO || rc == STENO_ECORRUPT || rc == STENO_ELIMIT
                   ? error_prefix(err, STENO_EPROTO, "%s", named)
                   : rc;
}

int files_incoming_look(struct files_incoming *in, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err)
{
        end_look(in);
        close_if_open(in, &in->fd);
        int rc = incoming_look(&in->in, in->number, project, id, &in->looked, err);
        if (rc)
                in->looked = NULL;
        else
                *out = in->looked;
        return rc;
}

int files_incoming_install(struct files_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err)
{
        return incoming_install(&in->in, number, project, id, err);
}
