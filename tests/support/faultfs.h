/*
 * faultfs.h - a struct fs in which the n-th call goes wrong.
 *
 * Wraps any struct fs (fs_real, a crashfs) and counts the calls that a plan speaks of. The usual
 * sweep runs once with a plan that never fires to learn the count, then once for each n:
 *
 *      struct faultfs_plan plan = {.calls = FAULT_WRITES, .err = ENOSPC};
 *      faultfs_arm(f, &plan); work(); long n = faultfs_matched(f);
 *      for (plan.nth = 1; plan.nth <= n; plan.nth++) { faultfs_arm(f, &plan); work(); check(); }
 *
 * FAULT_FORGET makes mutants: a sync that answers 0 and does nothing, so that a crash test can
 * prove it would notice the line missing. `site` picks one place in the code by its order of first
 * appearance, whoever calls it and however often.
 *
 * Calls are thread-safe; arming is not, do it between runs.
 */
#ifndef SUPPORT_FAULTFS_H
#define SUPPORT_FAULTFS_H

#include "base/fs.h"

enum {
        FAULT_OPEN_ROOT = 1 << 0,
        FAULT_OPEN = 1 << 1,
        FAULT_CLOSE = 1 << 2, /* closes, then says it failed */
        FAULT_PREAD = 1 << 3,
        FAULT_PWRITE = 1 << 4,
        FAULT_WRITE = 1 << 5,
        FAULT_FDATASYNC = 1 << 6,
        FAULT_FSYNC = 1 << 7,
        FAULT_FTRUNCATE = 1 << 8,
        FAULT_FSTAT = 1 << 9,
        FAULT_STAT = 1 << 10,
        FAULT_MKDIR = 1 << 11,
        FAULT_RENAME = 1 << 12, /* and rename_new, link */
        FAULT_UNLINK = 1 << 13,
        FAULT_FLOCK = 1 << 14,
        FAULT_LIST = 1 << 15,
        FAULT_MAGIC = 1 << 16,
        FAULT_RESERVE = 1 << 17,
        FAULT_ANY = (1 << 18) - 1,

        FAULT_WRITES = FAULT_PWRITE | FAULT_WRITE,
        FAULT_SYNCS = FAULT_FDATASYNC | FAULT_FSYNC,
        /* What needs room on the disk. */
        FAULT_SPACE = FAULT_OPEN | FAULT_WRITES | FAULT_FTRUNCATE | FAULT_MKDIR | FAULT_RENAME |
                      FAULT_SYNCS | FAULT_RESERVE,
};

enum faultfs_kind {
        FAULT_FAIL, /* does nothing, answers -err */
        /* A read or write of more than one byte moves half of it. With `for_good` the calls after
         * it fail with `err`: a disk that fills up. Other calls fail as with FAULT_FAIL. */
        FAULT_SHORT,
        FAULT_FORGET, /* does nothing, answers 0; for syncs, truncates and unlinks */
};

struct faultfs_plan {
        unsigned calls; /* which, as a mask; 0: FAULT_ANY */
        enum faultfs_kind kind;
        int err;          /* a positive errno; 0: EIO */
        long nth;         /* fires at the n-th matching call, from 1; 0: never */
        bool for_good;    /* and at every one after it */
        const char *name; /* fnmatch pattern for the last component of the path that the call names
                             or that its descriptor was opened with; NULL: any */
        int site;         /* only calls of the n-th calling place, from 1; 0: any */
};

struct faultfs;

/* NULL when out of memory. Starts without a plan. */
struct faultfs *faultfs_new(const struct fs *under);
void faultfs_free(struct faultfs *f);
const struct fs *faultfs_fs(struct faultfs *f);

/* Takes a copy of the plan (NULL: none) and starts the counts anew; sites stay known. `name` must
 * live as long as the plan. */
void faultfs_arm(struct faultfs *f, const struct faultfs_plan *plan);
/* Counts the calls that matched since then, and how often the plan fired. */
long faultfs_matched(const struct faultfs *f);
long faultfs_fired(const struct faultfs *f);
/* Works on another fs from now on; sites stay known. */
void faultfs_over(struct faultfs *f, const struct fs *under);
/* The return address of the n-th place, from 1, that called something in `calls`; NULL: none. */
const void *faultfs_site(const struct faultfs *f, unsigned calls, int n);
/* Places in the code that have called something in `calls` so far. */
int faultfs_sites(const struct faultfs *f, unsigned calls);

#endif
