/*
 * steno_loop.h - the tool loop: a conversation, a model and tools, until the model is done.
 *
 * One call, steno_chat_loop(), does this, in exactly this order:
 *
 *   user message stored -> model called (streamed) -> assistant message stored -> for each call:
 *     permission -> dispatch stored -> tool runs, steps and output streamed -> output
 *     materialized -> outcome stored -> tool message stored -> told
 *   -> model called again ... -> final assistant message stored -> run ended
 *
 *
 * GUARANTEES
 *
 *   1. Callbacks are told only what is durable, and of each message once. A reply that was thrown
 *      away (a forced tool choice) is never a message; the run's event log keeps the attempt.
 *   2. A tool whose outcome is stored is never run again. One that was started when the process
 *      died is not run again by itself: the model is told that its effects are unknown.
 *   3. Whatever ends a run (the model, a limit, an error, a stop, a kill), the history stays
 *      acceptable to the provider, and text that had been streamed to anyone is kept.
 *   4. The run's last event is run_finished{reason}.
 *
 *
 * EVENTS  steno_events.h has the table: names, members, meaning.
 *
 * REASONS  stop, length, content_filter (the model's), required_tool, error, interrupted,
 *          max_turns, max_time, max_tokens, repeated_calls, died (the process was killed; written
 *          by steno_conv_recover)
 *
 * ERROR CODES of run_error and of messages with partType "error"
 *
 *   LLM_AUTH        401 or 403                        LLM_NETWORK   refused, reset, cut off
 *   LLM_RATE_LIMIT  429, after the retries            LLM_TIMEOUT   connect, idle or 408
 *   LLM_SERVER      5xx, after the retries            LLM_CONTEXT   the history is too long
 *   LLM_TOO_LARGE   a reply that no message can hold: the message has its beginning, and says in
 *                   which output the endpoint's whole answer is
 *   LLM_BAD_REPLY   not the protocol: HTML, no JSON   LLM_EMPTY     a reply with nothing in it
 *   LLM_ERROR       everything else the endpoint says
 *   LIMIT_TURNS, LIMIT_TIME, LIMIT_TOKENS, LIMIT_REPEATED, REQUIRED_TOOL, INTERRUPTED, RUN_DIED
 *   STORE_ERROR     the store failed; nothing was told that is not stored
 */
#ifndef STENO_LOOP_H
#define STENO_LOOP_H

#include "steno.h"
#include "steno_events.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- stop */

/*
 * A flag that ends a run from another thread or a signal handler. Sticky. The loop and every
 * tool notice within milliseconds; a tool that does not is left behind after two seconds.
 */
struct steno_stop;
STENO_API int steno_stop_new(struct steno_stop **out, struct steno_error *err);
/* Async-signal-safe. */
STENO_API void steno_stop_request(struct steno_stop *stop);
STENO_API bool steno_stop_requested(const struct steno_stop *stop); /* NULL: false */
/* One that is also set when `parent` (may be NULL) is, and never sets that. */
STENO_API int steno_stop_new_below(
    const struct steno_stop *parent, struct steno_stop **out, struct steno_error *err);
/* A descriptor that is readable for good once stop was requested: for poll(). -1 for NULL. */
STENO_API int steno_stop_fd(const struct steno_stop *stop);
STENO_API void steno_stop_free(struct steno_stop *stop);

/* ------------------------------------------------------------------- tools */

enum steno_tool_flags {
        STENO_TOOL_PARALLEL = 1,  /* may run beside other calls of the same turn */
        STENO_TOOL_PUBLIC = 2,    /* harmless: permission is not asked */
        STENO_TOOL_TERMINAL = 4,  /* a command's output: always an artifact of its own */
        STENO_TOOL_INLINE = 8,    /* answers are small by construction: never materialized */
        STENO_TOOL_VISITORS = 16, /* a visitor of a public server may use it */
};

struct steno_tools;     /* what a model is offered */
struct steno_tool_call; /* one call, valid until the function returns */

/*
 * Runs a call, on a thread of its own. Output is what it writes; a return other than 0 (with
 * err's message) makes it an error result. It should return soon after steno_tool_call_stopped
 * says so; when it does not it is left behind, and what it still writes is dropped. `ctx` must
 * live until it returns.
 */
typedef int (*steno_tool_fn)(void *ctx, struct steno_tool_call *call, struct steno_error *err);

STENO_API const char *steno_tool_call_id(const struct steno_tool_call *call);
/* The arguments, byte for byte as the model wrote them; JSON was checked (an object). */
STENO_API const char *steno_tool_call_args(const struct steno_tool_call *call, size_t *n);
/* A piece of output, stored before this returns. */
STENO_API int steno_tool_call_write(
    struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
/* Progress, for people who watch. `total` 0: unknown. */
STENO_API int steno_tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done,
    uint64_t total, struct steno_error *err);
/* Stop was requested or the deadline has passed. */
STENO_API bool steno_tool_call_stopped(const struct steno_tool_call *call);

STENO_API int steno_tools_new(struct steno_tools **out, struct steno_error *err);
/*
 * Offers a tool. Names are [a-zA-Z0-9_-]{1,64} (STENO_EINVAL) and unique (STENO_ECONFLICT).
 * `schema` is the JSON Schema of its arguments, an object; NULL: any object. All is copied.
 */
