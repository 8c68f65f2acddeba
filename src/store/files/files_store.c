/*
 * files_store.c - the root of an embedded store: making and opening it, its projects, and the table
 * of open conversations.
 */
#include "store/files/conv.h"
#include "store/files/log_seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mount.h"
#include "base/wait.h"
#include "store/index/index.h"
#include "store/search/search.h"

/* Magic numbers of statfs for file systems whose locks or syncs end at this machine. */
static const struct {
        long magic;
        const char *name;
} NETWORK[] = {
    {0x6969, "NFS"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB"},
    {0x517B, "SMB"},
    {0x01021997, "9P"},
    {0x5346414F, "AFS"},
    {0x00C36400, "Ceph"},
    {0x47504653, "GPFS"},
    {0x0BD00BD0, "Lustre"},
    {0x7461636F, "OCFS2"},
    {0x19830326, "BeeGFS"},
};

/* All of FUSE has one number; the table of mounts tells them apart. */
#define FUSE_MAGIC 0x65735546

/* Its name, in `fuse` where that has to be looked up, or NULL for a local one. */
static const char *network_name(const struct env *env, int root, char fuse[MOUNT_TYPE_MAX + 1])
{
        struct stat st;
        long magic = env->fs->magic(env->fs, root);
        for (size_t i = 0; i < sizeof NETWORK / sizeof *NETWORK; i++)
                if (magic == NETWORK[i].magic)
                        return NETWORK[i].name;
        bool remote = magic == FUSE_MAGIC && env->fs->fstat(env->fs, root, &st) == 0 &&
                      mount_type(st.st_dev, fuse) && mount_is_remote(fuse);
        return remote ? fuse : NULL;
}

static int refuse_network(
    const struct env *env, int root, const char *path, struct steno_error *err)
{
        char fuse[MOUNT_TYPE_MAX + 1];
        const char *name = network_name(env, root, fuse);
        if (!name)
                return 0;
        return error_set(err, STENO_EUNSUPPORTED,
            "%s is on a network file system (%s), where locks and syncs do not hold; use a local "
            "disk",
            path, name);
}

/* Makes what a store needs, or checks that it is there. Two may do it at once. */
static int prepare(struct files_store *s, uint32_t flags, struct steno_error *err)
{
        int rc = settings_prepare(s, !(flags & STENO_OPEN_EXISTING), err);
        if (rc)
                return rc;
        if ((flags & STENO_OPEN_REPAIR) && files_look_at_place(s, "projects") != FILES_PLACE_OK)
                return 0; /* calls that need it report the error */
        return files_open_projects(s, err);
}

static unsigned descriptor_budget(void)
{
        struct rlimit lim;
        unsigned max = OPEN_CONVERSATIONS_MAX;
        /* A conversation keeps four, so half of them are left to the program. */
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur / 8 < max)
                max = (unsigned)(lim.rlim_cur / 8);
        return max < 16 ? 16 : max;
}

/* How many forks lie between the first store and this process: cheaper to ask than the system. */
static unsigned forks;

static void count_fork(void)
{
        forks++;
}

static void watch_forks(void)
{
        pthread_atfork(NULL, NULL, count_fork);
}

static unsigned forks_seen(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, watch_forks);
        return forks;
}

int files_open(const struct env *env, const char *path, uint32_t flags, struct files_store **out,
    struct steno_error *err)
{
        bool create = !(flags & STENO_OPEN_EXISTING);
        struct files_store *s = calloc(1, sizeof *s);
        if (!s)
                return error_nomem(err);
        int rc;
        s->base.ops = &files_backend;
        s->env = env;
        s->forks = forks_seen();
        s->boot = ids_boot(env);
        s->settle_ids = IDS_SETTLE_BYTES;
        s->root = s->projects_dir = s->recent = -1;
        pthread_mutex_init(&s->recent_mutex, NULL);
        s->open_max = descriptor_budget();
        pthread_mutex_init(&s->mutex, NULL);
        pthread_mutex_init(&s->sync_mutex, NULL);
        pthread_mutex_init(&s->derived_mutex, NULL);
        wait_init(&s->wake);
        s->path = strdup(path);
        if (!s->path) {
                rc = error_nomem(err);
                goto fail;
        }
        s->root = env->fs->open_root(env->fs, path, create);
        if (s->root == -ENOENT && !create) {
                rc = error_set(err, STENO_ENOTFOUND, "there is no store at %s", path);
                goto fail;
        }
        if (s->root < 0) {
                rc = error_sys(err, s->root, "opening the store %s", path);
                goto fail;
        }
        rc = refuse_network(env, s->root, path, err);
        if (rc == 0)
                rc = prepare(s, flags, err);
        if (rc)
                goto fail;
        *out = s;
        return 0;
fail:
        files_close(s);
        return rc;
}

