/*
 * log.c - see log.h.
 *
 * Walks read the file through a window that grows to the longest line and no further; searches
 * from the end and by bisection read small blocks. Nothing here writes.
 */
#include "store/files/log.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define BLOCK ((size_t)64 * 1024)
#define FIRST_READ ((size_t)256 * 1024)
/* A line that is longer than any we write is damage; it is stepped over, not read. */
#define LINE_READ_MAX (128 * MIB)
/* How often a record is looked for behind damage in one line: its text may hold other records'. */
#define RESYNC_TRIES 16

static int read_failed(struct steno_error *err, ssize_t got)
{
        return error_sys(err, (int)got, "reading messages.jsonl");
}

/* Offset behind the first line feed in [from, end); `end` when there is none. */
static int find_feed(const struct fs *fs, int fd, uint64_t from, uint64_t end, uint64_t *out,
    struct steno_error *err)
{
        char block[4096];
        while (from < end) {
                size_t want = end - from < sizeof block ? (size_t)(end - from) : sizeof block;
                ssize_t got = fs_pread_all(fs, fd, block, want, (off_t)from);
                if (got < 0)
                        return read_failed(err, got);
                if (got == 0)
                        break;
                char *lf = memchr(block, '\n', (size_t)got);
                if (lf) {
                        *out = from + (uint64_t)(lf - block) + 1;
                        return 0;
                }
                from += (uint64_t)got;
        }
        *out = end;
        return 0;
}

/*
 * Offset behind the `count`-th line feed before `end` (counting backwards, the one at end - 1
 * included); 0 when there are fewer.
 */
static int find_feed_back(const struct fs *fs, int fd, uint64_t end, uint64_t count, uint64_t *out,
    struct steno_error *err)
{
        char small[4096];
        char *block = small;
        uint64_t at = end;
        struct buf big;
        buf_init(&big, BLOCK);
        int rc = 0;
        while (at > 0) {
                /* Most logs answer from the last page; only then larger blocks pay. */
                size_t size = block == small ? sizeof small : BLOCK;
                uint64_t from = at > size ? at - size : 0;
                ssize_t got = fs_pread_all(fs, fd, block, (size_t)(at - from), (off_t)from);
                if (got < 0) {
                        rc = read_failed(err, got);
                        goto out;
                }
                size_t n = (size_t)got;
                char *lf;
                while ((lf = memrchr(block, '\n', n))) {
                        if (--count == 0) {
                                *out = from + (uint64_t)(lf - block) + 1;
                                goto out;
                        }
                        n = (size_t)(lf - block);
                }
                at = from;
                if (block == small) {
                        block = buf_reserve(&big, BLOCK);
                        if (!block) {
                                rc = buf_check(&big, err);
                                goto out;
                        }
                }
        }
        *out = 0;
out:
        buf_release(&big);
        return rc;
}

int log_seek_last(const struct fs *fs, int fd, uint64_t end, uint64_t lines, uint64_t *at,
    struct steno_error *err)
{
        if (lines >= end) {
                *at = 0;
                return 0;
        }
        /* The last line ends with a line feed of its own, so one more is counted. */
        return find_feed_back(fs, fd, end, lines + 1, at, err);
}

int log_read_at(const struct fs *fs, int fd, uint64_t end, uint64_t at, struct buf *buf,
    struct record *out, struct steno_error *err)
{
        size_t want = 4096;
        buf_clear(buf);
        while (at + buf->n < end) {
                if (want > end - at - buf->n)
                        want = (size_t)(end - at - buf->n);
                char *to = buf_reserve(buf, want);
                if (!to)
                        return buf_check(buf, err);
                ssize_t got = fs_pread_all(fs, fd, to, want, (off_t)(at + buf->n));
                if (got < 0)
                        return read_failed(err, got);
                if (got == 0)
                        break;
                buf->n += (size_t)got;
                char *lf = memchr(to, '\n', (size_t)got);
                if (lf) {
                        if (record_read(str_span(buf->p, (size_t)(lf - buf->p)), out))
                                return 0;
                        break;
                }
                if (buf->n > LINE_READ_MAX)
                        break;
                want = buf->n;
        }
        return error_set(
            err, STENO_ECORRUPT, "no readable record at byte %llu", (unsigned long long)at);
}

