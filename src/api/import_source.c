/*
 * import_source.c - one file of another tool: what it is, and handing its entries to the
 * conversations that they belong to.
 *
 * Lines are read through a window that grows to the longest of them. Where the file still begins
 * with the bytes that an earlier import has read, reading goes on behind them; else all of it is
 * read, and entries are compared.
 */
#include "api/importing.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_url.h"
#include "base/limits.h"
#include "base/named_file.h"
#include "base/unzstd.h"
#include "format/format.h"

#define BLOCK (1 * MIB)
#define HEAD_MAX (16 * MIB) /* a first line that is longer is not a line of ours */
#define LINE_MAX_READ (512 * MIB)
#define DOCUMENT_MAX (1 * GIB)

struct reading {
        struct import_run *run;
        const struct import_source *source;
        struct foreign t;
        bool open;
        struct import_target *main; /* of a file of lines; NULL: not begun */
        struct import_target *now;  /* the one that items go to */
        struct import_target *side;
        char *side_session;
        struct foreign_session now_session; /* of `now`, its strings in `arena` */
        struct arena arena;
};

/* ---- bytes ---- */

static ssize_t read_at(const struct import_source *s, void *p, size_t n, uint64_t at)
{
        if (s->fd >= 0)
                return fs_pread_all(fs_real(), s->fd, p, n, (off_t)at);
        if (at >= s->text.n)
                return 0;
        n = n < s->text.n - at ? n : s->text.n - (size_t)at;
        memcpy(p, s->text.p + at, n);
        return (ssize_t)n;
}

/* Reads on until `b` has `n` bytes or the source ends. 0 or an error. */
static int fill(struct import_run *run, const struct import_source *s, struct buf *b, size_t n)
{
        while (b->n < n) {
                size_t want = n - b->n < BLOCK ? n - b->n : BLOCK;
                char *to = buf_reserve(b, want);
                if (!to)
                        return buf_check(b, run->err);
                ssize_t got = read_at(s, to, want, b->n);
                if (got < 0)
                        return error_sys(run->err, (int)got, "reading %.150s", s->path);
                if (got == 0)
                        return 0;
                b->n += (size_t)got;
        }
        return 0;
}

/* ---- what the kinds say ---- */

static int finish_now(struct reading *r)
{
        int rc = 0;
        if (r->now && r->now != r->main) {
                rc = import_target_finish(r->now, &r->now_session, NULL, r->source->inode);
                import_target_release(r->now);
                free(r->now);
        }
        r->now = r->main;
        return rc;
}

static struct str keep(struct reading *r, struct str s)
{
        return s.n ? arena_dup(&r->arena, s) : STR("");
}

static int on_begin(void *ctx, const struct foreign_session *s)
{
        struct reading *r = ctx;
        int rc = finish_now(r);
        if (rc || (r->main && str_is(s->id, r->main->session)))
                return rc;
        arena_reset(&r->arena);
        r->now_session = (struct foreign_session){.id = keep(r, s->id),
            .title = keep(r, s->title),
            .model = keep(r, s->model),
            .version = keep(r, s->version),
            .cwd = keep(r, s->cwd),
            .parent = keep(r, s->parent),
            .call = keep(r, s->call),
            .origin = s->origin};
        struct import_target *t = malloc(sizeof *t);
        if (!t || r->arena.failed) {
                free(t);
                return error_nomem(r->run->err);
        }
        r->now = t;
        rc = import_target_open(t, r->run, r->t.kind->name, r->source->path, s, r->source->size);
        t->compared = true;
        return rc;
}

static int on_item(void *ctx, const struct foreign_item *item)
{
        struct reading *r = ctx;
        return r->now ? import_target_take(r->now, item)
                      : error_set(r->run->err, STENO_EINVAL, "an entry before its session");
}

static const char *on_choose(void *ctx, const struct json *j, json_ref list)
{
        struct reading *r = ctx;
        char candidates[200];
        arena_reset(&r->arena);
        const struct format *f = format_choose(j, list, &r->arena, candidates, sizeof candidates);
        return f ? f->name : NULL;
}

static void on_skipped(void *ctx)
{
        ((struct reading *)ctx)->run->counts.skipped++;
}

static void on_damaged(void *ctx)
{
        ((struct reading *)ctx)->run->counts.damaged++;
}

static int open_reading(
    struct reading *r, const struct foreign_kind *kind, const struct foreign_probe *p)
{
        const struct foreign_sink sink = {r, on_begin, on_item, on_choose, on_skipped, on_damaged};
        int rc = foreign_open(&r->t, kind, p, &sink, r->run->err);
        r->open = true;
        return rc;
}

