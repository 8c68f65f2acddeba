/*
 * runner.h - the runs that this server makes: starting, stopping, approving.
 *
 * A run continues when its readers leave; the model, a limit, a stop or the end of the server ends
 * it. All readers read the journal (follow.h). A call that needs permission waits while somebody
 * who may answer is connected, here or at another server of the store. It is denied when nobody was
 * connected for limits.approvalSeconds.
 */
#ifndef HTTP_RUNNER_H
#define HTTP_RUNNER_H

#include "base/buf.h"
#include "loop/session.h"
#include "http/server.h"

struct runner;

/* `session` is borrowed: the model, the tools, the rules. */
struct runner *runner_new(struct server *server, struct session *session);
/* Asks every run to stop and waits for them. No new run begins, because the server is stopping; all
 * other calls still work. */
void runner_end(struct runner *chat);
/* Once nobody asks any more. */
void runner_free(struct runner *chat);

struct runner_turn {
        const char *project;
        const char *conversation;
        const char *message;        /* the user's text, or */
        const char *message_json;   /* the whole message; neither: continue */
        const char *message_format; /* of message_json; NULL: openai */
        const char *message_id;     /* NULL: made up; a message that has it is stored already */
        const char *mode;           /* NULL: chat */
        const char *model;          /* NULL: the configuration's */
        const char *run;            /* id, or NULL */
        bool public_only;           /* only the tools that are marked public */
        bool no_stream;             /* ask the model for whole replies */
};

/*
 * Starts a run on a thread of its own and returns when it has begun: `run` gets its id.
 * STENO_ECONFLICT: the conversation has a live run. STENO_EPROTO: nothing to continue.
 */
int runner_start(
    struct runner *chat, const struct runner_turn *turn, char run[64], struct steno_error *err);
/* The same, and waits for its end: *result as steno_chat_loop's, *final the data of final_message
 * (may stay NULL). */
int runner_run(struct runner *chat, const struct runner_turn *turn, char run[64], char **result,
    char **final, struct steno_error *err);

/* STENO_ENOTFOUND: no live run of that project here. */
int runner_stop(struct runner *chat, const char *project, const char *run, struct steno_error *err);
/* `approval` (may be NULL) must be the hash that the event named: STENO_ECONFLICT. STENO_ENOTFOUND:
 * no such call waits here. *over is set if somebody else has answered it: then it waits nowhere
 * else either. */
int runner_approve(struct runner *chat, const char *project, const char *run, const char *call,
    const char *approval, bool allow, bool *over, struct steno_error *err);
/*
 * The calls of this server's runs in a project that wait for permission, newest run first: the
 * items of waiting.h, with commas between them. `chat` may be NULL.
 */
void runner_put_waiting(struct runner *chat, const char *project, struct buf *out);

enum runner_state { RUNNER_IDLE, RUNNER_RUNNING, RUNNER_WAITING };
/* What a conversation does on this server. `chat` may be NULL. */
enum runner_state runner_state(struct runner *chat, const char *project, const char *conversation);
/* The same of all conversations of a project that are not idle, a line each, for those who look
 * whether anything has changed. */
void runner_put_states(struct runner *chat, const char *project, struct buf *out);

/* The price table of the configuration, a JSON object, or NULL. */
const char *runner_prices(const struct runner *chat);

#endif
