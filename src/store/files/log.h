/*
 * log.h - messages.jsonl as bytes: where it ends, and walking its lines.
 *
 * A log is lines of model/record.h, each ended by a line feed, and nothing else. What follows is
 * the law of the file; numbers are cited where they are enforced.
 *
 *   L1  A record without its line feed is torn.
 *   L2  A batch is visible only when all of its records are there.
 *   L3  Nothing is written behind bytes that are not known to be synced, except as part of the
 *       same unsynced span; a record says how far behind it the last synced byte was when it was
 *       written (its `group`). So when a machine dies, only the last span can be torn.
 *   L4  In the last span everything from the first damaged or incomplete batch on is torn: no
 *       receipt was given for it. Damage before that is damage in the middle: it is reported, and
 *       no other record is affected.
 *   L5  The synced mark (ids.h) is a lower bound of what was synced. What lies before it is never
 *       torn, only damaged, and where the file is shorter, records are missing: their seqs were
 *       given out, and are not given out again.
 *
 * Reading needs no lock and no index: the end is found from the end, a seq by bisection.
 */
#ifndef STORE_FILES_LOG_H
#define STORE_FILES_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fs.h"
#include "model/record.h"
#include "store/backend_records.h"
#include "store/files/line_reader.h"
#include "steno.h"

/* The synced mark: this many bytes, up to this seq, are known to be on the disk. */
struct log_mark {
        uint64_t size; /* 0: unknown */
        uint64_t seq;  /* the last that was given out by then */
};

struct log_end {
        uint64_t size;     /* of the file when it was looked at */
        uint64_t end;      /* behind the last visible record; what follows up to size is torn */
        uint64_t last_seq; /* that was given out; 0: none */
        bool inside_line;  /* the mark is: that line has lost its line feed */
        bool lacks_end;    /* records up to last_seq are known to have been, and are not there */
        struct log_mark synced; /* what is known to be, from the mark and the records (L3) */
};

/*
 * Finds the visible end of a file of `size` bytes. Bounded by the last unsynced span, not by the
 * length of the log.
 */
int log_find_end(const struct fs *fs, int fd, uint64_t size, struct log_mark mark,
    struct log_end *out, struct steno_error *err);
/*
 * The same if it is unknown how far this file was synced, but records up to the seq `known` had
 * receipts: they are not torn, and damage before them is damage in the middle. *e is the result of
 * log_find_end without a mark.
 */
int log_find_end_known(
    const struct fs *fs, int fd, uint64_t known, struct log_end *e, struct steno_error *err);

/* One step of a walk. `out` has the same members, for code that hands lines on: copying the members
 * right after they were written would wait for these writes. */
struct log_line {
        union {
                struct {
                        struct record rec;  /* unset when damaged */
                        bool damaged;       /* no record could be read here; it stood for */
                        uint64_t first_seq; /* first_seq..last_seq, or for none of them (0) when */
                        uint64_t last_seq;  /* the neighbours' seqs leave no gap */
                };
                struct backend_record out;
        };
        uint64_t at; /* offset of the line */
};

/*
 * A walk forward over [at, end). Lines point into the cursor's buffer and live until the next
 * step.
 */
struct log_cursor {
        struct lines in;
        uint64_t seq;    /* last seq that was seen, to number what is damaged */
        bool seq_known;  /* false until the first record, when the walk began in the middle */
        uint64_t bad_at; /* damaged lines that wait for the next good seq */
        bool bad;
        struct record held; /* the good record behind reported damage */
        uint64_t held_at;
        bool holding;
};

/* `seq` is the seq of the record before `at`: known for at == 0 (0), else unknown. */
void log_cursor_init(struct log_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end);
void log_cursor_release(struct log_cursor *c);
/* 1 and a line, 0 at the end, or a negative code. */
int log_next(struct log_cursor *c, struct log_line *out, struct steno_error *err);
/* The record of this seq, behind whatever is damaged before it. 1: *out is it; 0: it is not there,
 * or cannot be read. */
int log_next_seq(struct log_cursor *c, uint64_t seq, struct log_line *out, struct steno_error *err);
/* log_next for a walk to the end of a log whose last seq is known: what is missing there is
 * damage as well. */
int log_next_upto(
    struct log_cursor *c, uint64_t last_seq, struct log_line *out, struct steno_error *err);

/* Offset of the first record with a seq greater than `seq` (== end when there is none). */
int log_seek_after(
    const struct fs *fs, int fd, uint64_t end, uint64_t seq, uint64_t *at, struct steno_error *err);
/* Offset of the line `lines` lines before the end (0 when there are fewer). */
int log_seek_last(const struct fs *fs, int fd, uint64_t end, uint64_t lines, uint64_t *at,
    struct steno_error *err);
/* Reads the line at `at` into `buf` and its record. STENO_ECORRUPT when it is none. */
int log_read_at(const struct fs *fs, int fd, uint64_t end, uint64_t at, struct buf *buf,
    struct record *out, struct steno_error *err);

#endif