static int step_progress(struct import_run *run, uint64_t bytes)
{
        run->bytes += bytes;
        if (run->progress && run->progress(run->progress_ctx, "import", run->bytes, 0))
                return error_set(run->err, STENO_EINTERRUPTED, "stopped by the caller");
        return 0;
}

/* ---- lines ---- */

struct lines {
        struct reading *r;
        struct buf window;
        uint64_t at;       /* of the window's first byte in the file */
        struct sha256 sha; /* over [0, settled) */
        uint64_t settled;
        uint64_t entries; /* by then */
};

static int hash_to(struct lines *l, uint64_t end)
{
        char block[8192];
        while (l->settled < end) {
                size_t want =
                    end - l->settled < sizeof block ? (size_t)(end - l->settled) : sizeof block;
                ssize_t got = read_at(l->r->source, block, want, l->settled);
                if (got <= 0)
                        return error_set(l->r->run->err, STENO_EIO,
                            "%.150s became shorter while it was read", l->r->source->path);
                hash_sha256_update(&l->sha, block, (size_t)got);
                l->settled += (uint64_t)got;
        }
        return 0;
}

/* Some editors put a mark at the beginning of a file that says UTF-8. */
static struct str without_mark(struct str s)
{
        return str_starts(s, "\xef\xbb\xbf") ? str_span(s.p + 3, s.n - 3) : s;
}

/* Everything before `end` was read and is done with; `p` are the bytes from `from` on. */
static int settle(struct lines *l, const char *p, uint64_t from, uint64_t end)
{
        int rc = from > l->settled ? hash_to(l, from) : 0;
        if (rc)
                return rc;
        hash_sha256_update(&l->sha, p, (size_t)(end - from));
        l->settled = end;
        l->entries = l->r->main->entries;
        return 0;
}

static int take_line(struct lines *l, size_t at, size_t n, size_t end)
{
        struct str line = str_span(l->window.p + at, n);
        int rc = foreign_line(&l->r->t, l->at + at == 0 ? without_mark(line) : line);
        if (rc == 0 && !l->r->t.unsettled)
                rc = settle(l, line.p, l->at + at, l->at + end);
        return rc;
}

/* The whole lines of the window; *used is where the first that is not whole begins. */
static int take_lines(struct lines *l, size_t *used)
{
        size_t at = 0;
        int rc = 0;
        while (rc == 0 && at < l->window.n) {
                const char *feed = memchr(l->window.p + at, '\n', l->window.n - at);
                if (!feed)
                        break;
                size_t n = (size_t)(feed - l->window.p) - at;
                rc = take_line(l, at, n, at + n + 1);
                at += n + 1;
        }
        *used = at;
        return rc;
}

/* What stands behind the last line feed: whole JSON is a line, anything else is not here yet. */
static int take_tail(struct lines *l)
{
        struct str tail = buf_str(&l->window);
        struct str json = l->at == 0 ? without_mark(tail) : tail;
        size_t blank = 0;
        while (blank < tail.n && strchr(" \t\r", tail.p[blank]))
                blank++;
        if (blank == tail.n)
                return 0;
        if (json_valid(json.p, json.n, NULL))
                return take_line(l, 0, tail.n, tail.n);
        l->r->run->counts.torn++;
        return 0;
}

static int read_lines(struct lines *l)
{
        struct import_run *run = l->r->run;
        int rc = 0;
        for (;;) {
                char *to = buf_reserve(&l->window, BLOCK);
                if (!to)
                        return buf_check(&l->window, run->err);
                ssize_t got = read_at(l->r->source, to, BLOCK, l->at + l->window.n);
                if (got < 0)
                        return error_sys(run->err, (int)got, "reading %.150s", l->r->source->path);
                if (got == 0)
                        break;
                l->window.n += (size_t)got;
                size_t used = 0;
                rc = take_lines(l, &used);
                if (rc == 0)
                        rc = step_progress(run, (uint64_t)got);
                if (rc)
                        return rc;
                buf_drop_front(&l->window, used);
                l->at += used;
        }
        rc = take_tail(l);
        return rc ? rc : foreign_end(&l->r->t);
}

/* Does the file begin with what was read then? Leaves the sum over it, to go on with. */
static int resume(struct lines *l, const struct import_memory *m, bool *same)
{
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX];
        struct buf block;
        *same = false;
        if (!m->bytes || m->bytes > l->r->source->size)
                return 0;
        buf_init(&block, 0);
        char *p = buf_reserve(&block, BLOCK);
        int rc = p ? 0 : error_nomem(l->r->run->err);
        uint64_t at = 0;
        while (rc == 0 && at < m->bytes) {
                size_t want = m->bytes - at < BLOCK ? (size_t)(m->bytes - at) : BLOCK;
                ssize_t got = read_at(l->r->source, p, want, at);
                if (got <= 0)
                        break;
                hash_sha256_update(&l->sha, p, (size_t)got);
                at += (uint64_t)got;
                rc = step_progress(l->r->run, (uint64_t)got);
        }
        buf_release(&block);
        hash_sha256_peek(&l->sha, sum);
        hash_hex(sum, sizeof sum, hex);
        *same = rc == 0 && at == m->bytes && strcmp(hex, m->sha256) == 0;
        return rc;
}

