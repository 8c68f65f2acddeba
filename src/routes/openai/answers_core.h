/*
 * answers_core.h - struct answer, for the files of /v1/responses (answers.c).
 *
 * A call that returns false has answered the request with an error.
 */
#ifndef ROUTES_OPENAI_ANSWERS_CORE_H
#define ROUTES_OPENAI_ANSWERS_CORE_H

#include "base/buf.h"
#include "base/json.h"
#include "gateway/chatwire.h"
#include "http/request.h"
#include "steno.h"
#include "steno_loop.h"

/* One response while it is made; `r` is NULL once it was answered. */
struct answer {
        struct request *r;
        struct server *server;
        struct steno_store *store;
        char *project;
        struct json body;
        struct buf text; /* the request's, as long as this lives */
        char id[64];
        struct steno_conv *conv;
        bool named; /* by `conversation` */
        char previous[64];
        bool stream, background;
        struct steno_run *run;
        struct steno_stop *stop;
        struct buf given;      /* the input as it came, a JSON array */
        struct buf input;      /* the same as it is stored */
        struct buf output;     /* items that are done, with commas between */
        struct chatwire *chat; /* of an upstream that has chat completions only; else NULL */
        struct json event;
        struct buf last; /* the response as it was told last */
        int64_t sequence;
        bool over;  /* the last event was told */
        int status; /* of the upstream's refusal */
        struct buf refusal;
};

/* ---- what the model is asked (answers_request.c) ---- */

/* Opens, makes or forks the conversation that the request names or continues. */
bool answers_find_conv(struct answer *a);
/* Fills a->given and a->input. */
bool answers_take_input(struct answer *a);
/* The body for the upstream: the history, the input, and the client's parameters. */
int answers_put_request(struct answer *a, struct buf *out, struct steno_error *err);

/* ---- events (answers_events.c) ---- */

/* Begins the run of the response, under a new id, and notes its input in the journal. */
bool answers_begin_run(struct answer *a);
/* An event of the upstream (`ctx` is the answer): stores what it brings and writes it to the
 * journal. */
int answers_on_event(void *ctx, struct str name, struct str data);
/* An upstream that answers with one object although it was asked for a stream. */
int answers_tell_whole(struct answer *a, struct str body, struct steno_error *err);
/* Ends the run; a response that was not completed is reported as failed or as cancelled. */
void answers_finish_run(struct answer *a, int rc, const struct steno_error *why);
/* Until its run has ended. */
void answers_wait(struct request *r, const char *id);
/* A reader of the response from an event of its journal on. */
bool answers_follow(struct request *r, const char *id, uint64_t after);

/* ---- responses that were made (answers_stored.c) ---- */

/* What the journal of a response says at its end. */
struct answer_facts {
        struct buf response; /* as it was told last */
        struct buf input;
        uint64_t stored; /* the seq of its last item; 0: nothing was stored */
        uint64_t last;   /* event of the journal */
        int64_t behind;  /* of the response's events: where to begin reading, by their number */
        uint64_t from;   /* and that event of the journal */
        bool failed;     /* the run died */
};
void answers_facts_init(struct answer_facts *f, int64_t behind);
void answers_facts_release(struct answer_facts *f);
int answers_facts_read(struct steno_store *store, const char *project, const char *id,
    struct answer_facts *f, struct steno_error *err);

/* The conversation of a response, which the caller closes; else 404 was answered. */
struct steno_conv *answers_find(struct request *r, const char *id);
/* Answers with the response as its last event has it. */
void answers_reply(struct request *r, const char *id);

#endif
