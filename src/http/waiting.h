/*
 * waiting.h - the calls of a project that wait for permission, in this process and in others.
 *
 * Runs of this server are known at once (runner.h). Runs of other processes (another server, or a
 * terminal) are found in the store: while anybody asks, the newest conversations are checked about
 * once a second, and of those with a live run that is not ours, the new part of the journal is
 * read.
 */
#ifndef HTTP_WAITING_H
#define HTTP_WAITING_H

#include "base/buf.h"
#include "http/runner.h"

struct waiting;

struct waiting *waiting_new(struct server *server);
void waiting_free(struct waiting *all);

/*
 * {"items":[{"run","call","approval","conversation","tool","server"?,"arguments","directory"?,
 * "limits"?,"environment"?,"since","elsewhere"?}]}. `arguments` is a string, byte for byte;
 * `elsewhere` is true where another process runs it.
 */
void waiting_put(struct waiting *all, const char *project, struct buf *out);
/* What a conversation does, at this server or elsewhere. */
enum runner_state waiting_state(struct waiting *all, const char *project, const char *conversation);

/* The same of all that are not idle, a line each, for those who look whether anything has changed.
 */
void waiting_put_states(struct waiting *all, const char *project, struct buf *out);

#endif