int log_seek_after(
    const struct fs *fs, int fd, uint64_t end, uint64_t seq, uint64_t *at, struct steno_error *err)
{
        /* Invariant: every record before lo has a seq <= seq; one at or behind hi has a greater
         * one, or hi == end. Both are line starts. */
        uint64_t lo = 0, hi = end;
        struct buf line;
        buf_init(&line, LINE_READ_MAX * 2);
        int rc = 0;
        if (seq == 0)
                hi = 0;
        while (lo < hi) {
                uint64_t mid = lo + (hi - lo) / 2;
                uint64_t start = lo;
                if (mid > lo) {
                        rc = find_feed(fs, fd, mid - 1, hi, &start, err);
                        if (rc)
                                goto out;
                        if (start >= hi)
                                start = lo;
                }
                /* Damaged lines say nothing: step on to one that can be read. */
                struct record rec;
                uint64_t probe = start;
                for (;;) {
                        rc = log_read_at(fs, fd, end, probe, &line, &rec, err);
                        if (rc != STENO_ECORRUPT)
                                break;
                        rc = find_feed(fs, fd, probe, hi, &probe, err);
                        if (rc || probe >= hi)
                                break;
                }
                if (rc)
                        goto out;
                if (probe >= hi) {
                        if (start == lo)
                                break;
                        hi = start;
                } else if (rec.seq <= seq) {
                        lo = probe + rec.line.n + 1;
                } else {
                        hi = start == probe ? probe : start;
                        if (start == lo)
                                break;
                }
        }
        *at = lo;
out:
        buf_release(&line);
        return rc;
}

/* ---- the walk ---- */

void log_cursor_init(struct log_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end)
{
        *c = (struct log_cursor){
            .fs = fs, .fd = fd, .end = end, .next = at, .window_at = at, .seq_known = at == 0};
        buf_init(&c->window, LINE_READ_MAX * 2);
}

void log_cursor_release(struct log_cursor *c)
{
        buf_release(&c->window);
}

/* Drops what was handed out and reads at least one more byte into the window. */
static int refill(struct log_cursor *c, struct steno_error *err)
{
        buf_drop_front(&c->window, (size_t)(c->next - c->window_at));
        c->window_at = c->next;
        uint64_t from = c->window_at + c->window.n;
        size_t want = c->window.n < FIRST_READ ? FIRST_READ : c->window.n;
        if (want > c->end - from)
                want = (size_t)(c->end - from);
        char *to = buf_reserve(&c->window, want);
        if (!to)
                return buf_check(&c->window, err);
        ssize_t got = fs_pread_all(c->fs, c->fd, to, want, (off_t)from);
        if (got < 0)
                return read_failed(err, got);
        c->window.n += (size_t)got;
        if ((size_t)got < want)
                c->end = from + (uint64_t)got; /* the file became shorter under us */
        return 0;
}

/* 1: *line is the next line; 0: the end; 2: a line too long to be a record was stepped over. */
static int next_line(struct log_cursor *c, struct str *line, uint64_t *at, struct steno_error *err)
{
        size_t searched = 0;
        for (;;) {
                size_t off = (size_t)(c->next - c->window_at);
                char *lf = NULL;
                if (c->window.n > off + searched)
                        lf = memchr(
                            c->window.p + off + searched, '\n', c->window.n - off - searched);
                if (lf) {
                        *line = str_span(c->window.p + off, (size_t)(lf - c->window.p) - off);
                        *at = c->next;
                        c->next += line->n + 1;
                        return 1;
                }
                searched = c->window.n - off;
                if (c->next + searched >= c->end)
                        return 0;
                if (searched > LINE_READ_MAX) {
                        *at = c->next;
                        int rc = find_feed(c->fs, c->fd, c->next, c->end, &c->next, err);
                        c->window_at = c->next;
                        buf_clear(&c->window);
                        return rc ? rc : 2;
                }
                int rc = refill(c, err);
                if (rc)
                        return rc;
        }
}

