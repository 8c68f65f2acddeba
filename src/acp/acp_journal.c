/*
 * acp_journal.c - see acp_journal.h
 */
#include "acp/acp_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define MAGIC "steno-acp 1 "
#define HEAD_MAX (sizeof MAGIC + ID_MAX)
#define FRAME_HEAD 64
#define NAMES_MAX 10000

struct acp_journal {
        const struct env *env;
        int dir;
        int fd;
        char name[ACP_NAME];
        char project[ID_MAX + 1];
        struct buf line; /* the frame that is being written */
        struct buf read; /* the frame that was read last */
        uint64_t at;     /* where the next frame is read */
        pthread_mutex_t mutex;
        pthread_cond_t more;
        uint64_t end; /* the end of what was written; protected by the mutex */
        bool ended;
};

static int open_folder(
    const struct env *env, const char *path, bool create, int *dir, struct steno_error *err)
{
        const struct fs *fs = env->fs;
        int root = fs->open_root(fs, path, false);
        if (root < 0)
                return error_sys(err, -root, "opening the store for the recorder");
        *dir = fs_open_dir(fs, root, "acp", create);
        fs->close(fs, root);
        if (*dir == -ENOENT && !create)
                return error_set(err, STENO_ENOTFOUND, "the store has no journals of a recorder");
        return *dir < 0 ? error_sys(err, -*dir, "opening the recorder's folder") : 0;
}

/* Makes a journal without its file. `create`: makes the folder if it is missing. */
static int new_journal(const struct env *env, const char *path, bool create,
    struct acp_journal **out, struct steno_error *err)
{
        int dir = -1;
        int rc = open_folder(env, path, create, &dir, err);
        if (rc)
                return rc;
        struct acp_journal *j = calloc(1, sizeof *j);
        if (!j) {
                env->fs->close(env->fs, dir);
                return error_nomem(err);
        }
        j->env = env;
        j->dir = dir;
        j->fd = -1;
        buf_init(&j->line, 0);
        buf_init(&j->read, 0);
        pthread_mutex_init(&j->mutex, NULL);
        wait_init(&j->more);
        *out = j;
        return 0;
}

static int write_head(struct acp_journal *j, const char *project, struct steno_error *err)
{
        const struct fs *fs = j->env->fs;
        char head[HEAD_MAX + 2];
        int n = snprintf(head, sizeof head, MAGIC "%s\n", project);
        if (n >= (int)sizeof head)
                return error_set(err, STENO_EINVAL, "the project's name is too long");
        snprintf(j->project, sizeof j->project, "%s", project);
        int failed = fs->flock(fs, j->fd, LOCK_EX | LOCK_NB);
        if (failed == 0)
                failed = fs_pwrite_all(fs, j->fd, head, (size_t)n, 0);
        j->at = j->end = (uint64_t)n;
        return failed ? error_sys(err, -failed, "writing the recorder's journal") : 0;
}

int acp_journal_create(const struct env *env, const char *path, const char *project,
    struct acp_journal **out, struct steno_error *err)
{
        const struct fs *fs = env->fs;
        struct acp_journal *j;
        int rc = new_journal(env, path, true, &j, err);
        if (rc)
                return rc;
        id_make(env, "acp_", j->name);
        j->fd = fs->open(fs, j->dir, j->name, O_RDWR | O_CREAT | O_EXCL, 0600);
        rc = j->fd < 0 ? error_sys(err, -j->fd, "making the recorder's journal")
                       : write_head(j, project, err);
        if (rc == 0)
                *out = j;
        else
                acp_journal_close(j, j->fd >= 0);
        return rc;
}