bool files_is_ours(const struct files_store *s)
{
        return s->forks == forks;
}

static void conv_destroy(struct files_conv *conv)
{
        const struct fs *fs = conv->store->env->fs;
        if (conv->pairing)
                pairing_free(conv->pairing);
        conv_settle(conv);
        ids_close(&conv->ids);
        log_seen_release(fs, conv->seen);
        if (conv->log >= 0)
                fs->close(fs, conv->log);
        if (conv->dir >= 0)
                fs->close(fs, conv->dir);
        pthread_mutex_destroy(&conv->mutex);
        pthread_cond_destroy(&conv->turn);
        free(conv->id);
        free(conv->project_id);
        free(conv);
}

static void store_close_files(struct files_store *s)
{
        const struct fs *fs = s->env->fs;
        for (struct files_project *p = s->projects; p; p = p->next)
                fs->close(fs, p->conversations);
        if (s->recent >= 0)
                fs->close(fs, s->recent);
        if (s->projects_dir >= 0)
                fs->close(fs, s->projects_dir);
        if (s->root >= 0)
                fs->close(fs, s->root);
}

/* In a child of fork(): lets go of descriptors, so that no lock outlives its owner here, and
 * nothing else. The memory may be in any state, and goes with the process. */
static void store_abandon(struct files_store *s)
{
        const struct fs *fs = s->env->fs;
        for (size_t row = 0; row < CONV_ROWS; row++) {
                for (struct files_conv *c = s->table[row]; c; c = c->next) {
                        const int fds[] = {c->ids.fd, c->log, c->dir};
                        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                                if (fds[i] >= 0)
                                        fs->close(fs, fds[i]);
                        log_seen_abandon(fs, c->seen);
                }
        }
        store_close_files(s);
}

void files_close(struct files_store *s)
{
        if (!s)
                return;
        if (!files_is_ours(s)) {
                store_abandon(s);
                return;
        }
        index_close(s->index);
        search_close(s->search);
        search_close(s->asked);
        syncer_stop(s);
        for (size_t row = 0; row < CONV_ROWS; row++) {
                for (struct files_conv *c = s->table[row], *next; c; c = next) {
                        next = c->next;
                        conv_destroy(c);
                }
        }
        store_close_files(s);
        for (struct files_project *p = s->projects, *next; p; p = next) {
                next = p->next;
                free(p);
        }
        pthread_mutex_destroy(&s->mutex);
        pthread_mutex_destroy(&s->sync_mutex);
        pthread_mutex_destroy(&s->derived_mutex);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->recent_mutex);
        files_aside_free(s->aside);
        free(s->path);
        free(s);
}

const struct env *files_env(const struct files_store *s)
{
        return s->env;
}

int files_root(const struct files_store *s)
{
        return s->root;
}

const char *files_path(const struct files_store *s)
{
        return s->path;
}

/* ---- projects ---- */

/* Stands for a project whose conversations are those in the trash; no project has a dot. */
#define TRASH ".trash"

/* The reason why a project cannot be opened: something that is not ours has its place. */
static int refuse_link(struct files_store *s, const char *folder, struct steno_error *err)
{
        char path[PLAIN_NAME_MAX + 16];
        snprintf(path, sizeof path, "%s/conversations", folder);
        if (!files_is_link(s->env->fs, s->projects_dir, folder) &&
            !files_is_link(s->env->fs, s->projects_dir, path))
                return STENO_ENOTFOUND;
        return error_set(
            err, STENO_EDENIED, "project %s is a symbolic link, which is not followed", folder);
}

