/* backup_files.c - see backup_files.h */
#include "store/files/backup_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/limits.h"

#define HALF 16
#define DIGITS (2 * HALF)
#define LIST_MAX (256 * MIB)

static const char *path_of(const char *line)
{
        return line + DIGITS + 1;
}

static int by_path(const void *a, const void *b)
{
        return strcmp(path_of(*(char *const *)a), path_of(*(char *const *)b));
}

static int by_name(const void *path, const void *line)
{
        return strcmp(path, path_of(*(char *const *)line));
}

static int take_line(struct backup_files *f, size_t *cap, char *line)
{
        if (strlen(line) <= DIGITS + 1 || line[DIGITS] != ' ')
                return 0;
        if (!grow_room(f->lines, f->count, *cap))
                return -ENOMEM;
        f->lines[f->count++] = line;
        return 0;
}

int backup_files_read(struct backup_files *f, const struct fs *fs, int dir)
{
        size_t n = 0, cap = 0;
        *f = (struct backup_files){0};
        buf_init(&f->now, LIST_MAX);
        int rc = fs_slurp(fs, dir, BACKUP_FILES, LIST_MAX, &f->text, &n);
        if (rc)
                return rc == -ENOMEM ? rc : 0;
        for (char *at = f->text, *lf; rc == 0 && (lf = strchr(at, '\n')); at = lf + 1) {
                *lf = '\0';
                rc = take_line(f, &cap, at);
        }
        if (f->count)
                qsort(f->lines, f->count, sizeof *f->lines, by_path);
        return rc;
}

static void put_half(char out[HALF + 1], const struct stat *st)
{
        const uint64_t numbers[] = {(uint64_t)st->st_ino, (uint64_t)st->st_size,
            (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
            (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
        snprintf(out, HALF + 1, "%016" PRIx64, hash_64(numbers, sizeof numbers));
}

bool backup_files_know(const struct backup_files *f, const char *path, const struct stat *from,
    const struct stat *copy)
{
        char digits[DIGITS + 1];
        char **line =
            f->count ? bsearch(path, f->lines, f->count, sizeof *f->lines, by_name) : NULL;
        if (!line)
                return false;
        put_half(digits, from);
        if (copy)
                put_half(digits + HALF, copy);
        return memcmp(*line, digits, copy ? DIGITS : HALF) == 0;
}

void backup_files_note(
    struct backup_files *f, const char *path, const struct stat *from, const struct stat *copy)
{
        char digits[DIGITS + 1];
        if (strchr(path, '\n'))
                return;
        put_half(digits, from);
        put_half(digits + HALF, copy);
        buf_printf(&f->now, "%s %s\n", digits, path);
}

int backup_files_write(const struct backup_files *f, const struct fs *fs, int dir)
{
        if (f->now.failed)
                return -ENOMEM;
        if (f->now.n)
                return fs_replace(fs, dir, BACKUP_FILES, f->now.p, f->now.n);
        int rc = fs->unlink(fs, dir, BACKUP_FILES, 0);
        return rc == -ENOENT ? 0 : rc;
}

void backup_files_release(struct backup_files *f)
{
        free(f->text);
        free(f->lines);
        buf_release(&f->now);
        *f = (struct backup_files){0};
}
