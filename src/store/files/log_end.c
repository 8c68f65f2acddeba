/*
 * log_end.c - where a log ends: the laws of log.h, applied to what a crash or a person's editor has
 * left. Nothing here writes.
 */
#include "store/files/log.h"

#include "base/error.h"
#include "store/files/line_reader.h"

/*
 * Walks [at, limit) and keeps what is whole: *end is behind the last complete batch before the
 * first damaged or incomplete one (L2, L4). A copy of an earlier record is not a record.
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

struct part {
        uint64_t from;
        uint64_t to;
};

/* The last readable record of a part of the log; *at == part.to: there is none. */
static int last_readable(const struct fs *fs, int fd, struct part part, struct buf *line,
    struct record *rec, uint64_t *at, struct steno_error *err)
{
        uint64_t end = part.to;
        while (end > part.from) {
                uint64_t start;
                int rc = log_seek_last(fs, fd, end, 1, &start, err);
                if (rc)
                        return rc;
                if (start < part.from)
                        start = part.from; /* a line feed is missing there */
                rc = log_read_at(fs, fd, end, start, line, rec, err);
                if (rc == 0) {
                        *at = start;
                        return 0;
                }
                if (rc != STENO_ECORRUPT)
                        return rc;
                end = start;
        }
        *at = part.to;
        return 0;
}

/* The seq of the last record before `at`, 0 when there is none. */
static int seq_before(const struct fs *fs, int fd, uint64_t at, struct buf *line, uint64_t *seq,
    struct steno_error *err)
{
        struct record rec;
        uint64_t found;
        int rc = last_readable(fs, fd, (struct part){0, at}, line, &rec, &found, err);
        if (rc == 0)
                *seq = found == at ? 0 : rec.seq;
        return rc;
}

static int ends_line(const struct fs *fs, int fd, uint64_t at, bool *yes, struct steno_error *err)
{
        char byte = '\n';
        ssize_t got = at ? fs_pread_all(fs, fd, &byte, 1, (off_t)at - 1) : 0;
        *yes = byte == '\n';
        return got < 0 ? error_sys(err, (int)got, "reading a log") : 0;
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
        rc = line_reader_feed_before(fs, fd, mark->size, 1, &start, err);
        if (rc == 0)
                rc = log_read_at(fs, fd, feed, start, line, &rec, err);
        if (rc == 0 && rec.seq > mark->seq)
                mark->seq = rec.seq;
        if (rc == 0 || rc == STENO_ECORRUPT)
                rc = line_reader_feed_after(fs, fd, mark->size, feed, &mark->size, err);
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
        int rc = last_readable(fs, fd, (struct part){mark.size, feed}, line, &rec, &at, err);
        if (rc || at == feed)
                return rc;
        uint64_t from = rec.group <= at ? at - rec.group : 0;
        if (from > mark.size) {
                /* Where bytes were taken out of the log it may be inside a line. */
                rc = line_reader_feed_before(fs, fd, from, 1, &from, err);
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

/* Behind the last whole record in [at, limit) whose seq is at most `known`; `at` where there is
 * none. *seq is its seq. */
static int find_known(const struct fs *fs, int fd, uint64_t limit, uint64_t known, uint64_t *at,
    uint64_t *seq, struct steno_error *err)
{
        struct log_cursor c;
        struct log_line line;
        int rc;
        log_cursor_init(&c, fs, fd, *at, limit);
        while ((rc = log_next(&c, &line, err)) == 1) {
                if (line.damaged || line.rec.seq <= *seq)
                        continue;
                if (line.rec.seq > known)
                        break;
                *seq = line.rec.seq;
                *at = line.at + line.rec.line.n + 1;
        }
        log_cursor_release(&c);
        return rc < 0 ? rc : 0;
}

int log_find_end_known(
    const struct fs *fs, int fd, uint64_t known, struct log_end *e, struct steno_error *err)
{
        struct log_mark mark = {e->end, e->last_seq};
        if (known <= e->last_seq || e->end == e->size)
                return 0;
        int rc = find_known(fs, fd, e->size, known, &mark.size, &mark.seq, err);
        if (rc || mark.size == e->end)
                return rc;
        return log_find_end(fs, fd, e->size, mark, e, err);
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
        int rc = size ? line_reader_feed_before(fs, fd, size, 1, &feed, err) : 0; /* L1 */
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
