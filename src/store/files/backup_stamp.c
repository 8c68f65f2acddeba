/* backup_stamp.c - see backup_stamp.h */
#include "store/files/backup_stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 3 /* artifacts/tool/<name> */
#define TOO_YOUNG 1

struct stamping {
        const struct fs *fs;
        struct sha256 *sha;
        const struct timespec *now;
        int dir;
        int depth;
};

static bool is_young(const struct stamping *s, const struct stat *st)
{
        return s->now && !fs_stamp_is(fs_stamp_of(st->st_ctim, *s->now), st->st_ctim);
}

static void put_file(struct stamping *s, const char *name, const struct stat *st)
{
        const uint64_t numbers[] = {(uint64_t)st->st_mode & S_IFMT, (uint64_t)st->st_ino,
            (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
            (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
        hash_sha256_update(s->sha, name, strlen(name) + 1);
        hash_sha256_update(s->sha, numbers, sizeof numbers);
}

static int put_entry(void *ctx, const char *name, unsigned char type);

/* The folder's own times do not count, because hidden files are made and removed in it. */
static int put_folder(struct stamping *s, const char *name)
{
        struct stamping below = *s;
        if (s->depth == DEPTH_MAX)
                return -ELOOP;
        below.depth++;
        below.dir = s->fs->open(s->fs, s->dir, name, O_RDONLY | O_DIRECTORY, 0);
        if (below.dir < 0)
                return below.dir;
        hash_sha256_update(s->sha, name, strlen(name) + 1);
        hash_sha256_update(s->sha, "(", 1);
        int rc = s->fs->list(s->fs, below.dir, put_entry, &below);
        hash_sha256_update(s->sha, ")", 1);
        s->fs->close(s->fs, below.dir);
        return rc == -ENOENT ? -EAGAIN : rc; /* one went while they were looked at */
}

/* What is hidden is not copied. */
static int put_entry(void *ctx, const char *name, unsigned char type)
{
        struct stamping *s = ctx;
        struct stat st;
        (void)type;
        if (name[0] == '.')
                return 0;
        int sys = s->fs->stat(s->fs, s->dir, name, &st);
        if (sys)
                return sys;
        if (S_ISDIR(st.st_mode))
                return put_folder(s, name);
        put_file(s, name, &st);
        return is_young(s, &st) ? TOO_YOUNG : 0;
}

int backup_stamp(const struct fs *fs, int dir, const struct timespec *now, char stamp[SHA256_HEX])
{
        static const char *const NAMES[] = {
            "messages.jsonl", "meta.json", "artifacts", "runs", "seal"};
        unsigned char sum[SHA256_SIZE];
        struct sha256 sha;
        struct stamping s = {.fs = fs, .sha = &sha, .now = now, .dir = dir};
        int rc = hash_sha256_init(&sha) ? -ENOMEM : 0;
        if (rc)
                return rc;
        for (size_t i = 0; rc == 0 && i < sizeof NAMES / sizeof *NAMES; i++) {
                rc = put_entry(&s, NAMES[i], 0);
                rc = rc == -ENOENT ? 0 : rc;
        }
        hash_sha256_finish(&sha, sum);
        hash_hex(sum, sizeof sum, stamp);
        return rc;
}
