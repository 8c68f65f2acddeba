/*
 * env.h - what a store takes from its environment: files, time, randomness. One value is passed
 * down, and no code below uses anything else, so tests can replay an environment exactly.
 */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"

struct env {
        const struct fs *fs;
        /* Milliseconds since 1970, UTC. */
        int64_t (*now)(const struct env *self);
        /* Fills p with random bytes; never fails (aborting would be worse: falls back to the
         * clock and a counter). */
        void (*random)(const struct env *self, void *p, size_t n);
        /* A word that changes when the machine boots. */
        void (*boot)(const struct env *self, char out[40]);
};

const struct env *env_real(void);

/* The value of a variable in a list of NAME=VALUE that ends with NULL; NULL when it is not set. */
const char *env_get(const char *const *variables, const char *name);

/* The monotonic clock, which nobody can set. Every deadline and wait (base/wait.h) uses its
 * milliseconds. */
int64_t time_monotonic_ms(void);
int64_t time_monotonic_us(void);
/* The processor time of this thread: what work costs, however busy the machine is. */
int64_t time_thread_us(void);

/* "2026-11-15T04:20:00.000Z" */
#define TIME_TEXT 25
void time_format(int64_t ms, char out[TIME_TEXT]);
/* The inverse, for ISO 8601 with Z, an offset or neither; false when it is not a time. */
bool time_parse(const char *p, size_t n, int64_t *ms);

/* prefix + ULID (26 characters of Crockford's base 32, sorted by time; within one process and
 * millisecond they still grow). `out` needs strlen(prefix) + 27 bytes. */
void id_make(const struct env *env, const char *prefix, char *out);
/* When an id of that kind was made, in ms; 0 for any other. */
int64_t id_time(struct str id);

/*
 * The file name for an id from outside: the id itself while it matches [A-Za-z0-9_-]{1,64}, else
 * "~" and 32 hex digits of its SHA-256. `out` needs PLAIN_NAME_MAX + 1 bytes. Two ids never share
 * a name. 0 or STENO_ENOMEM.
 */
int id_file_name(struct str id, char *out);
bool id_is_plain(struct str id);
/* Can it be what id_file_name answers? */
bool id_is_file_name(struct str name);
/* 1 to `max` bytes of UTF-8 without control characters. */
bool id_is_legal(struct str id, size_t max);

#endif
