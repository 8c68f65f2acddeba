/*
 * files_check_work.h - what the files of a check share. Nobody else includes it.
 */
#ifndef STORE_FILES_FILES_CHECK_WORK_H
#define STORE_FILES_FILES_CHECK_WORK_H

#include "store/files/artifact.h"
#include "store/files/files_check.h"
#include "store/files/conv.h"
#include "store/files/purge_plan.h"

struct check_span {
        uint64_t first;
        uint64_t last;
};

/* What meta.json says of where a fork came from (files_check_origin.c). */
struct check_origin {
        bool read;
        uint64_t seq;            /* the last record that was taken; 0: it is no fork */
        bool listed;             /* it says which of them were lost */
        struct check_span *lost; /* these */
        size_t lost_count;
        int64_t created; /* when it was made, in ms */
};

struct check {
        struct files_conv *conv;
        const struct fs *fs;
        bool repair;
        char last_run[65]; /* whose journal was looked for */
        bool copy;         /* the store was copied here by cp, tar or rsync (files_is_copied) */
        check_fn each;
        void *ctx;
        struct steno_error *err;
        struct steno_error refused; /* why repairing stopped; code 0: it goes on */

        struct check_origin origin;
        struct artifact_info *artifacts; /* sorted by id */
        size_t artifact_count;
        bool no_manifest; /* something that is not a file stands in its place, and was told of */

        bool torn;              /* the log's end is not as it should be: for a repair only */
        struct purge_plan plan; /* made when something is missing: deleted messages may lack it */
        bool planned;
};

enum check_state {
        CHECK_STAYS, /* a repair cannot help */
        CHECK_REPAIRED,
        CHECK_REPAIRABLE,
        CHECK_MISSING,     /* nothing is left to mend; of a copy, a repair notes it */
        CHECK_LOST,        /* an earlier repair has put a tombstone in its place, */
        CHECK_LOST_LAST,   /* at the end: it may have come while a copy was made, */
        CHECK_LOST_BEFORE, /* or was lost before this fork was made: worth a note */
};

/* Of what a repair can mend, or could just now. */
enum check_state files_check_repaired(const struct check *k, bool could);
/*
 * What repairing returned. Where the system does not let it write, or has no room, it is only
 * looked from here on (`repair` is false then), and files_check_conv ends with that error.
 */
int files_check_wrote(struct check *k, int rc);
/* Hands out a finding. */
int files_check_tell(struct check *k, uint64_t seq, enum check_state state, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

enum files_check_entry {
        ENTRY_FINE, /* a file, or nothing */
        ENTRY_GONE, /* it was not a file, and is in the quarantine now */
        ENTRY_STAYS,
        ENTRY_LINK, /* which is not followed, and not for a repair to judge */
};
/*
 * files_check.c: is `path`, below the conversation's folder, a file? What else stands there
 * is told of. A folder in place of a file holds none of its bytes, so a repair moves it aside, and
 * the file is missing from then on: the caller says what was lost with it.
 */
int files_check_entry(struct check *k, const char *path, enum files_check_entry *out);

/* files_check_log.c: the log, ids.idx, and what records refer to. */
int files_check_log(struct check *k);
/* files_check.c: meta.json, and that ids.idx is a file. */
int files_check_meta(struct check *k);
int files_check_ids_file(struct check *k);
/* files_check_files.c: the manifest and all it names; parts; journals. */
int files_check_artifacts(struct check *k);
int files_check_runs(struct check *k);
/* That journals are files, and so is what a seal consists of. */
int files_check_run_files(struct check *k);
int files_check_seal(struct check *k);
/* files_check_origin.c: the last record that a fork took from its origin, which has the journals of
 * it; 0: it is none. */
uint64_t files_check_forked_seq(struct check *k);
/* Did a tombstone of a lost record come along when the fork was made? */
bool files_check_lost_before(struct check *k, const struct record *rec);
void files_check_origin_release(struct check *k);
/* The journal of the run that wrote a record is there. */
int files_check_journal_of(struct check *k, uint64_t seq, const struct about *about);
/* What a record refers to, which has the message `m`, is there. */
int files_check_refs(struct check *k, uint64_t seq, const struct about *about, struct str m);

#endif
