/*
 * exchange.h - one request to a model and its answer, in a file of their own while they happen.
 *
 * The request is in the file before it is sent, and each piece of the answer before it is passed
 * on: written, not synced, so that nothing that anybody saw is lost when the process is killed.
 * Files are synced in the background, at most 50 ms later. A reader takes the answer from the file,
 * so one that is slow costs no memory and is never cut off. When the exchange has become part of a
 * conversation the file is removed; what is left after a kill is taken up at the next start.
 *
 *   steno-exchange 1 <bytes of the head> <bytes of the body>\n
 *   head (JSON, gateway.h) body
 *   <bytes of the answer's head>\n head (JSON) body ... to the end of the file
 *
 * What the client does not see of an exchange (rounds.h) is noted in a second file, ro_<id>.
 */
#ifndef GATEWAY_EXCHANGE_H
#define GATEWAY_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"
#include "steno.h"

struct exchanges; /* the folder of them */
struct exchange;

/* Opens the folder "gateway" of the store at `path`, and makes it. */
int exchanges_open(
    const struct env *env, const char *path, struct exchanges **out, struct steno_error *err);
/* After the last exchange was closed. */
void exchanges_close(struct exchanges *all);
/* Those that an earlier process left, oldest first. */
int exchanges_each(struct exchanges *all, int (*each)(void *ctx, const char *id), void *ctx,
    struct steno_error *err);

#define EXCHANGE_ID 40

/* A new one. STENO_EFULL, STENO_EIO: the request must not be sent. With `best_effort` what cannot
 * be written is kept in memory instead, up to 64 MiB: then a kill loses it. */
int exchange_create(struct exchanges *all, struct str head, struct str body, bool best_effort,
    struct exchange **out, struct steno_error *err);
/* Is it in memory alone? */
bool exchange_in_memory(const struct exchange *x);
/* One that is there. */
int exchange_open(
    struct exchanges *all, const char *id, struct exchange **out, struct steno_error *err);
const char *exchange_id(const struct exchange *x);
/* Closes the file; it stays. */
void exchange_close(struct exchange *x);
/* Closes it under another name (kept_...): it cannot become part of a conversation, and is not
 * taken up again. */
void exchange_set_aside(struct exchange *x);
/* Closes it for good. */
void exchange_remove(struct exchange *x);

/* The answer's head, once, before its bytes. 0 or negative. */
int exchange_answer(struct exchange *x, struct str head);
int exchange_put(struct exchange *x, const void *p, size_t n);
/* A line about a hidden round (rounds.h), without its line feed: in a file beside, which goes with
 * the exchange. */
int exchange_note(struct exchange *x, struct str line);
/* How it ended, as JSON, in the same file: before anything of it is recorded, so that another try
 * after a kill makes the same of it. */
int exchange_note_fate(struct exchange *x, struct str fate);
/* How much of the answer's body there is. From any thread. */
uint64_t exchange_size(const struct exchange *x);
/* Up to `n` bytes of the answer's body; 0 at its end, negative: it cannot be read. */
ssize_t exchange_read(const struct exchange *x, uint64_t at, void *p, size_t n);

/* All of it. `answer_head` is empty when none came. */
struct exchange_parts {
        struct buf whole;
        struct str head;
        struct str body;
        struct str answer_head;
        struct str answer_body;
        struct buf notes; /* of hidden rounds, a line each; empty: none */
        struct buf fate;  /* empty: it was not told how it ended */
};
/* STENO_ECORRUPT: it was torn before it was whole, so nothing of it had been sent. */
int exchange_load(const struct exchange *x, struct exchange_parts *out, struct steno_error *err);
void exchange_parts_release(struct exchange_parts *parts);

#endif