static void hand_out(
    struct log_cursor *c, struct log_line *out, const struct record *rec, uint64_t at)
{
        *out =
            (struct log_line){.rec = *rec, .first_seq = rec->seq, .last_seq = rec->seq, .at = at};
        c->seq = rec->seq;
        c->seq_known = true;
}

/*
 * Where the line feed between two records was destroyed, the second one still stands whole at the
 * end of what looks like one line. Damage must not cost it as well.
 */
static bool find_behind_damage(struct str line, struct record *rec, uint64_t *at)
{
        static const char BEGIN[] = "{\"v\":1,\"seq\":";
        const char *end = line.p + line.n;
        const char *p = line.p + (line.n > 0);
        for (int tries = 0; tries < RESYNC_TRIES; tries++) {
                p = memmem(p, (size_t)(end - p), BEGIN, sizeof BEGIN - 1);
                if (!p)
                        return false;
                if (record_read(str_span(p, (size_t)(end - p)), rec)) {
                        *at += (uint64_t)(p - line.p);
                        return true;
                }
                p++;
        }
        return false;
}

/* The next record, when it is what nearly all are: whole, in the window, and the next seq. */
static bool next_plain(struct log_cursor *c, struct log_line *out)
{
        size_t off = (size_t)(c->next - c->window_at);
        struct record *rec = &out->rec;
        if (!c->seq_known || c->bad || off >= c->window.n ||
            !record_take(str_span(c->window.p + off, c->window.n - off), rec) ||
            rec->seq != c->seq + 1)
                return false;
        out->damaged = false;
        out->first_seq = out->last_seq = c->seq = rec->seq;
        out->at = c->next;
        c->next += rec->line.n + 1;
        return true;
}

/* Does the record with this seq stand too early, before others that go on from where we are? Then
 * it is the one in the wrong place, and not those. */
static int is_misplaced(struct log_cursor *c, uint64_t seq, bool *yes, struct steno_error *err)
{
        struct log_cursor behind;
        struct str line;
        struct record next;
        uint64_t at;
        *yes = false;
        log_cursor_init(&behind, c->fs, c->fd, c->next, c->end);
        int rc = next_line(&behind, &line, &at, err);
        if (rc == 1 && record_read(line, &next))
                *yes = next.seq > c->seq && next.seq < seq;
        log_cursor_release(&behind);
        return rc < 0 ? rc : 0;
}

int log_next(struct log_cursor *c, struct log_line *out, struct steno_error *err)
{
        if (c->holding) {
                c->holding = false;
                hand_out(c, out, &c->held, c->held_at);
                return 1;
        }
        if (next_plain(c, out))
                return 1;
        for (;;) {
                struct str line;
                struct record rec;
                uint64_t at = 0;
                int rc = next_line(c, &line, &at, err);
                if (rc < 0)
                        return rc;
                bool read = rc == 1 && record_read(line, &rec);
                if (rc == 1 && !read) {
                        if (!c->bad)
                                c->bad_at = at;
                        c->bad = true;
                        read = find_behind_damage(line, &rec, &at);
                }
                bool good = read && (!c->seq_known || rec.seq > c->seq);
                if (good && c->seq_known && rec.seq > c->seq + 1) {
                        bool misplaced;
                        int failed = is_misplaced(c, rec.seq, &misplaced, err);
                        if (failed)
                                return failed;
                        good = !misplaced;
                }
                if (good && !c->bad && (!c->seq_known || rec.seq == c->seq + 1)) {
                        hand_out(c, out, &rec, at);
                        return 1;
                }
                if (rc > 0 && !good) {
                        if (!c->bad)
                                c->bad_at = at;
                        c->bad = true;
                        continue;
                }
                if (!good && !c->bad)
                        return 0;
                /* Damage up to the next good record, or to the end. */
                uint64_t last = good ? rec.seq - 1 : c->seq + 1;
                uint64_t first = c->seq_known ? c->seq + 1 : last;
                *out = (struct log_line){.damaged = true, .at = c->bad ? c->bad_at : at};
                if (first <= last && last > 0) {
                        out->first_seq = first;
                        out->last_seq = last;
                }
                c->bad = false;
                if (good) {
                        c->held = rec;
                        c->held_at = at;
                        c->holding = true;
                } else {
                        c->seq = last;
                }
                return 1;
        }
}

