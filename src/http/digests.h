/*
 * digests.h - what became of a conversation, in a few numbers: how many calls, which of them
 * failed, which tools and models, how many tokens.
 *
 * A digest is made by reading the log once and goes on from there when the log has grown. The
 * server keeps the latest ones in memory, up to a bound; they are derived, and nothing is stored.
 */
#ifndef HTTP_DIGESTS_H
#define HTTP_DIGESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/doing.h"
#include "http/fault.h"
#include "steno.h"

struct digests;

struct digest_tokens {
        uint64_t in, out, cached;
};

/* A call that failed, or a reply that is an error (`call` is then empty). */
struct digest_failure {
        uint64_t seq; /* of the message that made the call, or is the error */
        char *call;
        char *name;
        char *text;                  /* the first line that says what is wrong */
        char *ref;                   /* of the output, or empty */
        uint64_t lines[FAULT_LINES]; /* of the output: those that say what is wrong */
        size_t line_count;
        int64_t at;
        int64_t exit;
        bool has_exit;
};

struct digest_count {
        char *name; /* of a tool or a model */
        uint64_t calls;
        uint64_t failed;
        uint64_t ms;
        uint64_t kept; /* bytes that stubs kept out of contexts */
        struct digest_tokens tokens;
};

struct digest_day {
        int64_t day; /* since 1970 */
        uint64_t turns;
        uint64_t failed;
};

struct digest_usage {
        uint64_t message; /* hash_64 of its id */
        struct digest_tokens tokens;
};

#define DIGEST_TITLE 200
#define DIGEST_TAPE 60

/* A piece of the tape: what was at work, for how long. */
struct digest_piece {
        char kind; /* m: a model, t: a tool, e: what failed */
        uint64_t ms;
};

struct digest {
        uint64_t seq;             /* read up to here */
        bool whole;               /* that is the end */
        char title[DIGEST_TITLE]; /* the first words of the user, or what else names it */
        uint64_t messages, turns, replies, calls, failed;
        uint64_t last_reply; /* its seq */
        int64_t first_at, last_at;
        int64_t work_ms;                       /* in which a model or a tool was at work */
        uint64_t kept;                         /* bytes that stubs kept out of contexts */
        struct digest_piece tape[DIGEST_TAPE]; /* the work in order; short pieces are joined */
        size_t tape_count;
        struct digest_tokens tokens;
        struct digest_failure *failures; /* in order; at most DIGEST_FAILURES_MAX */
        size_t failure_count;
        struct digest_count *tools, *models;
        size_t tool_count, model_count;
        struct digest_day *days;
        size_t day_count;
        struct digest_usage *usage; /* of single replies */
        size_t usage_count;
        struct doing doing; /* of the run that is at work, if one is */
        int64_t worked_to;  /* work before this is in `work_ms` and `tape` */
};

/* The work up to now: what is in the log, and what goes on. */
struct digest_now {
        int64_t work_ms;
        struct digest_piece tape[DIGEST_TAPE];
        size_t tape_count;
};

#define DIGEST_FAILURES_MAX 20000

struct digests *digests_new(void);
void digests_free(struct digests *all);

/*
 * The digest of a conversation, brought up to date for about `ms` milliseconds (`whole` says
 * whether that was enough). It is the caller's alone until digests_close.
 */
int digests_open(struct digests *all, struct steno_store *store, struct steno_conv *conv, int ms,
    const struct digest **out, struct steno_error *err);
/*
 * The same without looking at the files: what was read of a conversation whose last record is
 * `seq`. NULL: it has not been read up to there, or somebody is reading it just now.
 */
const struct digest *digests_known(
    struct digests *all, const char *project, const char *id, uint64_t seq);
void digests_close(struct digests *all, const struct digest *d);
/* A run is at work there, as the caller knows: the next digest of it has what the run does, also
 * when nothing has been stored since the last one. */
void digests_at_work(struct digests *all, const char *project, const char *id);

void digest_now(const struct digest *d, int64_t now, struct digest_now *out);
/* Tokens of one reply; false: not known. */
bool digest_usage_of(const struct digest *d, const char *message, struct digest_tokens *out);

#endif
