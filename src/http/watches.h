/*
 * watches.h - one stream for everything that a browser shows.
 *
 * A browser has six connections to a server, however many windows it has. A watch is one stream
 * with any number of topics, which are added and removed while it is open:
 *
 *   list          the list of conversations has changed
 *   approvals     the calls of the project that wait for permission, whole, whenever they change
 *   c/ID          a conversation: its last seq, or its runs, have changed
 *   r/RUN         the events of a run behind a seq, until it has finished
 *   o/ID/REF      the bytes of an output behind an offset, until it is complete
 *
 * ID and REF are percent-encoded. The server ignores what follows a #, so that two windows can
 * watch the same topic from two places. Each event has its topic as its name; docs/api.md describes
 * the contents. A reader that was disconnected opens a new watch with the places that it had
 * reached. A client that watches the approvals of a project counts as somebody who can answer them
 * (runner.h).
 */
#ifndef HTTP_WATCHES_H
#define HTTP_WATCHES_H

#include "base/json.h"
#include "http/streams.h"

struct watches;

#define WATCH_ID 40

struct watches *watches_new(struct server *server);
/*
 * Begins a watch of a project. `topics` is an object of topics and places in `j`. Takes over the
 * caller's reference to the stream, also when it fails. The first event, "watch", has the id by
 * which topics are changed. STENO_EINVAL: a topic is not valid, or there are too many.
 */
int watches_add(struct watches *all, const char *project, const struct json *j, json_ref topics,
    struct stream *stream, struct steno_error *err);
/* Are there as many as this server takes? */
bool watches_full(struct watches *all);
/* Checks topics. STENO_EINVAL names the first one that is not valid. */
int watches_check(const struct json *j, json_ref topics, struct steno_error *err);
/* `add` as above, `remove` an array of topics; either may be JSON_NONE. STENO_ENOTFOUND: no such
 * watch of that project. */
int watches_change(struct watches *all, const char *project, const char *id, const struct json *j,
    json_ref add, json_ref remove, struct steno_error *err);
/* Ends the stream of a watch cleanly. False: no such watch of that project. */
bool watches_end(struct watches *all, const char *project, const char *id);
/* Does anybody watch the approvals of this project? */
bool watches_anybody(struct watches *all, const char *project);
/* Something happened: look now. */
void watches_poke(struct watches *all);
/* Readers get no more; waits for the threads. */
void watches_stop(struct watches *all);
void watches_free(struct watches *all);

#endif
