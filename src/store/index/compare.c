/*
 * compare.c - does the index say what the folders say? (index.h)
 */
#include "store/index/index_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

static const char ROWS[] =
    "SELECT project_folder,folder,project,id,title,created,updated,messages,last_seq,bytes,"
    "unreadable FROM conv ORDER BY project_folder,folder";
#define COLUMNS 11

/* Two walks over the same kind of rows, in the same order. */
struct side {
        struct index *x;
        sqlite3_stmt *s;
        bool more;
};

static const char *column(const struct side *side, int i)
{
        const char *text = (const char *)sqlite3_column_text(side->s, i);
        return text ? text : "";
}

static int next(struct side *side, struct steno_error *err)
{
        int step = sqlite3_step(side->s);
        side->more = step == SQLITE_ROW;
        return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : index_error(side->x, err);
}

static int order_of(const struct side *a, const struct side *b)
{
        if (!a->more || !b->more)
                return a->more ? -1 : 1;
        int order = strcmp(column(a, 0), column(b, 0));
        return order ? order : strcmp(column(a, 1), column(b, 1));
}

static bool rows_differ(const struct side *a, const struct side *b)
{
        for (int i = 2; i < COLUMNS; i++)
                if (strcmp(column(a, i), column(b, i)) != 0)
                        return true;
        return false;
}

/* What writers have told of, and nobody looked at yet. */
static void read_recent(struct index *x, struct buf *out)
{
        static const char *const NAMES[] = {"recent", "recent.old"};
        const struct fs *fs = files_env(x->store)->fs;
        buf_putc(out, '\n');
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
                char *text = NULL;
                size_t n = 0;
                if (fs_slurp(fs, files_root(x->store), NAMES[i], BUF_MAX_DEFAULT, &text, &n) == 0)
                        buf_put(out, text, n);
                free(text);
        }
}

static void note_difference(
    const struct side *side, struct str recent, struct index_difference *out)
{
        char line[150];
        int n = snprintf(line, sizeof line, "\n%s/%s\n", column(side, 0), column(side, 1));
        if (memmem(recent.p, recent.n, line, (size_t)n))
                return;
        if (out->count++ == 0)
                snprintf(out->first, sizeof out->first, "%.*s", n - 2, line + 1);
}

static int merge(struct side *a, struct side *b, struct str recent, struct index_difference *out,
    struct steno_error *err)
{
        int rc = next(a, err);
        if (rc == 0)
                rc = next(b, err);
        while (rc == 0 && (a->more || b->more)) {
                int order = order_of(a, b);
                if (order != 0 || rows_differ(a, b))
                        note_difference(order <= 0 ? a : b, recent, out);
                if (order <= 0)
                        rc = next(a, err);
                if (rc == 0 && order >= 0)
                        rc = next(b, err);
        }
        return rc;
}

int index_compare(struct index *x, struct index_difference *out, struct steno_error *err)
{
        struct index *fresh = NULL;
        struct side a = {.x = x}, b = {0};
        struct buf recent;
        *out = (struct index_difference){0};
        if (x->in_memory)
                return 0; /* it is made from nothing each time */
        buf_init(&recent, 0);
        int rc = index_open(x->store, &fresh, err);
        if (rc == 0)
                rc = index_scan(fresh, err);
        pthread_mutex_lock(&x->mutex);
        b.x = fresh;
        read_recent(x, &recent);
        if (rc == 0)
                rc = index_prepare(x, ROWS, &a.s, err);
        if (rc == 0)
                rc = index_prepare(fresh, ROWS, &b.s, err);
        if (rc == 0)
                rc = merge(&a, &b, buf_str(&recent), out, err);
        sqlite3_finalize(a.s);
        sqlite3_finalize(b.s);
        pthread_mutex_unlock(&x->mutex);
        index_close(fresh);
        buf_release(&recent);
        return rc;
}
