/*
 * exchange.h - one request to a model and its answer, in a file of their own while they are under
 * way.
 *
 * The request is written to the file before it is sent, and each piece of the answer before it is
 * passed on. They are written but not synced: a kill of the process loses nothing that anybody saw.
 * Files are synced in the background, at most 50 ms later. Readers get the answer from the file, so
 * a slow reader needs no memory and is never disconnected. The file is removed when the exchange
 * has become part of a conversation. The next start records files that a kill has left behind.
 *
 *   steno-exchange 1 <bytes of the head> <bytes of the body>\n
 *   head (JSON, gateway.h) body
 *   <bytes of the answer's head>\n head (JSON) body ... to the end of the file
 *
 * Rounds of an exchange that the client does not see (rounds.h) are noted in a second file,
 * ro_<id>.
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
/* The exchanges that an earlier process left, oldest first. */
int exchanges_each(struct exchanges *all, int (*each)(void *ctx, const char *id), void *ctx,
    struct steno_error *err);

#define EXCHANGE_ID 40

/* Makes a new exchange. STENO_EFULL, STENO_EIO: the request must not be sent. With `best_effort`,
 * bytes that cannot be written are kept in memory instead, up to 64 MiB; a kill loses them. */
int exchange_create(struct exchanges *all, struct str head, struct str body, bool best_effort,
    struct exchange **out, struct steno_error *err);
/* Is it in memory alone? */
bool exchange_in_memory(const struct exchange *x);
/* One that is there. */
int exchange_open(
    struct exchanges *all, const char *id, struct exchange **out, struct steno_error *err);
const char *exchange_id(const struct exchange *x);
/* Closes the file and keeps it. */
void exchange_close(struct exchange *x);
/* Closes and renames the file (kept_...), because the exchange cannot become part of a
 * conversation. Later starts ignore it. */
void exchange_set_aside(struct exchange *x);
/* Closes it for good. */
void exchange_remove(struct exchange *x);

/* Writes the answer's head; called once, before its bytes. Returns 0 or a negative code. */
int exchange_answer(struct exchange *x, struct str head);
int exchange_put(struct exchange *x, const void *p, size_t n);
/* A line about a hidden round (rounds.h), without its line feed: in the second file, which is
 * removed with the exchange. */
int exchange_note(struct exchange *x, struct str line);
/* Writes to the second file how the exchange ended, as JSON. This is done before anything is
 * recorded, so that another attempt after a kill makes the same records. */
int exchange_note_fate(struct exchange *x, struct str fate);
/* How many bytes of the answer's body have arrived. May be called on any thread. */
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
        struct buf fate;  /* empty: nobody noted how it ended */
};
/* STENO_ECORRUPT: the file ends inside the request, so the request was never sent. */
int exchange_load(const struct exchange *x, struct exchange_parts *out, struct steno_error *err);
void exchange_parts_release(struct exchange_parts *parts);

#endif
