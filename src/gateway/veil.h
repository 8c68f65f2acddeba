/*
 * veil.h - one answer as the app sees it, while the endpoint gives several.
 *
 * The model may call context tools, which the gateway answers (rounds.h); the app sees none of
 * that. It gets one answer: the first one's id, time and model, one start, the words and calls of
 * all rounds that are the app's, numbered without gaps, usage summed, and the last round's end.
 * Words pass as they come; a call is held until its name is known.
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

/* The next round begins. `last`: it ends the turn whatever it calls. */
void veil_begin(struct veil *v, bool stream, bool last);
/* 0, STENO_ENOMEM or STENO_ELIMIT. */
int veil_feed(struct veil *v, const char *p, size_t n, struct buf *out);
int veil_end(struct veil *v, struct buf *out);

/* Does the app see anything else than what came? Only then is there a rest. */
bool veil_hides(const struct veil *v);
/* The round is whole, and calls context tools and nothing else. */
bool veil_goes_on(const struct veil *v);
/* The round is whole and calls context tools and nothing else, but the turn ends with it. */
bool veil_is_called_in_vain(const struct veil *v);
/* The round came to its end. */
bool veil_is_whole(const struct veil *v);
/* The round's answer as it came. */
struct str veil_raw(const struct veil *v);
/* The end of what the app sees; of an answer that is not a stream, all of it. */
int veil_rest(struct veil *v, struct buf *out);

#endif