static int read_head(struct acp_journal *j, struct steno_error *err)
{
        const struct fs *fs = j->env->fs;
        char head[HEAD_MAX + 2];
        struct stat st, named;
        int failed = fs->flock(fs, j->fd, LOCK_EX | LOCK_NB);
        if (failed)
                return error_set(err, STENO_ECONFLICT, "a recorder is writing %s", j->name);
        /* The writer may have removed the journal between the open and the lock. */
        if (fs->fstat(fs, j->fd, &st) || fs->stat(fs, j->dir, j->name, &named) ||
            st.st_ino != named.st_ino)
                return error_set(err, STENO_ENOTFOUND, "%s is recorded already", j->name);
        ssize_t n = fs_pread_all(fs, j->fd, head, sizeof head - 1, 0);
        char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
        size_t magic = strlen(MAGIC);
        if (!end || strncmp(head, MAGIC, magic) != 0)
                return error_set(err, STENO_ECORRUPT, "acp/%s is not a journal", j->name);
        *end = '\0';
        if ((size_t)(end - head) - magic > ID_MAX)
                return error_set(err, STENO_ECORRUPT, "acp/%s is not a journal", j->name);
        memcpy(j->project, head + magic, (size_t)(end - head) - magic + 1);
        j->at = (uint64_t)(end - head) + 1;
        j->end = (uint64_t)st.st_size;
        j->ended = true;
        return 0;
}

int acp_journal_open(const struct env *env, const char *path, const char *name,
    struct acp_journal **out, struct steno_error *err)
{
        const struct fs *fs = env->fs;
        struct acp_journal *j;
        int rc = new_journal(env, path, false, &j, err);
        if (rc)
                return rc;
        snprintf(j->name, sizeof j->name, "%s", name);
        j->fd = fs->open(fs, j->dir, name, O_RDWR, 0);
        if (j->fd == -ENOENT)
                rc = error_set(err, STENO_ENOTFOUND, "%s is recorded already", name);
        else
                rc = j->fd < 0 ? error_sys(err, -j->fd, "opening acp/%s", name) : read_head(j, err);
        if (rc == 0)
                *out = j;
        else
                acp_journal_close(j, false);
        return rc;
}

/* ---- the folder ---- */

struct names {
        char **list;
        size_t count;
};