static int begin_lines(struct lines *l)
{
        struct reading *r = l->r;
        struct import_target *t = r->main;
        bool same;
        int rc = resume(l, &t->before, &same);
        if (rc)
                return rc;
        if (same) {
                l->at = l->settled = t->before.bytes;
                l->entries = t->entries = t->before.entries;
                return 0;
        }
        hash_sha256_release(&l->sha);
        t->compared = t->has_before;
        return hash_sha256_init(&l->sha) ? error_nomem(r->run->err) : 0;
}

static int run_lines(struct reading *r)
{
        struct lines l = {.r = r};
        struct import_memory memory = {0};
        unsigned char sum[SHA256_SIZE];
        r->main = r->now = malloc(sizeof *r->main);
        if (!r->main || hash_sha256_init(&l.sha)) {
                free(r->main);
                r->main = r->now = NULL;
                return error_nomem(r->run->err);
        }
        buf_init(&l.window, LINE_MAX_READ);
        int rc = import_target_open(
            r->main, r->run, r->t.kind->name, r->source->path, &r->t.session, r->source->size);
        if (rc == 0)
                rc = begin_lines(&l);
        if (rc == 0)
                rc = read_lines(&l);
        int done = finish_now(r);
        rc = rc ? rc : done;
        hash_sha256_peek(&l.sha, sum);
        hash_hex(sum, sizeof sum, memory.sha256);
        memory.bytes = l.settled;
        memory.entries = l.entries;
        if (rc == 0)
                rc = import_target_finish(r->main, &r->t.session, &memory, r->source->inode);
        import_target_release(r->main);
        free(r->main);
        r->main = r->now = NULL;
        hash_sha256_release(&l.sha);
        buf_release(&l.window);
        return rc;
}

/* ---- documents and databases ---- */

static int run_whole(struct reading *r, struct str text)
{
        int rc = foreign_read(&r->t, text);
        if (rc == 0)
                rc = step_progress(r->run, r->source->size);
        /* What is only known at the end of the document. */
        if (rc == 0 && r->now) {
                struct foreign_session *s = &r->now_session;
                if (!s->model.n)
                        s->model = keep(r, r->t.session.model);
        }
        int done = rc == 0 ? finish_now(r) : 0;
        if (rc && r->now) {
                import_target_flush(r->now);
                import_target_release(r->now);
                free(r->now);
                r->now = NULL;
        }
        return rc ? rc : done;
}

/* ---- what it is ---- */

struct probing {
        struct foreign_probe p;
        struct buf text;
        struct json first;
        struct json whole;
        sqlite3 *db;
};

/* Never changes a tool's database. A database in WAL mode needs a -shm file, which a read-only
 * reader cannot make. If that file is missing, no program has the database open, and the file alone
 * is read. */
static sqlite3 *open_database(const char *path)
{
        static const char *const MODES[] = {"?mode=ro", "?mode=ro&immutable=1"};
        for (size_t i = 0; i < 2; i++) {
                sqlite3 *db = NULL;
                struct buf url;
                buf_init(&url, 0);
                file_url_put(&url, path);
                buf_puts(&url, MODES[i]);
                const char *z = buf_cstr(&url);
                bool good = z &&
                            sqlite3_open_v2(z, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) ==
                                SQLITE_OK &&
                            sqlite3_exec(db, "SELECT count(*) FROM sqlite_master", NULL, NULL,
                                NULL) == SQLITE_OK;
                buf_release(&url);
                if (good) {
                        sqlite3_busy_timeout(db, 5000);
                        return db;
                }
                sqlite3_close(db);
        }
        return NULL;
}

/* The length of the first line in `b`; b->n where it has no end. */
static size_t first_line(const struct buf *b)
{
        const char *feed = b->n ? memchr(b->p, '\n', b->n) : NULL;
        return feed ? (size_t)(feed - b->p) : b->n;
}

static bool rest_is_blank(const struct buf *b, size_t from)
{
        for (size_t i = from; i < b->n; i++)
                if (!strchr(" \t\r\n", b->p[i]))
                        return false;
        return true;
}

