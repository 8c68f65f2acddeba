/*
 * veil.h - joins several answers of the endpoint into the one answer that the app sees.
 *
 * The gateway answers the model's calls of context tools (rounds.h), and the app sees none of this.
 * The app's answer has the id, time and model of the first round, one start, the text of all
 * rounds, the calls of the app's own tools, numbered without gaps, the sum of the usage, and the
 * end of the last round. Text is passed on as it arrives; a call is held back until its name is
 * known.
 *
 *   veil_begin(v, stream, last);
 *   veil_feed(v, p, n, &out); ...        what the app may have by now
 *   veil_end(v, &out);
 *   veil_goes_on(v) ? ask again : veil_rest(v, &out);
 *
 * Pure: no I/O, no clock, no threads.
 */
#ifndef GATEWAY_VEIL_H
#define GATEWAY_VEIL_H

#include <stdbool.h>

#include "base/buf.h"
#include "gateway/wire.h"

struct veil;

/* NULL: no memory. */
struct veil *veil_new(const struct wire *wire);
void veil_free(struct veil *v);

/* Begins the next round. `last`: this round ends the turn, whatever it calls. */
void veil_begin(struct veil *v, bool stream, bool last);
/* 0, STENO_ENOMEM or STENO_ELIMIT. */
int veil_feed(struct veil *v, const char *p, size_t n, struct buf *out);
int veil_end(struct veil *v, struct buf *out);

/* Does the app's answer differ from the endpoint's? Only then there is a rest. */
bool veil_hides(const struct veil *v);
/* The round is complete, and calls only context tools. */
bool veil_goes_on(const struct veil *v);
/* The round is complete and calls only context tools, but it ends the turn. */
bool veil_is_called_in_vain(const struct veil *v);
/* The round came to its end. */
bool veil_is_whole(const struct veil *v);
/* The round's answer as it came. */
struct str veil_raw(const struct veil *v);
/* Gives the end of the app's answer; if the answer is not a stream, the whole answer. */
int veil_rest(struct veil *v, struct buf *out);

#endif