STENO_API int steno_tools_add(struct steno_tools *tools, const char *name, const char *description,
    const char *schema, uint32_t flags, steno_tool_fn fn, void *ctx, struct steno_error *err);
/* The context_* tools, so that the model can read what was materialized. */
STENO_API int steno_tools_add_context(struct steno_tools *tools, struct steno_error *err);
STENO_API void steno_tools_free(struct steno_tools *tools);

/* ------------------------------------------------------------- permissions */

enum steno_permission {
        STENO_ALLOW = 0,
        STENO_ASK = 1,
        STENO_DENY = 2,
};

/* A call that wants permission; borrowed. */
struct steno_permission_request {
        size_t size;
        const char *run;
        const char *call_id;
        const char *tool;     /* as offered to the model */
        const char *server;   /* MCP server, or NULL */
        const char *raw_name; /* the tool's own name at its server */
        const char *args;     /* exact bytes, NUL-terminated as well */
        size_t args_n;
        const char *approval; /* SHA-256 of run, request, call id, tool and exact bytes: what an
                                 approval of this one call is bound to */
        const struct steno_stop *stop;
        const char *repeat; /* SHA-256 of tool and bytes: the same when the call is repeated */
        /* What will hold for the call: {"seconds","outputBytes"?,"memoryBytes"?,"cpuSeconds"?}, */
        const char *limits;
        const char *environment; /* and the names of the variables it gets, a JSON array, or NULL */
};

/* Decides one call: enum steno_permission. `reason` (may be left empty) is told to the model. */
typedef int (*steno_permission_fn)(
    void *ctx, const struct steno_permission_request *request, char reason[240]);

/* ---------------------------------------------------------------- the loop */

enum steno_loop_flags {
        STENO_LOOP_CONTINUE = 1,         /* no prompt: go on from the stored history */
        STENO_LOOP_NO_STREAM = 2,        /* ask for whole replies */
        STENO_LOOP_NO_CONTEXT_TOOLS = 4, /* do not add the context_* tools */
        STENO_LOOP_STRICT = 8,           /* send only members that the provider's own types have */
        STENO_LOOP_SEAL = 16, /* seal the conversation when the run has ended (steno_seal), where
                                the store was opened with a key */
        STENO_LOOP_TEXT_CALLS = 32, /* for models without function calling: the tools are described
                                in the system text, and calls are read from
                                <function_call>{...}</function_call> in the reply. They are stored
                                like any other calls */
};

struct steno_loop_options {
        size_t size;
        uint32_t flags;
        struct steno_store *store; /* must be given */
        struct steno_conv *conv;   /* must be given; its store's */

        /* what to do */
        const char *prompt;       /* the user's text, or */
        const char *message_json; /* the whole user message */
        const char *message_id;   /* id for `prompt`, so that sending it twice is sending it once */
        const char *system;       /* put before the history of each request; not stored */
        const char *mode;         /* "chat" when NULL; agent, run */
        const char *run_id;       /* NULL makes one up */
        const char *require_tool; /* a name, or "any" */

        /* the model */
        const char *provider; /* "openai" when NULL, or "script" */
        const char *base_url; /* "https://api.openai.com/v1" when NULL */
        const char *api_key;  /* may be NULL */
        const char *model;
        const char *params_json;     /* members added to each request: {"temperature":0} */
        const char *script_json;     /* of provider "script" */
        uint32_t connect_ms;         /* 10,000 when 0 */
        uint32_t idle_ms;            /* no byte for so long: 120,000 when 0 */
        uint32_t retries;            /* 3 when 0; UINT32_MAX: none */
        uint64_t budget;             /* tokens of a request, steno_view's; 0: none */
        const char *edit_strategies; /* steno_view's */

        /* the tools */
        struct steno_tools *tools;  /* may be NULL; must outlive the call */
        uint32_t tool_ms;           /* time limit of a call: 600,000 when 0 */
        steno_permission_fn permit; /* rules; NULL: ask for all but public tools */
        void *permit_ctx;
        steno_permission_fn ask; /* asks a person and waits; NULL: nobody is there, deny */
        void *ask_ctx;

        /* limits; each ends the run with a stored reason */
        uint32_t max_turns;  /* model calls: 50 when 0 */
        uint32_t max_ms;     /* 0: none */
        uint64_t max_tokens; /* of all requests and replies together; 0: none */

        const struct steno_stop *stop; /* may be NULL */

        /* callbacks, all optional; a message is JSON as stored */
        void (*on_assistant_message)(void *ctx, const char *json, size_t n);
        void (*on_tool_message)(void *ctx, const char *json, size_t n);
        void (*on_event)(void *ctx, uint64_t seq, const char *type, const char *data, size_t n);
        void *ctx;

        const char *message_format; /* of message_json; "openai" when NULL */
};

/*
 * Runs the loop. 0 when the run came to an end of its own and that end is stored, also when that
 * is a failed model call or a limit: *result says which ({"runId","reason","messageId"?,"text"?,
 * "error"?:{...},"turns","usage","toolCalls"?}; toolCalls where there was no final_message with
 * them). Negative when the options are wrong (nothing was written) or
 * the store failed. *result may be NULL.
 *
 * STENO_ECONFLICT: a live run holds this conversation; the message names it, and nothing is
 * stored. STENO_EPROTO: nothing to continue.
 */
STENO_API int steno_chat_loop(
    const struct steno_loop_options *opt, char **result, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
