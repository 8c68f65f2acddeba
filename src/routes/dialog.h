/*
 * dialog.h - for clients that keep their own list of messages (the AI SDK, AG-UI).
 *
 * They send their whole list with every request. Messages with a stored id are left alone; new ones
 * are appended. A message is not deleted because a page does not send it: many pages send only
 * their last message. A page says so explicitly when it has cut its list (regenerate, edit). Then
 * amendments delete the messages behind the cut: they stay in the log.
 */
#ifndef ROUTES_DIALOG_H
#define ROUTES_DIALOG_H

#include "base/limits.h"
#include "http/projection.h"
#include "http/request.h"
#include "http/runner.h"

/* The newest run of a conversation. */
struct dialog_run {
        char id[ID_MAX + 1]; /* "": there is none */
        bool live;           /* the run is live, or its process died and nobody has noticed yet */
        bool died;
};

int dialog_newest_run(struct steno_conv *conv, struct dialog_run *out, struct steno_error *err);

/* Opens a conversation of the caller's project, or makes it. False: an error was answered. */
bool dialog_open(struct request *r, const char *id, struct steno_conv **out, bool *made);

/* The seq of the message with this id; 0: it is not stored, or was deleted. */
int dialog_seq(struct steno_conv *conv, const char *id, uint64_t *seq, struct steno_error *err);
/* Is a message of the user, the model or a tool stored behind this one? */
int dialog_is_last(struct steno_conv *conv, uint64_t seq, bool *last, struct steno_error *err);
/* Deletes the messages behind `seq`. Replies that follow it directly belong to a message of the
 * assistant, and stay with it when `with_reply` is set. */
int dialog_cut(struct steno_conv *conv, uint64_t seq, bool with_reply, struct steno_error *err);

/* Starts the turn and answers with its events, or with an error. A turn whose run (turn->run)
 * already exists is not started again. */
void dialog_start(
    struct request *r, const struct runner_turn *turn, const struct projection *projection);
/* Answers with the events of a run, from its first on. */
void dialog_watch(struct request *r, const char *run, const struct projection *projection);

#endif