/* Under the store's mutex. STENO_ENOTFOUND without `create` when there is none. */
static int project_open(struct files_store *s, const char *folder, bool create,
    struct files_project **out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        for (struct files_project *p = s->projects; p; p = p->next) {
                if (strcmp(p->folder, folder) == 0) {
                        *out = p;
                        return 0;
                }
        }
        bool trash = strcmp(folder, TRASH) == 0;
        if (!trash && files_lacks_projects(s, err))
                return STENO_ECORRUPT;
        int dir = trash ? s->root : fs_open_dir(fs, s->projects_dir, folder, create);
        int conversations =
            dir < 0 ? dir : fs_open_dir(fs, dir, trash ? "trash" : "conversations", create);
        /* Another process may have made them a moment ago and not yet synced their names (S3). */
        int rc = 0;
        if (create && conversations >= 0 && (rc = fs->fsync(fs, dir)) == 0 &&
            (rc = fs->fsync(fs, s->projects_dir)) == 0)
                rc = fs->fsync(fs, s->root);
        if (dir >= 0 && !trash)
                fs->close(fs, dir);
        if (rc) {
                fs->close(fs, conversations);
                return error_sys(err, rc, "syncing project %s", folder);
        }
        if (files_is_foreign(conversations))
                return refuse_link(s, folder, err);
        if (conversations < 0)
                return error_sys(err, conversations, "opening project %s", folder);
        struct files_project *p = calloc(1, sizeof *p);
        if (!p) {
                fs->close(fs, conversations);
                return error_nomem(err);
        }
        snprintf(p->folder, sizeof p->folder, "%s", folder);
        p->conversations = conversations;
        p->next = s->projects;
        s->projects = p;
        *out = p;
        return 0;
}

/* ---- the table of open conversations ---- */

/* All of this under the store's mutex. */

