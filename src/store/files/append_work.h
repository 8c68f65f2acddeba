/*
 * append_work.h - what the files of an append share. Nobody else includes it.
 */
#ifndef STORE_FILES_APPEND_WORK_H
#define STORE_FILES_APPEND_WORK_H

#include "store/admission.h"
#include "store/files/conv.h"

/* An id or a key, and where its record will be. */
struct noted {
        uint64_t hash;
        uint64_t at;
};

struct group {
        struct admission admission; /* first: whoever gets it has the group */
        struct files_conv *conv;
        struct noted *noted; /* ids and keys of the admitted batches */
        size_t noted_count;
        size_t noted_cap;
        struct noted few[4]; /* where `noted` begins */
        struct buf out;      /* the records of the admitted batches */
        struct buf x;        /* scratch */
        bool sync;           /* someone asked for full durability */
        char at[TIME_TEXT];
        char last_at[TIME_TEXT]; /* of the last record; callers may give another time */
        unsigned char salts[16 * ABOUT_SALT]; /* random bytes for the next records, */
        size_t salt_count;                    /* and for how many there are some left */
};

/* files_append_find.c: how a group looks at the log. */
extern const struct admission_ops files_append_looks;

#endif
