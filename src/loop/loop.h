/*
 * loop.h - one execution of the loop, shared by the files that carry it out:
 *
 *   loop.c           options, the order of turns, limits, how a run ends
 *   loop_turn.c      one model call: history in, reply out
 *   loop_calls.c     the tool calls of one reply
 *   loop_mail.c      what others ask of the run through the store
 *   loop_messages.c  the messages the loop writes, and telling of them
 *   loop_continue.c  whether there is something to continue
 *   loop_final.c     what is told of the run's calls at its end
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/job.h"
#include "loop/journal.h"
#include "model/members.h"
#include "provider/provider.h"
#include "provider/reply.h"
#include "tool/tool.h"
#include "steno_loop.h"

#define CHAT_ID 64 /* bytes of a made id */
#define CHAT_REPEATS_CORRECTED 2
#define CHAT_REPEATS_STOPPED 4

/* A question about permission; the answer may also come from another process. */
struct loop_mail {
        pthread_mutex_t lock;
        char approval[65];
        int answer;               /* enum steno_permission; STENO_ASK while there is none */
        struct steno_stop *asked; /* ends the waiting; NULL: nothing is asked */
};

struct loop {
        struct steno_loop_options opt; /* defaults filled in */
        struct steno_stop
            *own_stop; /* a child of the caller's stop, for stops that come through the store */
        struct loop_mail mail;
        const struct provider *provider;
        struct provider_client *client;
        char *via; /* the endpoint and the model, with which replies are marked */
        struct steno_tools tools;
        struct provider_tool *offered; /* what the provider is told of each of them */
        struct steno_run *run;         /* claimed before anything is written */
        bool begun;                    /* it has a journal */
        struct journal journal;
        struct job_board *board;
        int64_t deadline; /* of the run; 0: none */

        uint64_t turns; /* model calls made; the number of the current request */
        uint64_t tokens;
        bool required_met;
        bool nudge;               /* the history ends with the assistant: ask to go on */
        char message_id[CHAT_ID]; /* of the current reply */
        struct buf shown;         /* the beginning of its text, as it was streamed */
        char repeat_key[65];      /* of the latest call */
        unsigned repeats;         /* how often it came in a row */
        uint64_t asked_at;        /* last seq of the log when the history was read */
        uint64_t last_stored;     /* seq of the message that it stored last */
        uint64_t caller;          /* seq of the reply whose calls are carried out */
        uint64_t before;          /* last seq of the log before the run wrote anything */
        bool told_final;          /* final_message was told */
        struct buf callers;       /* ids of its replies with calls, each with its NUL */

        const char *reason; /* why the run ended; NULL while it goes on */
        struct reply_fault fault;
        struct buf final_text;
};

/* ---- loop_text.c: calls as text ---- */

#define LOOP_TEXT_GO_ON                                                                            \
        "The results stand in your calls above as \"response\". Go on: call another tool, or "     \
        "answer."

static inline bool loop_calls_are_text(const struct loop *c)
{
        return c->opt.flags & STENO_LOOP_TEXT_CALLS;
}
/* The system text with the tools in it. 0 or STENO_ENOMEM. */
int loop_text_system(const struct loop *c, const char *require, struct buf *out);
/* Takes calls out of the text of a reply: they become its calls. */
int loop_text_take(struct reply *reply, const struct reply_hooks *hooks, struct steno_error *err);

/* ---- loop_messages.c ---- */

void loop_make_id(const char *prefix, char out[CHAT_ID]);

/* Stores the user's message, unless it is already stored. */
int loop_store_user(struct loop *c, struct steno_error *err);
/* Stores an assistant message as the provider sent it, and gives it to the callback. */
int loop_store_reply(struct loop *c, const struct reply *reply, struct steno_error *err);
/*
 * An assistant message with partType "error" and the text that had arrived, under the id
 * c->message_id: stores it, gives it to the callback, writes the event run_error, and ends the run
 * with `reason`.
 */
int loop_store_fault(struct loop *c, const char *reason, const struct reply_fault *fault,
    struct str text, struct str thinking, struct steno_error *err);
/* The same for a limit or a stop between two replies: a new message, no text. */
int loop_store_end(struct loop *c, const char *reason, const char *code, const char *words,
    struct steno_error *err);
/* A tool message for a call that was not run, with the reason; freed with free(). NULL: out of
 * memory. `tool` may be NULL: no such tool. */
char *loop_refusal(const struct loop *c, const struct reply_call *call, const struct tool *tool,
    const char *text, enum call_ending ending, size_t *n);
/* Adds to a command's message how the command ended, if its content does not show that (after a
 * failure, or without output). *message was allocated by the library, and may be replaced. */
int loop_note_exit(char **message, size_t *n, const struct tool_result *result, int64_t ms,
    struct steno_error *err);
/* Stores a tool message and gives it to the callback. `tool` may be NULL: no such tool. */
int loop_store_result(struct loop *c, const struct reply_call *call, const struct tool *tool,
    struct str message, struct steno_error *err);

/* ---- loop_mail.c ---- */

/* From here on other processes can stop the run through the store: they set c->opt.stop as well. */
int loop_mail_begin(struct loop *c, struct steno_error *err);
void loop_mail_end(struct loop *c);
/* Begins a question: request->stop ends it when the answer comes from another process. */
int loop_mail_expect(
    struct loop *c, struct steno_permission_request *request, struct steno_error *err);
/* Ends the question. Returns that answer, or STENO_ASK when none came. */
int loop_mail_answer(struct loop *c);

/* ---- loop_turn.c ---- */

/*
 * Calls the model with the stored history. Returns 0 with a reply, which the caller stores, or with
 * c->reason set when the run has ended here; its error is then stored.
 */
int loop_turn(struct loop *c, struct reply *reply, struct steno_error *err);
/* The reply could not be stored because of a limit, which `err` names: the run ends with that, and
 * with the whole reply as an output. */
int loop_reply_too_large(struct loop *c, struct reply *reply, struct steno_error *err);

/* ---- loop_calls.c ---- */

/* Runs the calls of a reply; afterwards each call has a stored result. */
int loop_carry_out(struct loop *c, const struct reply *reply, struct steno_error *err);

/* ---- loop_final.c ---- */

/* The reply c->message_id, which is stored, makes calls. */
void loop_note_caller(struct loop *c);
/* The list of the run's calls, as the view chat has them. */
int loop_put_calls(struct loop *c, struct buf *out, struct steno_error *err);
/* The event final_message, with the whole of each call. */
int loop_tell_final(struct loop *c, struct str text, struct steno_error *err);

/* ---- loop_continue.c ---- */

/* Is there something to continue? STENO_EPROTO when not; the message says what to do instead. */
int loop_check_continue(struct loop *c, struct steno_error *err);

#endif