static struct files_conv **row_of(struct files_store *s, ino_t ino)
{
        return &s->table[(uint64_t)ino * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}
_Static_assert(CONV_ROWS == 1 << 10, "row_of keeps ten bits");

static void leave_idle(struct files_conv *c)
{
        struct files_store *s = c->store;
        *(c->older ? &c->older->newer : &s->oldest) = c->newer;
        *(c->newer ? &c->newer->older : &s->newest) = c->older;
        c->older = c->newer = NULL;
}

static void join_idle(struct files_conv *c)
{
        struct files_store *s = c->store;
        c->older = s->newest;
        *(s->newest ? &s->newest->newer : &s->oldest) = c;
        s->newest = c;
}

void files_conv_hold(struct files_conv *c)
{
        if (c->refs++ == 0)
                leave_idle(c);
}

/* One that nobody holds goes away. */
static void table_remove(struct files_conv *c)
{
        struct files_conv **at = row_of(c->store, c->dir_ino);
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        c->store->conv_count--;
        conv_destroy(c);
}

/* Closes idle ones beyond the budget, those that were let go longest ago first. */
static void evict(struct files_store *s)
{
        for (struct files_conv *c = s->oldest, *next; c && s->conv_count > s->open_max; c = next) {
                next = c->newer;
                if (__atomic_load_n(&c->dirty, __ATOMIC_RELAXED))
                        continue;
                leave_idle(c);
                table_remove(c);
        }
}

static struct files_conv *conv_new(
    struct files_store *s, struct files_project *project, const char *folder, int dir)
{
        struct files_conv *c = calloc(1, sizeof *c);
        if (!c)
                return NULL;
        c->base.ops = &files_backend;
        c->store = s;
        c->project = project;
        c->dir = dir;
        c->log = -1;
        c->ids.fd = -1;
        c->queue_end = &c->queue;
        snprintf(c->folder, sizeof c->folder, "%s", folder);
        pthread_mutex_init(&c->mutex, NULL);
        wait_init(&c->turn);
        return c;
}

/* Names of a conversation: its folders, and the ids where the caller knows them, else empty. */
struct place {
        const char *project_folder;
        const char *folder;
        struct str project;
        struct str id;
};

/* Finds it in the table or on the disk; takes a reference. Under the store's mutex. */
static int table_open(struct files_store *s, struct files_project *project,
    const struct place *place, struct files_conv **out, struct steno_error *err)
{
        const char *folder = place->folder;
        const struct fs *fs = s->env->fs;
        struct stat st;
        int rc = fs->stat(fs, project->conversations, folder, &st);
        if (rc == 0 && S_ISLNK(st.st_mode))
                return error_set(err, STENO_EDENIED,
                    "conversation %s is a symbolic link, which is not followed", folder);
        if (files_is_foreign(rc) || (rc == 0 && !S_ISDIR(st.st_mode)))
                return STENO_ENOTFOUND;
        if (rc)
                return error_sys(err, rc, "opening conversation %s", folder);
        for (struct files_conv *c = *row_of(s, st.st_ino); c; c = c->next) {
                /* A folder that was removed and made again is another conversation. A poisoned
                 * handle is never handed out again (S5), and a handle without an id is not given to
                 * a caller that knows the id. */
                if (c->project == project && c->dir_ino == st.st_ino && c->dir_dev == st.st_dev &&
                    !c->poisoned && (c->named || place->id.n == 0) &&
                    strcmp(c->folder, folder) == 0) {
                        files_conv_hold(c);
                        *out = c;
                        return 0;
                }
        }
        int dir = fs->open(fs, project->conversations, folder, O_RDONLY | O_DIRECTORY, 0);
        if (dir == -ENOENT)
                return STENO_ENOTFOUND;
        if (dir < 0)
                return error_sys(err, dir, "opening conversation %s", folder);
        struct files_conv *c = conv_new(s, project, folder, dir);
        if (!c) {
                fs->close(fs, dir);
                return error_nomem(err);
        }
        rc = fs->fstat(fs, dir, &st);
        if (rc)
                rc = error_sys(err, rc, "opening conversation %s", folder);
        else if (strcmp(place->project_folder, TRASH) == 0)
                rc = conv_take_names(c, place->project, place->id, err);
        else
                rc = conv_learn_names(c, place->project, place->id, err);
        if (rc) {
                conv_destroy(c);
                return rc;
        }
        c->dir_dev = st.st_dev;
        c->dir_ino = st.st_ino;
        c->refs = 1;
        struct files_conv **row = row_of(s, c->dir_ino);
        c->next = *row;
        *row = c;
        s->conv_count++;
        evict(s);
        *out = c;
        return 0;
}

static int open_place(struct files_store *s, const struct place *place, struct files_conv **out,
    struct steno_error *err)
{
        struct files_project *project;
        pthread_mutex_lock(&s->mutex);
        int rc = project_open(s, place->project_folder, false, &project, err);
        if (rc == 0)
                rc = table_open(s, project, place, out, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}

int files_conv_open_folder(struct files_store *s, const char *project_folder, const char *folder,
    struct files_conv **out, struct steno_error *err)
{
        struct place place = {.project_folder = project_folder, .folder = folder};
        return open_place(s, &place, out, err);
}

int files_conv_open_trashed(struct files_store *s, const char *name, struct str project,
    struct str id, struct files_conv **out, struct steno_error *err)
{
        struct place place = {TRASH, name, project, id};
        return open_place(s, &place, out, err);
}

int files_conv_open_aside(struct files_store *s, int parent, const char *folder,
    struct str project_id, struct str id, struct files_conv **out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        struct stat st;
        struct files_project *project = calloc(1, sizeof *project);
        int dir = fs->open(fs, parent, folder, O_RDONLY | O_DIRECTORY, 0);
        struct files_conv *c = project && dir >= 0 ? conv_new(s, project, folder, dir) : NULL;
        int rc = dir < 0 ? dir : c ? fs->fstat(fs, dir, &st) : -ENOMEM;
        if (rc == 0 && conv_take_names(c, project_id, id, NULL))
                rc = -ENOMEM;
        if (rc) {
                if (c)
                        conv_destroy(c);
                else if (dir >= 0)
                        fs->close(fs, dir);
                free(project);
                return error_sys(err, rc, "opening what comes in");
        }
        project->conversations = parent;
        c->dir_dev = st.st_dev;
        c->dir_ino = st.st_ino;
        *out = c;
        return 0;
}

void files_conv_close_aside(struct files_conv *c)
{
        if (!c)
                return;
        struct files_project *project = c->project;
        conv_destroy(c);
        free(project);
}

int files_conv_open(struct files_store *s, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err)
{
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        struct place place = {project_folder, folder, project, id};
        if (id_file_name(project, project_folder) || id_file_name(id, folder))
                return error_nomem(err);
        int rc = open_place(s, &place, out, err);
        /* A folder whose id nobody knows any more is reached by its own name, and so is a project.
         */
        if (rc == STENO_ENOTFOUND && id_is_file_name(id)) {
                snprintf(folder, sizeof folder, "%.*s", (int)id.n, id.p);
                place.id = (struct str){0};
                rc = open_place(s, &place, out, err);
        }
        if (rc == STENO_ENOTFOUND && project.n && project.p[0] == '~' && id_is_file_name(project)) {
                snprintf(project_folder, sizeof project_folder, "%.*s", (int)project.n, project.p);
                place.project = (struct str){0};
                rc = open_place(s, &place, out, err);
                if (rc == STENO_ENOTFOUND && !id_file_name(id, folder))
                        rc = open_place(s, &place, out, err);
        }
        if (rc == STENO_ENOTFOUND)
                error_set(err, rc, "no conversation \"%.*s\" in project \"%.*s\"", (int)id.n, id.p,
                    (int)project.n, project.p);
        return rc;
}

/* Makes the folder aside and renames it into place (S1, S3). */
static int make_folder(struct files_store *s, struct files_project *project, const char *folder,
    struct str meta, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char aside[64] = ".new-";
        id_make(s->env, ".new-", aside);
        int rc = fs->mkdir(fs, project->conversations, aside, 0700);
        if (rc)
                return error_sys(err, rc, "making a conversation");
        int dir = fs->open(fs, project->conversations, aside, O_RDONLY | O_DIRECTORY, 0);
        int log = -1;
        rc = dir < 0 ? dir : fs_replace(fs, dir, "meta.json", meta.p, meta.n);
        if (rc == 0) {
                /* Empty: there is nothing to sync but its name. */
                log = fs->open(fs, dir, "messages.jsonl", O_RDWR | O_CREAT | O_EXCL, 0600);
                rc = log < 0 ? log : 0;
        }
        if (rc == 0)
                rc = fs->fsync(fs, dir);
        if (rc == 0)
                rc = fs->rename_new(
                    fs, project->conversations, aside, project->conversations, folder);
        if (rc == 0)
                rc = fs->fsync(fs, project->conversations);
        else
                fs_remove_tree(fs, project->conversations, aside);
        if (log >= 0)
                fs->close(fs, log);
        if (dir >= 0)
                fs->close(fs, dir);
        if (rc == -EEXIST || rc == -ENOTEMPTY)
                return STENO_ECONFLICT;
        return rc ? error_sys(err, rc, "making a conversation") : 0;
}

int files_conv_create(struct files_store *s, struct str project_id, struct str id, struct str meta,
    struct files_conv **out, struct steno_error *err)
{
        char project_folder[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
        struct files_project *project;
        struct files_conv *conv = NULL;
        if (id_file_name(project_id, project_folder) || id_file_name(id, folder))
                return error_nomem(err);
        pthread_mutex_lock(&s->mutex);
        int rc = project_open(s, project_folder, true, &project, err);
        pthread_mutex_unlock(&s->mutex);
        if (rc == 0)
                rc = make_folder(s, project, folder, meta, err);
        if (rc == STENO_ECONFLICT)
                return error_set(err, rc, "conversation \"%.*s\" exists already", (int)id.n, id.p);
        if (rc == 0)
                rc = files_conv_open(s, project_id, id, &conv, err);
        if (rc)
                return rc;
        /* Listed even before its first message. Best effort: a full scan finds it as well. */
        conv_enter(conv);
        if (conv_flock(conv, NULL) == 0) {
                recent_note(conv, NULL);
                conv_funlock(conv);
        }
        conv_leave(conv);
        *out = conv;
        return 0;
}

/* Gives a reference back. Under the store's mutex. */
static void let_go(struct files_conv *c)
{
        if (--c->refs > 0)
                return;
        if (c->poisoned || c->gone)
                table_remove(c);
        else
                join_idle(c);
}

void files_conv_is_gone(struct files_store *s, const struct stat *dir)
{
        pthread_mutex_lock(&s->mutex);
        for (struct files_conv *c = *row_of(s, dir->st_ino), *next; c; c = next) {
                next = c->next;
                if (c->dir_ino != dir->st_ino || c->dir_dev != dir->st_dev)
                        continue;
                c->gone = true;
                files_conv_hold(c);
                let_go(c);
        }
        pthread_mutex_unlock(&s->mutex);
}

void files_conv_release(struct files_conv *conv)
{
        if (!conv || !files_is_ours(conv->store))
                return;
        struct files_store *s = conv->store;
        pthread_mutex_lock(&s->mutex);
        let_go(conv);
        evict(s);
        /* The idle ones wait for the syncer. Descriptors cannot wait, so some are synced here. */
        while (s->oldest && s->conv_count > s->open_max + s->open_max / 2) {
                struct files_conv *c = s->oldest;
                files_conv_hold(c);
                pthread_mutex_unlock(&s->mutex);
                if (syncer_sync(c, NULL))
                        __atomic_store_n(&c->dirty, false, __ATOMIC_RELAXED);
                pthread_mutex_lock(&s->mutex);
                let_go(c);
                evict(s);
        }
        pthread_mutex_unlock(&s->mutex);
}