int log_next_seq(struct log_cursor *c, uint64_t seq, struct log_line *out, struct steno_error *err)
{
        int rc;
        while ((rc = log_next(c, out, err)) == 1)
                if (!out->damaged && out->rec.seq >= seq)
                        return out->rec.seq == seq;
        return rc;
}

/* ---- the end ---- */

int log_next_upto(
    struct log_cursor *c, uint64_t last_seq, struct log_line *out, struct steno_error *err)
{
        int rc = log_next(c, out, err);
        if (rc < 0 || (rc == 1 && !(out->damaged && !c->holding)))
                return rc;
        /* Behind the last good record: what is known to have been there has no other witness. */
        uint64_t seq = rc == 1 && out->first_seq ? out->first_seq - 1 : c->seq;
        if (!c->seq_known)
                seq = last_seq ? last_seq - 1 : 0;
        if (seq >= last_seq) {
                /* Bytes that no seq is missing for: whatever they were, they had none. */
                if (rc == 1 && last_seq) {
                        out->first_seq = out->last_seq = 0;
                        c->seq = seq;
                }
                return rc;
        }
        uint64_t at = rc == 1 ? out->at : c->end;
        *out = (struct log_line){
            .damaged = true, .first_seq = seq + 1, .last_seq = last_seq, .at = at};
        c->seq = last_seq;
        c->seq_known = true;
        return 1;
}

/*
 * Walks [at, limit) and keeps what is whole: *end is behind the last complete batch before the
 * first damaged or incomplete one (L2, L4). A copy of an earlier record is no record.
 */
static int keep_whole_batches(const struct fs *fs, int fd, uint64_t at, uint64_t limit,
    struct log_end *out, struct steno_error *err)
{
        struct log_cursor c;
        struct log_line line;
        uint32_t expect = 0, count = 0;
        uint64_t seq = out->last_seq;
        bool moved = out->inside_line; /* by hand: the mark may be in the middle of a batch */
        int rc;
        log_cursor_init(&c, fs, fd, at, limit);
        out->end = at;
        while ((rc = log_next(&c, &line, err)) == 1) {
                if (moved && !line.damaged)
                        expect = line.rec.batch_index;
                moved = false;
                if (line.damaged || line.rec.seq <= seq || line.rec.batch_index != expect ||
                    (count > 0 && expect > 0 && line.rec.batch_count != count))
                        break;
                count = line.rec.batch_count;
                expect++;
                seq = line.rec.seq;
                if (expect == count) {
                        out->end = line.at + line.rec.line.n + 1;
                        out->last_seq = seq;
                        expect = 0;
                }
        }
        log_cursor_release(&c);
        return rc < 0 ? rc : 0;
}

/* The last readable record before `limit` that ends behind `floor`; *at == limit: none. */
static int last_readable(const struct fs *fs, int fd, uint64_t limit, uint64_t floor,
    struct buf *line, struct record *rec, uint64_t *at, struct steno_error *err)
{
        uint64_t end = limit;
        while (end > floor) {
                uint64_t start;
                int rc = log_seek_last(fs, fd, end, 1, &start, err);
                if (rc)
                        return rc;
                if (start < floor)
                        start = floor; /* a line feed is missing there */
                rc = log_read_at(fs, fd, end, start, line, rec, err);
                if (rc == 0) {
                        *at = start;
                        return 0;
                }
                if (rc != STENO_ECORRUPT)
                        return rc;
                end = start;
        }
        *at = limit;
        return 0;
}

/* The seq of the last record before `at`, 0 when there is none. */
static int seq_before(const struct fs *fs, int fd, uint64_t at, struct buf *line, uint64_t *seq,
    struct steno_error *err)
{
        struct record rec;
        uint64_t found;
        int rc = last_readable(fs, fd, at, 0, line, &rec, &found, err);
        if (rc == 0)
                *seq = found == at ? 0 : rec.seq;
        return rc;
}

