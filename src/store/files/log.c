/* log.c - walking a log, and finding records in it: see log.h. Nothing here writes. */
#include "store/files/log.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define BLOCK (256 * KIB)
_Static_assert(offsetof(struct log_line, last_seq) == offsetof(struct log_line, out.last_seq),
    "a line and what is handed on have the same members");

/* How often a record is looked for behind damage in one line: its text may hold other records'. */
#define RESYNC_TRIES 16

int log_seek_last(const struct fs *fs, int fd, uint64_t end, uint64_t lines, uint64_t *at,
    struct steno_error *err)
{
        if (lines >= end) {
                *at = 0;
                return 0;
        }
        /* The last line ends with a line feed of its own, so one more is counted. */
        return line_reader_feed_before(fs, fd, end, lines + 1, at, err);
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
                        return error_sys(err, (int)got, "reading a log");
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

#define LUCKY_LOOKS 8 /* most records are found before that */

/* A part of a log that a search has come down to: see log_seek_after. */
struct narrowed {
        uint64_t lo;
        uint64_t hi;
        uint64_t lo_seq; /* of the record before lo; 0: lo is the beginning */
        uint64_t hi_seq; /* of the record at hi; 0: not known */
};

/*
 * Where to look next for the first record behind `seq`: where it would be if all records were of
 * one length, and one record before that, because what lies before it is soon passed over. Lengths
 * differ: where that did not find it soon, every other look is at the middle, so that their number
 * stays a logarithm.
 */
static uint64_t look_at(const struct narrowed *w, uint64_t seq, unsigned looks)
{
        uint64_t size = w->hi - w->lo, before = seq - w->lo_seq;
        uint64_t records = w->hi_seq > w->lo_seq + 1 ? w->hi_seq - w->lo_seq - 1 : 0;
        double each = records     ? (double)size / (double)records
                      : w->lo_seq ? (double)w->lo / (double)w->lo_seq
                                  : 0;
        double ahead = ((double)before - 1) * each;
        if (each <= 0 || (looks >= LUCKY_LOOKS && looks % 2))
                return w->lo + size / 2;
        if (ahead <= 0)
                return w->lo;
        return ahead < (double)size ? w->lo + (uint64_t)ahead : w->hi - 1;
}

int log_seek_after(
    const struct fs *fs, int fd, uint64_t end, uint64_t seq, uint64_t *at, struct steno_error *err)
{
        /* Invariant: every record before lo has a seq <= seq; one at or behind hi has a greater
         * one, or hi == end. Both are line starts. */
        struct narrowed w = {.hi = end};
        struct buf line;
        buf_init(&line, LINE_READ_MAX * 2);
        int rc = 0;
        if (seq == 0)
                w.hi = 0;
        for (unsigned looks = 0; w.lo < w.hi; looks++) {
                uint64_t mid = look_at(&w, seq, looks);
                uint64_t start = w.lo;
                if (mid > w.lo) {
                        rc = line_reader_feed_after(fs, fd, mid - 1, w.hi, &start, err);
                        if (rc == 0 && start >= w.hi) /* the last line before hi began earlier */
                                rc = line_reader_feed_before(fs, fd, mid, 1, &start, err);
                        if (rc)
                                goto out;
                        start = start > w.lo ? start : w.lo;
                }
                /* Damaged lines say nothing: step on to one that can be read. */
                struct record rec;
                uint64_t probe = start;
                for (;;) {
                        rc = log_read_at(fs, fd, end, probe, &line, &rec, err);
                        if (rc != STENO_ECORRUPT)
                                break;
                        rc = line_reader_feed_after(fs, fd, probe, w.hi, &probe, err);
                        if (rc || probe >= w.hi)
                                break;
                }
                if (rc)
                        goto out;
                if (probe >= w.hi) {
                        if (start == w.lo)
                                break;
                        w.hi = start;
                        w.hi_seq = 0;
                } else if (rec.seq <= seq) {
                        w.lo = probe + rec.line.n + 1;
                        w.lo_seq = rec.seq;
                } else {
                        w.hi = start;
                        w.hi_seq = rec.seq;
                        if (start == w.lo)
                                break;
                }
        }
        *at = w.lo;
out:
        buf_release(&line);
        return rc;
}

/* ---- the walk ---- */

void log_cursor_init(struct log_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end)
{
        *c = (struct log_cursor){.seq_known = at == 0};
        line_reader_init(&c->in, fs, fd, BLOCK, at, end);
}

void log_cursor_release(struct log_cursor *c)
{
        line_reader_release(&c->in);
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
        struct record *rec = &out->rec;
        if (!c->seq_known || c->bad || !record_take(line_reader_at_hand(&c->in), rec) ||
            rec->seq != c->seq + 1)
                return false;
        out->damaged = false;
        out->first_seq = out->last_seq = c->seq = rec->seq;
        out->at = c->in.next;
        c->in.next += rec->line.n + 1;
        return true;
}

/* Does the record with this seq stand too early, before a record with a smaller seq that would
 * continue the log? Then this record is the misplaced one. */
static int is_misplaced(struct log_cursor *c, uint64_t seq, bool *yes, struct steno_error *err)
{
        struct lines behind;
        struct str line;
        struct record next;
        uint64_t at;
        *yes = false;
        line_reader_init(&behind, c->in.fs, c->in.fd, BLOCK, c->in.next, c->in.end);
        int rc = line_reader_next(&behind, &line, &at, err);
        if (rc == 1 && record_read(line, &next))
                *yes = next.seq > c->seq && next.seq < seq;
        line_reader_release(&behind);
        return rc < 0 ? rc : 0;
}

/* What the reader came to. */
enum found { FOUND_END, FOUND_DAMAGE, FOUND_RECORD };

static void note_damage(struct log_cursor *c, uint64_t at)
{
        if (!c->bad)
                c->bad_at = at;
        c->bad = true;
}

/* Reads a line. A record that is not in its place is damage. */
static int find_next(struct log_cursor *c, struct record *rec, uint64_t *at, enum found *found,
    struct steno_error *err)
{
        struct str line;
        int rc = line_reader_next(&c->in, &line, at, err);
        if (rc < 0)
                return rc;
        *found = rc == 1 ? FOUND_DAMAGE : FOUND_END;
        if (rc == 0)
                return 0;
        if (!record_read(line, rec)) {
                note_damage(c, *at);
                if (!find_behind_damage(line, rec, at))
                        return 0;
        }
        bool misplaced = c->seq_known && rec->seq <= c->seq;
        if (!misplaced && c->seq_known && rec->seq > c->seq + 1) {
                rc = is_misplaced(c, rec->seq, &misplaced, err);
                if (rc < 0)
                        return rc;
        }
        if (misplaced)
                note_damage(c, *at);
        else
                *found = FOUND_RECORD;
        return 0;
}

/* Damage up to the next good record, which is kept for the next call, or to the end (NULL). */
static void hand_out_damage(
    struct log_cursor *c, struct log_line *out, const struct record *next, uint64_t at)
{
        uint64_t last = next ? next->seq - 1 : c->seq + 1;
        uint64_t first = c->seq_known ? c->seq + 1 : last;
        *out = (struct log_line){.damaged = true, .at = c->bad ? c->bad_at : at};
        if (first <= last && last > 0) {
                out->first_seq = first;
                out->last_seq = last;
        }
        c->bad = false;
        if (next) {
                c->held = *next;
                c->held_at = at;
                c->holding = true;
        } else {
                c->seq = last;
        }
}

int log_next(struct log_cursor *c, struct log_line *out, struct steno_error *err)
{
        struct record rec;
        uint64_t at = 0;
        enum found found = FOUND_DAMAGE;
        if (c->holding) {
                c->holding = false;
                hand_out(c, out, &c->held, c->held_at);
                return 1;
        }
        if (next_plain(c, out))
                return 1;
        while (found == FOUND_DAMAGE) {
                int rc = find_next(c, &rec, &at, &found, err);
                if (rc < 0)
                        return rc;
        }
        bool good = found == FOUND_RECORD;
        if (!good && !c->bad)
                return 0;
        if (good && !c->bad && (!c->seq_known || rec.seq == c->seq + 1))
                hand_out(c, out, &rec, at);
        else
                hand_out_damage(c, out, good ? &rec : NULL, at);
        return 1;
}

int log_next_seq(struct log_cursor *c, uint64_t seq, struct log_line *out, struct steno_error *err)
{
        int rc;
        while ((rc = log_next(c, out, err)) == 1)
                if (!out->damaged && out->rec.seq >= seq)
                        return out->rec.seq == seq;
        return rc;
}

int log_next_upto(
    struct log_cursor *c, uint64_t last_seq, struct log_line *out, struct steno_error *err)
{
        int rc = log_next(c, out, err);
        if (rc < 0 || (rc == 1 && !(out->damaged && !c->holding)))
                return rc;
        /* Behind the last good record. That more records were there is known only from last_seq. */
        uint64_t seq = rc == 1 && out->first_seq ? out->first_seq - 1 : c->seq;
        if (!c->seq_known)
                seq = last_seq ? last_seq - 1 : 0;
        if (seq >= last_seq) {
                /* No seq is missing, so these bytes were no record. */
                if (rc == 1 && last_seq) {
                        out->first_seq = out->last_seq = 0;
                        c->seq = seq;
                }
                return rc;
        }
        uint64_t at = rc == 1 ? out->at : c->in.end;
        *out = (struct log_line){
            .damaged = true, .first_seq = seq + 1, .last_seq = last_seq, .at = at};
        c->seq = last_seq;
        c->seq_known = true;
        return 1;
}
