/*
 * opencode_folder.c - opencode before it had a database: a file for each session, message and part.
 *
 *   storage/session/<project>/<session>.json
 *   storage/message/<session>/<message>.json
 *   storage/part/<message>/<part>.json
 *
 * Sorting by id sorts by time. The files of a session are put together as `opencode export` would
 * write them, and read as such an export.
 */
#include "foreign/foreign_kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fs.h"

#define STORAGE 2 /* folders between a session's own and storage/ */
static const char MARK[] = "/storage/session/";

static const char *session_part(const char *path)
{
        const char *at = strstr(path, MARK);
        const char *next = at;
        while (next && (next = strstr(next + 1, MARK)))
                at = next;
        at = at ? at + sizeof MARK - 1 : NULL;
        const char *slash = at ? strchr(at, '/') : NULL;
        return slash && !strchr(slash + 1, '/') ? at : NULL;
}

static bool folder_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        struct str stem = foreign_stem(p->path, ".json");
        return !p->alone && p->whole && session_part(p->path) &&
               str_eq(json_inner(j, json_get(j, 0, "id")), stem) &&
               json_type(j, json_get(j, 0, "time")) == JSON_OBJECT;
}

struct gathering {
        struct foreign *t;
        const char *folder; /* message/<session> or part/<message> */
        size_t count;
        struct buf text; /* the text of one file */
        bool messages;
};

static int add_file(void *ctx, const char *name);

/* Writes the files of a folder as a list of JSON values. */
static int add_folder(struct foreign *t, const char *kind, struct str id, bool messages)
{
        char folder[400];
        struct gathering g = {.t = t, .folder = folder, .messages = messages};
        snprintf(folder, sizeof folder, "%s/%.*s", kind, (int)(id.n < 300 ? id.n : 300), id.p);
        buf_init(&g.text, 0);
        buf_putc(&t->out, '[');
        int rc = foreign_side_list(t, STORAGE, folder, add_file, &g);
        buf_putc(&t->out, ']');
        buf_release(&g.text);
        return rc;
}

static int add_file(void *ctx, const char *name)
{
        struct gathering *g = ctx;
        struct foreign *t = g->t;
        size_t n = strlen(name);
        char tail[700];
        if (n < 6 || strcmp(name + n - 5, ".json") != 0)
                return 0;
        snprintf(tail, sizeof tail, "%s/%.255s", g->folder, name);
        if (!foreign_side(t, STORAGE, str_of(tail), &g->text))
                return 0; /* the file was removed meanwhile */
        if (g->text.failed)
                return error_nomem(t->err);
        if (!json_valid(g->text.p, g->text.n, NULL) || g->text.p[0] != '{') {
                t->sink.damaged(t->sink.ctx);
                return 0;
        }
        buf_puts(&t->out, g->count++ ? "," : "");
        if (!g->messages) {
                buf_put_str(&t->out, buf_str(&g->text));
                return 0;
        }
        buf_puts(&t->out, "{\"info\":");
        buf_put_str(&t->out, buf_str(&g->text));
        buf_puts(&t->out, ",\"parts\":");
        int rc = add_folder(t, "part", str_span(name, n - 5), false);
        buf_putc(&t->out, '}');
        return rc;
}

static int folder_read(struct foreign *t)
{
        struct str id = foreign_text(t, &t->j, json_get(&t->j, 0, "id"));
        buf_clear(&t->out);
        buf_puts(&t->out, "{\"info\":");
        buf_put_str(&t->out, t->raw);
        buf_puts(&t->out, ",\"messages\":");
        int rc = add_folder(t, "message", id, true);
        buf_putc(&t->out, '}');
        size_t n = t->out.n;
        char *text = buf_take(&t->out, NULL); /* reading this text needs the scratch buffer */
        buf_init(&t->out, 0);
        if (rc == 0 && !text)
                rc = error_nomem(t->err);
        if (rc == 0)
                rc = json_parse(&t->j, text, n, NULL, t->err);
        if (rc == 0)
                rc = foreign_opencode_export.read(t);
        free(text);
        return rc;
}

const struct foreign_kind foreign_opencode_folder = {
    .name = "opencode",
    .shape = FOREIGN_DOCUMENT,
    .is = folder_is,
    .read = folder_read,
};

/* ---- when a session changed ---- */

struct latest {
        int storage;
        int dir;
        struct timespec at;
        bool messages;
};

static void take_later(struct latest *l, struct timespec at)
{
        if (at.tv_sec > l->at.tv_sec || (at.tv_sec == l->at.tv_sec && at.tv_nsec > l->at.tv_nsec))
                l->at = at;
}

static int look_at(void *ctx, const char *name, unsigned char type);

static void look_below(struct latest *l, const char *folder, bool messages)
{
        const struct fs *fs = fs_real();
        struct latest below = {.storage = l->storage, .messages = messages, .at = l->at};
        struct stat st;
        below.dir = fs->open(fs, l->storage, folder, O_RDONLY | O_DIRECTORY, 0);
        if (below.dir < 0)
                return;
        if (fs->fstat(fs, below.dir, &st) == 0)
                take_later(&below, st.st_mtim);
        fs->list(fs, below.dir, look_at, &below);
        fs->close(fs, below.dir);
        l->at = below.at;
}

static int look_at(void *ctx, const char *name, unsigned char type)
{
        struct latest *l = ctx;
        const struct fs *fs = fs_real();
        struct stat st;
        char folder[300];
        size_t n = strlen(name);
        (void)type;
        if (fs->stat(fs, l->dir, name, &st) == 0)
                take_later(l, st.st_mtim);
        if (l->messages && n > 5 && n < 255 && strcmp(name + n - 5, ".json") == 0) {
                snprintf(folder, sizeof folder, "part/%.*s", (int)n - 5, name);
                look_below(l, folder, false);
        }
        return 0;
}

struct timespec foreign_changed(const char *path)
{
        const struct fs *fs = fs_real();
        struct latest l = {0};
        char folder[300];
        const char *at = session_part(path);
        if (!at)
                return l.at;
        struct str id = foreign_stem(path, ".json");
        char *storage = strndup(path, (size_t)(at - path) - (sizeof "session/" - 1));
        l.storage = storage && id.n < 250 ? fs->open_root(fs, storage, false) : -1;
        free(storage);
        if (l.storage < 0)
                return l.at;
        snprintf(folder, sizeof folder, "message/%.*s", (int)id.n, id.p);
        look_below(&l, folder, true);
        fs->close(fs, l.storage);
        return l.at;
}
