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

/* A question that waits for an answer, also from elsewhere. */
struct loop_mail {
        pthread_mutex_t lock;
        char approval[65];
        int answer;               /* enum steno_permission; STENO_ASK while there is none */
        struct steno_stop *asked; /* ends the waiting; NULL: nothing is asked */
};

struct loop {
        struct steno_loop_options opt; /* defaults filled in */
        struct steno_stop
            *own_stop; /* below the caller's, for who stops the run through the store */
        struct loop_mail mail;
        const struct provider *provider;
        struct provider_client *client;
        char *via; /* the endpoint and the model, as replies are marked with them */
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

/* The user's message: stored (unless it is there already). */
int loop_store_user(struct loop *c, struct steno_error *err);
/* An assistant message as the provider sent it: stored and told. */
int loop_store_reply(struct loop *c, const struct reply *reply, struct steno_error *err);
/*
 * An assistant message with partType "error" and the text that had arrived, under the id
 * c->message_id: stored and told, with the event run_error; ends the run with `reason`.
 */
int loop_store_fault(struct loop *c, const char *reason, const struct reply_fault *fault,
    struct str text, struct str thinking, struct steno_error *err);
/* The same for a limit or a stop between two replies: a new message, no text. */
int loop_store_end(struct loop *c, const char *reason, const char *code, const char *words,
    struct steno_error *err);
/* A tool message for a call that was not run, and how that came; freed with free(). NULL: out of
 * memory. `tool` may be NULL: no such tool. */
char *loop_refusal(const struct loop *c, const struct reply_call *call, const struct tool *tool,
    const char *text, enum call_ending ending, size_t *n);
/* Adds to a command's message how it ended, where its content does not say so: a failure, or no
 * output at all. *message is the library's, and may be replaced. */
int loop_note_exit(char **message, size_t *n, const struct tool_result *result, int64_t ms,
    struct steno_error *err);
/* Stores a tool message and tells of it. `tool` may be NULL: no such tool. */
int loop_store_result(struct loop *c, const struct reply_call *call, const struct tool *tool,
    struct str message, struct steno_error *err);

/* ---- loop_mail.c ---- */

/* From here on others can stop the run through the store: c->opt.stop is set by them as well. */
int loop_mail_begin(struct loop *c, struct steno_error *err);
void loop_mail_end(struct loop *c);
/* A question begins: request->stop ends it when an answer comes from elsewhere. */
int loop_mail_expect(
    struct loop *c, struct steno_permission_request *request, struct steno_error *err);
/* It is over: that answer, or STENO_ASK when none came. */
int loop_mail_answer(struct loop *c);

/* ---- loop_turn.c ---- */

/*
 * Calls the model with the stored history. 0 with a reply to keep (stored by the caller), or with
 * c->reason set when the run ended here: the failure is stored.
 */
int loop_turn(struct loop *c, struct reply *reply, struct steno_error *err);
/* The reply could not be stored because of a limit, which `err` names: the run ends with that, and
 * with the whole reply as an output. */
int loop_reply_too_large(struct loop *c, struct reply *reply, struct steno_error *err);

/* ---- loop_calls.c ---- */

/* Carries out the calls of a reply; afterwards each has a stored result. */
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
