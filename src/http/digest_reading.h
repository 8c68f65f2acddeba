/*
 * digest_reading.h - how a digest comes about: the log of its conversation and the journals of its
 * runs are read once, and from there on when they have grown. Only the files digest*.c include
 * this.
 */
#ifndef HTTP_DIGEST_READING_H
#define HTTP_DIGEST_READING_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "http/digests.h"
#include "http/walk.h"

#define DIGEST_COUNTS_MAX 200 /* tools, and models */
#define DIGEST_NAME_BYTES 200 /* of a tool or a call that is kept */

struct digest_open_call {
        uint64_t hash; /* of its id */
        uint64_t seq;
        size_t tool;
};

/* What a conversation without a title is called by. The words of the user are best, then those of
 * a reply, the first tool, what the system says, and that there is an image at all. */
enum digest_title_rank {
        TITLE_NONE,
        TITLE_PART,
        TITLE_SYSTEM,
        TITLE_TOOL,
        TITLE_REPLY,
        TITLE_USER
};

struct digest_entry {
        struct digest d; /* the first member: a digest is its entry */
        struct digest_entry *next, *newer, *older;
        char *project;
        char *id;
        unsigned users;
        pthread_mutex_t mutex;
        struct digest_open_call *open;
        size_t open_count;
        int64_t before_at;      /* of the record before */
        int64_t reply_at;       /* of the last reply */
        uint64_t reply;         /* hash of the reply whose usage was taken last, */
        uint64_t reply_message; /* and of the record that it was taken from */
        uint64_t unnamed;       /* hash of the last reply's id, when its model is not known */
        size_t model;           /* that spoke last, behind the models: none */
        char last_run[80];      /* whose journal was read to its end */
        bool run_open;          /* the next was not over, and its journal is still to be read */
        atomic_bool at_work;    /* a run is said to be at work, and journals were not read since */
        char open_run[80];      /* that one, */
        uint64_t open_seq;      /* and up to where it was read */
        enum digest_title_rank title_rank;
        bool failed;  /* out of memory on the way */
        size_t bytes; /* about; under the table's mutex */
};

/* Reads on for about `ms` milliseconds, under the entry's mutex. */
int digest_catch_up(struct digest_entry *e, struct steno_store *store, struct steno_conv *conv,
    int ms, struct steno_error *err);
/* Nothing was read. Releases what a digest has. */
void digest_forget(struct digest_entry *e);
/* Work at the end of the tape. */
void digest_tape_add(struct digest *d, char kind, uint64_t ms);

/* ---- digest_usage.c ---- */

void digest_take_usage(struct digest_entry *e, const struct json *j);
void digest_take_said_usage(struct digest_entry *e, const struct walk_message *m);
int digest_take_meta(struct digest_entry *e, const struct steno_record *r);

/* ---- digest_lists.c: what finds no memory sets e->failed ---- */

void *digest_grow(void *list, size_t count, size_t size);
/* The first bytes of s, at most `max`, and whole characters. */
char *digest_copy(struct str s, size_t max);
size_t digest_count_of(
    struct digest_entry *e, struct digest_count **list, size_t *count, struct str name);
/* NULL: there is no memory. */
struct digest_day *digest_day_of(struct digest_entry *e, int64_t at);

#endif