static int collect(void *ctx, const char *name, unsigned char type)
{
        struct names *n = ctx;
        (void)type;
        if (strncmp(name, "acp_", 4) != 0 || strlen(name) >= ACP_NAME || n->count == NAMES_MAX)
                return 0;
        n->list[n->count] = strdup(name);
        return n->list[n->count++] ? 0 : STENO_ENOMEM;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int acp_journal_names(const struct env *env, const char *path, char ***out, struct steno_error *err)
{
        const struct fs *fs = env->fs;
        struct names n = {.list = calloc(NAMES_MAX + 1, sizeof(char *))};
        int dir = -1;
        if (!n.list)
                return error_nomem(err);
        int rc = open_folder(env, path, false, &dir, err);
        if (rc == 0) {
                int failed = fs->list(fs, dir, collect, &n);
                fs->close(fs, dir);
                if (failed)
                        rc = failed == STENO_ENOMEM
                                 ? error_nomem(err)
                                 : error_sys(err, -failed, "listing the recorder's journals");
        } else if (rc == STENO_ENOTFOUND) {
                rc = 0;
        }
        if (rc) {
                acp_journal_names_free(n.list);
                return rc;
        }
        qsort(n.list, n.count, sizeof *n.list, by_name); /* names begin with their time */
        *out = n.list;
        return 0;
}

void acp_journal_names_free(char **names)
{
        for (size_t i = 0; names && names[i]; i++)
                free(names[i]);
        free(names);
}

/* ---- frames ---- */

const char *acp_journal_name(const struct acp_journal *j)
{
        return j->name;
}

const char *acp_journal_project(const struct acp_journal *j)
{
        return j->project;
}

int acp_journal_put(
    struct acp_journal *j, enum acp_kind kind, struct str bytes, struct steno_error *err)
{
        buf_clear(&j->line);
        buf_printf(&j->line, "%c %lld %zu\n", kind, (long long)j->env->now(j->env), bytes.n);
        buf_put_str(&j->line, bytes);
        buf_putc(&j->line, '\n');
        int rc = buf_check(&j->line, err);
        if (rc)
                return rc;
        int failed = fs_pwrite_all(j->env->fs, j->fd, j->line.p, j->line.n, (off_t)j->end);
        if (failed)
                return error_sys(err, -failed, "writing the recorder's journal");
        pthread_mutex_lock(&j->mutex);
        j->end += j->line.n;
        pthread_cond_signal(&j->more);
        pthread_mutex_unlock(&j->mutex);
        return 0;
}

void acp_journal_end(struct acp_journal *j)
{
        pthread_mutex_lock(&j->mutex);
        j->ended = true;
        pthread_cond_signal(&j->more);
        pthread_mutex_unlock(&j->mutex);
}

/* Waits until there is something behind `at`, and returns where the journal ends. */
static uint64_t wait_for_more(struct acp_journal *j)
{
        pthread_mutex_lock(&j->mutex);
        while (j->end <= j->at && !j->ended)
                pthread_cond_wait(&j->more, &j->mutex);
        uint64_t end = j->end;
        pthread_mutex_unlock(&j->mutex);
        return end;
}

static bool parse_head(char *head, size_t n, struct acp_frame *f, uint64_t *size, size_t *used)
{
        char *end = memchr(head, '\n', n);
        char kind;
        long long at;
        unsigned long long bytes;
        int seen = 0;
        if (!end)
                return false;
        *end = '\0';
        if (sscanf(head, "%c %lld %llu%n", &kind, &at, &bytes, &seen) != 3 || head + seen != end ||
            !strchr("><?=!", kind))
                return false;
        *f = (struct acp_frame){.kind = (enum acp_kind)kind, .at = at};
        *size = bytes;
        *used = (size_t)seen + 1;
        return true;
}

int acp_journal_next(struct acp_journal *j, struct acp_frame *out, struct steno_error *err)
{
        const struct fs *fs = j->env->fs;
        struct acp_frame f;
        char head[FRAME_HEAD];
        uint64_t size = 0, end = wait_for_more(j);
        size_t used = 0;
        if (end <= j->at)
                return 0;
        ssize_t n = fs_pread_all(fs, j->fd, head, sizeof head, (off_t)j->at);
        if (n < 0)
                return error_sys(err, (int)-n, "reading the recorder's journal");
        if (!parse_head(head, (size_t)n, &f, &size, &used) || size > end ||
            j->at + used + size + 1 > end)
                return 0; /* an incomplete frame was never passed on */
        buf_clear(&j->read);
        char *room = buf_reserve(&j->read, size + 1);
        if (!room)
                return error_nomem(err);
        n = fs_pread_all(fs, j->fd, room, size + 1, (off_t)(j->at + used));
        if (n != (ssize_t)size + 1)
                return n < 0 ? error_sys(err, (int)-n, "reading the recorder's journal") : 0;
        j->read.n = size;
        j->at += used + size + 1;
        f.bytes = buf_str(&j->read);
        *out = f;
        return 1;
}

void acp_journal_set_aside(struct acp_journal *j)
{
        char name[ACP_NAME + 8];
        snprintf(name, sizeof name, "kept_%s", j->name + strlen("acp_"));
        j->env->fs->rename(j->env->fs, j->dir, j->name, j->dir, name);
}

void acp_journal_close(struct acp_journal *j, bool remove)
{
        if (!j)
                return;
        const struct fs *fs = j->env->fs;
        if (remove)
                fs->unlink(fs, j->dir, j->name, 0);
        if (j->fd >= 0)
                fs->close(fs, j->fd);
        fs->close(fs, j->dir);
        pthread_mutex_destroy(&j->mutex);
        pthread_cond_destroy(&j->more);
        buf_release(&j->line);
        buf_release(&j->read);
        free(j);
}