static int probe_text(struct import_run *run, const struct import_source *s, struct probing *p)
{
        int rc = fill(run, s, &p->text, 64 * KIB);
        size_t blank = 0;
        while (blank < p->text.n && strchr(" \t\r\n\xef\xbb\xbf", p->text.p[blank]))
                blank++;
        if (rc || blank == p->text.n || !strchr("{[", p->text.p[blank]))
                return rc;
        while (rc == 0 && first_line(&p->text) == p->text.n && p->text.n < s->size &&
               p->text.n < HEAD_MAX)
                rc = fill(run, s, &p->text, p->text.n * 4);
        size_t n = first_line(&p->text);
        if (rc)
                return rc;
        struct str line = without_mark(str_span(p->text.p, n));
        if (json_parse(&p->first, line.p, line.n, NULL, NULL) == 0 &&
            json_type(&p->first, 0) == JSON_OBJECT)
                p->p.first = &p->first;
        if ((p->p.first && n < p->text.n && !rest_is_blank(&p->text, n)) || s->size > DOCUMENT_MAX)
                return 0;
        rc = fill(run, s, &p->text, (size_t)s->size);
        struct str whole = without_mark(buf_str(&p->text));
        if (rc == 0 && json_parse(&p->whole, whole.p, whole.n, NULL, NULL) == 0)
                p->p.whole = &p->whole;
        /* The text has moved. */
        line = without_mark(str_span(p->text.p, n));
        if (rc == 0 && p->p.first && json_parse(&p->first, line.p, line.n, NULL, NULL))
                p->p.first = NULL;
        return rc;
}

static int probe(struct import_run *run, const struct import_source *s, struct probing *p)
{
        static const char SQLITE[] = "SQLite format 3";
        char head[16] = "";
        *p = (struct probing){.p = {.path = s->path, .alone = s->nameless || s->fd < 0}};
        buf_init(&p->text, DOCUMENT_MAX + 1);
        json_init(&p->first);
        json_init(&p->whole);
        if (read_at(s, head, sizeof head, 0) == sizeof head &&
            memcmp(head, SQLITE, sizeof SQLITE) == 0) {
                if (s->fd < 0 || s->nameless)
                        return error_set(run->err, STENO_EUNSUPPORTED,
                            "a database is imported by its path, from the command line");
                p->db = open_database(s->path);
                if (!p->db)
                        return error_set(run->err, STENO_EIO, "the database cannot be opened");
                p->p.db = p->db;
                return 0;
        }
        return probe_text(run, s, p);
}

static void probe_release(struct probing *p)
{
        json_release(&p->first);
        json_release(&p->whole);
        buf_release(&p->text);
        sqlite3_close(p->db);
}

static int read_plain(struct import_run *run, const struct import_source *source)
{
        struct probing p;
        struct reading r = {.run = run, .source = source};
        arena_init(&r.arena);
        int rc = probe(run, source, &p);
        const struct foreign_kind *kind = rc ? NULL : foreign_find(&p.p);
        if (rc == 0 && kind) {
                rc = open_reading(&r, kind, &p.p);
                json_release(&p.first);
                json_release(&p.whole);
                p.p.first = p.p.whole = NULL;
                if (kind->shape == FOREIGN_LINES)
                        buf_release(&p.text);
                if (rc == 0)
                        rc = kind->shape == FOREIGN_LINES
                                 ? run_lines(&r)
                                 : run_whole(&r, without_mark(buf_str(&p.text)));
        }
        if (r.open)
                foreign_close(&r.t);
        arena_release(&r.arena);
        probe_release(&p);
        return rc ? rc : kind != NULL;
}

/* A compressed file is expanded to a nameless one first, and stands for the file that it was. */
static int read_compressed(struct import_run *run, const struct import_source *source)
{
        struct import_source plain = *source;
        size_t n = strlen(source->path);
        bool named = n > 4 && strcmp(source->path + n - 4, ".zst") == 0;
        char *path = strndup(source->path, named ? n - 4 : n);
        plain.path = path;
        plain.fd = path ? named_file_temp() : -ENOMEM;
        if (plain.fd < 0) {
                free(path);
                return error_sys(run->err, plain.fd, "making a temporary file");
        }
        int rc = unzstd_file(source->fd, plain.fd, &plain.size, run->err);
        if (rc == 0)
                rc = read_plain(run, &plain);
        fs_real()->close(fs_real(), plain.fd);
        free(path);
        return rc;
}

int import_source_read(struct import_run *run, const struct import_source *source)
{
        char head[4];
        bool compressed = source->fd >= 0 && read_at(source, head, sizeof head, 0) == sizeof head &&
                          unzstd_is(head, sizeof head);
        return compressed ? read_compressed(run, source) : read_plain(run, source);
}