static int ends_line(const struct fs *fs, int fd, uint64_t at, bool *yes, struct steno_error *err)
{
        char byte = '\n';
        ssize_t got = at ? fs_pread_all(fs, fd, &byte, 1, (off_t)at - 1) : 0;
        *yes = byte == '\n';
        return got < 0 ? read_failed(err, got) : 0;
}

/*
 * Moves a mark that is inside a line to where the lines behind it begin. A record may stand right
 * there, its predecessor having lost its line feed; else that line goes on to the next one, and is
 * damage, or a record that somebody made longer.
 */
static int leave_line(const struct fs *fs, int fd, uint64_t feed, struct buf *line,
    struct log_mark *mark, struct steno_error *err)
{
        struct record rec;
        uint64_t start;
        int rc = log_read_at(fs, fd, feed, mark->size, line, &rec, err);
        if (rc != STENO_ECORRUPT)
                return rc;
        rc = find_feed_back(fs, fd, mark->size, 1, &start, err);
        if (rc == 0)
                rc = log_read_at(fs, fd, feed, start, line, &rec, err);
        if (rc == 0 && rec.seq > mark->seq)
                mark->seq = rec.seq;
        if (rc == 0 || rc == STENO_ECORRUPT)
                rc = find_feed(fs, fd, mark->size, feed, &mark->size, err);
        return rc;
}

/* The end of a log that has lines behind the mark: the last span decides (L3, L4). */
static int find_end_behind(const struct fs *fs, int fd, uint64_t feed, struct log_mark mark,
    struct buf *line, struct log_end *e, struct steno_error *err)
{
        struct record rec;
        uint64_t at = 0, before = 0;
        e->end = mark.size;
        e->last_seq = mark.seq;
        int rc = last_readable(fs, fd, feed, mark.size, line, &rec, &at, err);
        if (rc || at == feed)
                return rc;
        uint64_t from = rec.group <= at ? at - rec.group : 0;
        if (from > mark.size) {
                /* Where bytes were taken out of the log it may be inside a line. */
                rc = find_feed_back(fs, fd, from, 1, &from, err);
                if (rc)
                        return rc;
        }
        if (from < mark.size)
                from = mark.size;
        bool alone = rec.batch_count == 1 && from == at && at + rec.line.n + 1 == feed;
        /* Not the mark's: records that were missing may have been put back (L5). */
        rc = seq_before(fs, fd, from, line, &before, err);
        if (rc)
                return rc;
        if (from > mark.size)
                e->synced = (struct log_mark){from, before > mark.seq ? before : mark.seq};
        e->last_seq = before;
        if (alone && rec.seq > before) {
                e->end = feed; /* the common case: one whole record, all before it synced */
                e->last_seq = rec.seq;
        } else {
                rc = keep_whole_batches(fs, fd, from, feed, e, err);
        }
        if (e->last_seq < mark.seq)
                e->last_seq = mark.seq;
        return rc;
}

int log_find_end(const struct fs *fs, int fd, uint64_t size, struct log_mark mark,
    struct log_end *out, struct steno_error *err)
{
        struct buf line;
        uint64_t feed = 0;
        bool ended = true;
        if (mark.size > size)
                mark.size = size; /* records are missing, but their seqs were given out (L5) */
        struct log_end e = {.size = size, .end = mark.size, .last_seq = mark.seq, .synced = mark};
        buf_init(&line, LINE_READ_MAX * 2);
        int rc = size ? find_feed_back(fs, fd, size, 1, &feed, err) : 0; /* L1 */
        if (rc == 0 && mark.size != feed)
                rc = ends_line(fs, fd, mark.size, &ended, err);
        e.inside_line = !ended;
        if (rc == 0 && feed > mark.size && !ended)
                rc = leave_line(fs, fd, feed, &line, &mark, err);
        if (rc == 0 && feed > e.synced.size)
                rc = find_end_behind(fs, fd, feed, mark, &line, &e, err);
        if (rc == 0)
                *out = e;
        buf_release(&line);
        return rc;
}
