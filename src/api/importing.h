/*
 * importing.h - what the files of an import of transcripts share. Nobody else includes it.
 *
 *   importer.c         the public calls, which files there are, the report
 *   import_source.c    one source: what it is, and reading it
 *   import_target.c    one conversation: what of the items is new, and storing it
 */
#ifndef API_IMPORTING_H
#define API_IMPORTING_H

#include "api/api_store.h"
#include "api/api_append.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "foreign/foreign.h"

struct import_counts {
        uint64_t files, conversations, messages, calls, results, replaced, forks, other, skipped,
            damaged, torn, unknown;
};

/* A run of an importer. */
struct import_run {
        struct steno_store *store;
        const char *project;
        steno_progress progress;
        void *progress_ctx;
        struct import_counts counts;
        uint64_t bytes;
        struct buf changed; /* of the report: objects with commas */
        struct buf errors;
        struct steno_error *err;
};

/* ---- a conversation ---- */

#define IMPORT_PENDING_MAX 512

/* What is known of the file that a conversation came from (meta.json, "import"). */
struct import_memory {
        uint64_t bytes; /* of the file that were read */
        char sha256[SHA256_HEX];
        uint64_t entries; /* items in them */
        uint64_t seq;     /* last record that an import has written */
};

struct import_target {
        struct import_run *run;
        const char *tool;
        const char *path;
        char *session;           /* the tool's */
        char *id;                /* of the conversation it is in now: the last of its forks */
        struct steno_conv *conv; /* NULL: there is none yet */
        struct import_memory before;
        bool has_before;
        bool compared;    /* entries are held against those that are there: they may differ */
        uint64_t matched; /* seq of the last one that is the same */
        uint64_t entries;
        unsigned forks;
        char state; /* 'n'ew, 'g'rown, 'f'orked or 0 */
        char *title;
        bool titled;     /* by the tool */
        uint64_t *bloom; /* ids that may be there; NULL: the log is asked for each */
        size_t bloom_bits;
        struct arena pending_arena;
        struct append_item pending[IMPORT_PENDING_MAX];
        uint64_t pending_hash[IMPORT_PENDING_MAX]; /* of ids */
        size_t pending_count;
        size_t pending_bytes;
};

/* Finds the conversation of a session, and what is known of it. `expected` is about how many bytes
 * will come. */
int import_target_open(struct import_target *t, struct import_run *run, const char *tool,
    const char *path, const struct foreign_session *s, uint64_t expected);
int import_target_take(struct import_target *t, const struct foreign_item *item);
/* Stores what is pending. */
int import_target_flush(struct import_target *t);
/* The same, and remembers the source. `memory` has bytes and sha256, or is NULL. */
int import_target_finish(struct import_target *t, const struct foreign_session *s,
    const struct import_memory *memory, uint64_t inode);
void import_target_release(struct import_target *t);

/* ---- a source ---- */

/* A file, or a text at hand. */
struct import_source {
        const char *path;
        int fd; /* -1: a text */
        struct str text;
        uint64_t size;
        uint64_t inode;
        bool nameless; /* the path is only a name: it came without its folder */
};

/* 1: it was a transcript; 0: it is none that we know. */
int import_source_read(struct import_run *run, const struct import_source *source);

#endif
