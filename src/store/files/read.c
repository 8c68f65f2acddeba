/*
 * read.c - reading a conversation. Takes no lock and waits for nobody: a reader opens the log,
 * finds its visible end, and walks.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/watch.h"
#include "store/files/log_seen.h"

/* For readers of messages: a log that is missing or unreadable is not an empty log. */
static int open_log(struct files_conv *c, struct log_reader *r, struct steno_error *err)
{
        int rc = log_reader_open(c, r, err);
        if (rc || r->at.last_seq)
                return rc;
        rc = r->fd < 0 ? conv_lacks_log(c, 0, err)
                       : conv_refuse_changed(c, r->fd, log_reader_ids(r), &r->at, err);
        if (rc)
                log_reader_close(r);
        return rc;
}

/* A tombstone that a repair put in the place of damage is damage to everyone who reads messages.
 * Amendments begin with their kind, and nearly no record is one. */
static const struct backend_record *record_of(struct log_line *line)
{
        if (!line->damaged && str_starts(line->rec.x, "{\"kind\":"))
                line->damaged = about_is_lost(line->rec.x);
        return &line->out;
}

static int walk(struct log_reader *r, uint64_t from, uint64_t after, backend_record_fn each,
    void *ctx, struct steno_error *err)
{
        struct log_cursor cursor;
        struct log_line line;
        int rc;
        log_cursor_init(&cursor, r->fs, r->fd, from, r->at.end);
        if (after) {
                cursor.seq = after;
                cursor.seq_known = true;
        }
        while ((rc = log_next_upto(&cursor, r->at.last_seq, &line, err)) == 1) {
                rc = each(ctx, record_of(&line));
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        return rc;
}

int files_read(struct files_conv *c, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct log_reader r;
        uint64_t from = 0;
        int rc = open_log(c, &r, err);
        if (rc)
                return rc;
        if (after < r.at.last_seq) {
                rc = log_seek_after(r.fs, r.fd, r.at.end, after, &from, err);
                if (rc == 0)
                        rc = walk(&r, from, after, each, ctx, err);
        }
        log_reader_close(&r);
        return rc;
}

int files_read_last(struct files_conv *c, uint64_t lines, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct log_reader r;
        uint64_t from = 0;
        int rc = log_reader_open(c, &r, err);
        if (rc)
                return rc;
        if (r.at.last_seq && lines)
                rc = log_seek_last(r.fs, r.fd, r.at.end, lines, &from, err);
        if (rc == 0 && r.at.last_seq && lines)
                rc = walk(&r, from, 0, each, ctx, err);
        log_reader_close(&r);
        return rc;
}

int files_last(struct files_conv *c, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        struct log_reader r;
        int rc = log_reader_open(c, &r, err);
        if (rc)
                return rc;
        if (seq)
                *seq = r.at.last_seq;
        if (bytes)
                *bytes = r.at.end;
        log_reader_close(&r);
        return 0;
}

/* ---- by id ---- */

struct by_id {
        struct log_reader *r;
        struct str want;
        struct buf line;
        struct buf id;
        struct record rec;
        bool found;
        int rc;
        struct steno_error *err;
};

static bool is_wanted(struct by_id *b, const struct record *rec)
{
        buf_clear(&b->id);
        json_unescape(rec->id, &b->id, NULL);
        if (b->id.failed)
                b->rc = error_nomem(b->err);
        return !b->id.failed && str_eq(buf_str(&b->id), b->want);
}

static int try_offset(void *ctx, uint64_t at)
{
        struct by_id *b = ctx;
        if (at >= b->r->at.end)
                return 0;
        b->rc = log_read_at(b->r->fs, b->r->fd, b->r->at.end, at, &b->line, &b->rec, b->err);
        if (b->rc == STENO_ECORRUPT)
                b->rc = 0;
        else if (b->rc == 0)
                b->found = is_wanted(b, &b->rec);
        return b->rc || b->found;
}

static int try_walked(void *ctx, const struct backend_record *r)
{
        struct by_id *b = ctx;
        if (r->damaged || !is_wanted(b, &r->rec))
                return b->rc != 0;
        buf_clear(&b->line);
        buf_put_str(&b->line, r->rec.line);
        b->found = !b->line.failed && record_peek(buf_str(&b->line), &b->rec);
        if (!b->found)
                b->rc = error_nomem(b->err);
        return 1;
}

int files_read_id(
    struct files_conv *c, struct str id, backend_record_fn each, void *ctx, struct steno_error *err)
{
        struct log_reader r;
        int rc = open_log(c, &r, err);
        if (rc)
                return rc;
        struct by_id b = {.r = &r, .want = id, .err = err};
        buf_init(&b.line, 0);
        buf_init(&b.id, 0);
        struct ids *ids = log_reader_ids(&r);
        ids_lookup(ids, ids_hash_id(id), try_offset, &b);
        uint64_t covered = ids_covered(ids);
        if (covered > r.at.end)
                covered = 0; /* of a longer log: what it does not know may be there */
        if (!b.rc && !b.found && covered < r.at.end) {
                rc = walk(&r, covered, 0, try_walked, &b, err);
                if (rc < 0)
                        b.rc = rc;
        }
        rc = b.rc;
        if (rc == 0 && b.found) {
                struct backend_record rec = {
                    .rec = b.rec, .first_seq = b.rec.seq, .last_seq = b.rec.seq};
                rc = each(ctx, &rec);
        } else if (rc == 0) {
                rc = error_set(err, STENO_ENOTFOUND, "no message \"%.*s\"",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        }
        buf_release(&b.line);
        buf_release(&b.id);
        log_reader_close(&r);
        return rc;
}

/* ---- by seq ---- */

/* The record of this seq, which is in `line` then. 1: it was found; 0: it is not there, or cannot
 * be read. */
static int find_seq(struct log_reader *r, uint64_t seq, struct buf *line, struct record *out,
    struct steno_error *err)
{
        struct log_cursor cursor;
        struct log_line found;
        uint64_t at;
        int rc = log_seek_after(r->fs, r->fd, r->at.end, seq - 1, &at, err);
        if (rc || at >= r->at.end)
                return rc;
        rc = log_read_at(r->fs, r->fd, r->at.end, at, line, out, err);
        if (rc == 0 && out->seq == seq)
                return 1;
        if (rc && rc != STENO_ECORRUPT)
                return rc;
        /* Something is damaged there. The record may stand behind it. */
        log_cursor_init(&cursor, r->fs, r->fd, at, r->at.end);
        rc = log_next_seq(&cursor, seq, &found, err);
        if (rc == 1) {
                buf_clear(line);
                buf_put_str(line, found.rec.line);
                if (line->failed || !record_peek(buf_str(line), out))
                        rc = error_nomem(err);
        }
        log_cursor_release(&cursor);
        return rc;
}

/* ---- lookups: many records of one log ---- */

/* So much is read around the place where a record should be: about a dozen short ones. */
#define NEAR_WINDOW (8 * KIB)
#define NEAR_TRIES 3

struct files_lookup {
        struct backend_lookup base;
        struct log_reader r;
        struct buf line;
        struct buf window; /* of the log, from window_at on */
        uint64_t window_at;
        uint64_t known_seq; /* of a record that stands at known_at; 1 at first */
        uint64_t known_at;
};

/* Where it would be if all records between it and what is known were of one length. */
static uint64_t guess_place(const struct files_lookup *l, uint64_t seq)
{
        bool before = seq < l->known_seq;
        uint64_t size = before ? l->known_at : l->r.at.end - l->known_at;
        uint64_t records = before ? l->known_seq - 1 : l->r.at.last_seq + 1 - l->known_seq;
        double part = (double)(before ? seq - 1 : seq - l->known_seq) / (double)records;
        return (before ? 0 : l->known_at) + (uint64_t)(part * (double)size);
}

/* Counts lines of the window from its first whole one on. 1: the record is there; 0: it is outside
 * of the window, and more is known of where; -1: this is no place for guesses. */
static int find_in_window(struct files_lookup *l, uint64_t seq, struct record *out)
{
        const char *p = l->window.p, *end = p + l->window.n, *lf;
        if (l->window_at) {
                p = l->window.n ? memchr(p, '\n', l->window.n) : NULL;
                p = p ? p + 1 : end;
        }
        lf = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        if (!lf || !record_peek(str_span(p, (size_t)(lf - p)), out))
                return -1;
        for (uint64_t left = seq < out->seq ? 0 : seq - out->seq; left && lf; left--) {
                const char *next = lf + 1;
                lf = next < end ? memchr(next, '\n', (size_t)(end - next)) : NULL;
                p = lf ? next : p;
        }
        bool whole = lf && record_read(str_span(p, (size_t)(lf - p)), out);
        if (!whole && (lf || !record_peek(str_span(p, (size_t)(end - p)), out)))
                return -1;
        l->known_seq = out->seq;
        l->known_at = l->window_at + (uint64_t)(p - l->window.p);
        return out->seq == seq ? (whole ? 1 : -1) : 0;
}

/*
 * Most records are where their neighbours suggest, and successive look-ups are often close
 * together: then one read is enough, or none. 1: it was found; 0: look for it in another way.
 */
static int find_near(struct files_lookup *l, uint64_t seq, struct record *out)
{
        int rc = l->window.n ? find_in_window(l, seq, out) : 0;
        for (unsigned tries = 0; rc == 0 && tries < NEAR_TRIES; tries++) {
                uint64_t at = guess_place(l, seq);
                at = at > NEAR_WINDOW / 2 ? at - NEAR_WINDOW / 2 : 0;
                buf_clear(&l->window);
                char *to = buf_reserve(&l->window, NEAR_WINDOW);
                if (!to || at >= l->r.at.end)
                        return 0;
                uint64_t left = l->r.at.end - at;
                ssize_t got = fs_pread_all(l->r.fs, l->r.fd, to,
                    left < NEAR_WINDOW ? (size_t)left : NEAR_WINDOW, (off_t)at);
                if (got <= 0)
                        return 0;
                l->window.n = (size_t)got;
                l->window_at = at;
                rc = find_in_window(l, seq, out);
        }
        if (rc != 1) { /* what was learned may be of a damaged place */
                buf_clear(&l->window);
                l->known_seq = 1;
                l->known_at = 0;
        }
        return rc == 1;
}

int files_lookup_open(struct files_conv *c, struct files_lookup **out, struct steno_error *err)
{
        struct files_lookup *l = calloc(1, sizeof *l);
        if (!l)
                return error_nomem(err);
        int rc = open_log(c, &l->r, err);
        if (rc) {
                free(l);
                return rc;
        }
        l->base.ops = &files_backend;
        l->known_seq = 1;
        buf_init(&l->line, 0);
        buf_init(&l->window, 0);
        *out = l;
        return 0;
}

int files_lookup_record(struct files_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct backend_record rec = {.first_seq = seq, .last_seq = seq};
        if (seq == 0 || seq > l->r.at.last_seq)
                return 0;
        int rc = find_near(l, seq, &rec.rec);
        if (rc == 0)
                rc = find_seq(&l->r, seq, &l->line, &rec.rec, err);
        if (rc <= 0)
                return rc;
        rec.damaged = about_is_lost(rec.rec.x);
        return each(ctx, &rec);
}

void files_lookup_close(struct files_lookup *l)
{
        if (!l)
                return;
        buf_release(&l->line);
        buf_release(&l->window);
        log_reader_close(&l->r);
        free(l);
}

/* ---- amendments ---- */

struct amendments {
        uint64_t *seqs; /* that a walk found */
        size_t count;
        size_t cap;
        uint64_t below; /* seqs from here on are not wanted */
        bool damaged;   /* not all could be read */
};

static int add_amendment(struct amendments *a, uint64_t seq)
{
        if (!grow_room(a->seqs, a->count, a->cap))
                return STENO_ENOMEM;
        a->seqs[a->count++] = seq;
        return 0;
}

static int note_amendment(void *ctx, const struct backend_record *r)
{
        struct amendments *a = ctx;
        a->damaged |= r->damaged;
        if (r->damaged || !str_starts(r->rec.x, "{\"kind\":"))
                return 0;
        return r->rec.seq >= a->below ? 1 : add_amendment(a, r->rec.seq);
}

static int find_amendments(struct log_reader *r, uint64_t from, uint64_t below,
    struct amendments *out, struct steno_error *err)
{
        out->below = below;
        int rc = walk(r, from, 0, note_amendment, out, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        return rc < 0 ? rc : 0;
}

/* Hands out the amendment at `seq`; *prev is the one before it. *lost: it cannot be read, which
 * whoever walks the log reports. */
static int amendment_at(struct log_reader *r, uint64_t seq, struct buf *line,
    backend_record_fn each, void *ctx, uint64_t *prev, bool *lost, struct steno_error *err)
{
        struct backend_record out = {.first_seq = seq, .last_seq = seq};
        struct about about;
        struct arena arena;
        *prev = 0;
        int rc = find_seq(r, seq, line, &out.rec, err);
        *lost = rc == 0;
        if (rc != 1)
                return rc;
        arena_init(&arena);
        rc = about_read(out.rec.x, &arena, &about, err);
        arena_release(&arena);
        if (rc == 0) {
                *prev = about.prev < seq ? about.prev : 0;
                rc = each(ctx, &out);
        }
        return rc;
}

/* What is handed out next: what a walk found, then the chain. */
struct unread {
        struct amendments found; /* ascending */
        uint64_t next;           /* of the chain, 0: at its end */
        bool chained;
};

/* What was found before and what has come since; else what lies behind the index, and the chain
 * that ids.idx knows the end of. */
static int begin_unread(struct log_reader *r, struct unread *u, struct steno_error *err)
{
        struct amendments *found = &u->found;
        uint64_t from;
        if (log_reader_amends(r, &from, &found->seqs, &found->count)) {
                found->cap = found->count;
        } else {
                const struct ids *ids = log_reader_ids(r);
                from = ids_covered(ids);
                u->next = ids->last_amend <= r->at.last_seq ? ids->last_amend : 0;
                u->chained = true;
        }
        return from < r->at.end ? find_amendments(r, from, UINT64_MAX, found, err) : 0;
}

/* The seqs that were handed out, newest first, are kept for the next reader. */
static void keep_amendments(const struct log_reader *r, struct amendments *out)
{
        for (size_t i = 0; i < out->count / 2; i++) {
                uint64_t seq = out->seqs[i];
                out->seqs[i] = out->seqs[out->count - 1 - i];
                out->seqs[out->count - 1 - i] = seq;
        }
        log_reader_keep_amends(r, out->seqs, out->count);
}

/* From the newest to the oldest. Where a link of the chain is lost, all before it are looked for.
 */
int files_read_amendments(
    struct files_conv *c, backend_record_fn each, void *ctx, struct steno_error *err)
{
        struct log_reader r;
        struct unread u = {.chained = false};
        struct amendments out = {0};
        struct buf line;
        int rc = open_log(c, &r, err);
        if (rc)
                return rc;
        buf_init(&line, 0);
        rc = begin_unread(&r, &u, err);
        while (rc == 0 && (u.found.count || u.next)) {
                uint64_t prev;
                bool lost;
                uint64_t seq = u.found.count ? u.found.seqs[--u.found.count] : u.next;
                bool follow = u.chained && u.found.count == 0;
                rc = amendment_at(&r, seq, &line, each, ctx, &prev, &lost, err);
                out.damaged |= lost;
                if (rc == 0 && add_amendment(&out, seq))
                        rc = error_nomem(err);
                if (rc == 0 && lost && follow) {
                        rc = find_amendments(&r, 0, seq, &u.found, err);
                        u.chained = false;
                        u.next = 0;
                } else if (follow) {
                        /* The index may know one that the walk has handed out already. */
                        u.next = prev ? prev : u.next < seq ? u.next : 0;
                }
        }
        if (rc == 0 && !out.damaged && !u.found.damaged)
                keep_amendments(&r, &out);
        free(u.found.seqs);
        free(out.seqs);
        buf_release(&line);
        log_reader_close(&r);
        return rc;
}

/* ---- following ---- */

/* Does its path still name the folder that is open? One in the trash has no path to look at. */
static int check_there(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        if (!c->project || c->project->conversations < 0)
                return 0;
        int sys = fs->stat(fs, c->project->conversations, c->folder, &st);
        if (sys == -ENOENT || (sys == 0 && (st.st_ino != c->dir_ino || st.st_dev != c->dir_dev)))
                return error_set(
                    err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        return 0;
}

static int look_again(struct files_conv *c, uint64_t *seq, struct steno_error *err)
{
        int rc = files_last(c, seq, NULL, err);
        return rc ? rc : check_there(c, err);
}

int files_wait(struct files_conv *c, uint64_t after, int timeout_ms, struct steno_error *err)
{
        struct watch watch;
        uint64_t seq;
        int rc = look_again(c, &seq, err);
        if (rc || seq > after || timeout_ms == 0)
                return rc ? rc : seq > after;
        watch_begin(&watch, c->dir, timeout_ms);
        do
                rc = look_again(c, &seq, err);
        while (rc == 0 && seq <= after && watch_wait(&watch));
        watch_end(&watch);
        return rc ? rc : seq > after;
}
