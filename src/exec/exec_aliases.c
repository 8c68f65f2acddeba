/*
 * exec_aliases.c - see exec_aliases.h. Each line of /proc/self/mountinfo names a file system, the
 * folder of it that is shown, and the path at which it is shown.
 */
#include "exec/exec_aliases.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "steno.h"

struct shown {
        char *line;
        const char *device; /* of the file system */
        const char *root;   /* the folder of it */
        const char *at;     /* the path */
};

struct table {
        struct shown *rows;
        size_t count;
};

/* The kernel writes blanks and backslashes in octal: "\040". */
static void unescape(char *text)
{
        char *to = text;
        for (const char *from = text; *from; to++) {
                unsigned byte = 0;
                if (*from == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
                        *to = (char)byte;
                        from += 4;
                } else {
                        *to = *from++;
                }
        }
        *to = '\0';
}

/* "ID PARENT DEVICE ROOT PATH ...". False: it is not such a line. */
static bool parse(char *line, struct shown *out)
{
        char *word[5], *rest = line;
        for (size_t i = 0; i < 5; i++)
                if (!(word[i] = strsep(&rest, " ")) || !*word[i])
                        return false;
        unescape(word[3]);
        unescape(word[4]);
        *out = (struct shown){line, word[2], word[3], word[4]};
        return true;
}

static void table_release(struct table *t)
{
        for (size_t i = 0; i < t->count; i++)
                free(t->rows[i].line);
        free(t->rows);
}

static int table_read(struct table *t)
{
        FILE *f = fopen("/proc/self/mountinfo", "re");
        int rc = 0;
        while (f && rc == 0) {
                char *line = NULL;
                size_t size = 0;
                struct shown row;
                if (getline(&line, &size, f) < 0 || !parse(line, &row)) {
                        free(line);
                        if (feof(f) || ferror(f))
                                break;
                        continue;
                }
                struct shown *rows = realloc(t->rows, (t->count + 1) * sizeof *rows);
                if (rows) {
                        t->rows = rows;
                        rows[t->count++] = row;
                } else {
                        free(line);
                        rc = STENO_ENOMEM;
                }
        }
        if (f)
                fclose(f);
        return rc;
}

/* What is left of `path` below `folder`, with its slash, or "" for the folder itself. NULL: it is
 * not below it. */
static const char *below(const char *path, const char *folder)
{
        size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
        return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]) ? path + n : NULL;
}

/* The mount that shows `path`: of the longest paths above it the newest. */
static const struct shown *holder(const struct table *t, const char *path)
{
        const struct shown *found = NULL;
        for (size_t i = 0; i < t->count; i++)
                if (below(path, t->rows[i].at) &&
                    (!found || strlen(t->rows[i].at) >= strlen(found->at)))
                        found = &t->rows[i];
        return found;
}

static bool join(char out[PATH_MAX], const char *folder, const char *rest)
{
        if (strcmp(folder, "/") == 0)
                folder = *rest ? "" : "/";
        return snprintf(out, PATH_MAX, "%s%s", folder, rest) < PATH_MAX;
}

/* A mount may be covered by a newer one, which shows something else there. */
static bool is_directory(const char *path, const struct stat *same)
{
        struct stat st;
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
               (!same || (st.st_dev == same->st_dev && st.st_ino == same->st_ino));
}

int exec_aliases(const char *real, int (*take)(void *ctx, const char *path), void *ctx)
{
        struct table t = {0};
        struct stat st;
        char inside[PATH_MAX], path[PATH_MAX];
        int rc = table_read(&t);
        const struct shown *own = rc == 0 ? holder(&t, real) : NULL;
        if (!own || stat(real, &st) < 0 || !join(inside, own->root, below(real, own->at)))
                goto out;
        for (size_t i = 0; i < t.count && rc == 0; i++) {
                const struct shown *m = &t.rows[i];
                if (m == own || strcmp(m->device, own->device) != 0)
                        continue;
                const char *rest = below(inside, m->root);
                if (rest && join(path, m->at, rest) && strcmp(path, real) != 0 &&
                    is_directory(path, &st))
                        rc = take(ctx, path);
                else if (!rest && below(m->root, inside) && is_directory(m->at, NULL))
                        rc = take(ctx, m->at);
        }
out:
        table_release(&t);
        return rc;
}
