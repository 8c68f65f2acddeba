/*
 * steno_loop.h - the tool loop: calls the model and runs its tool calls until the model is done.
 *
 * One call, steno_chat_loop(), does this, in exactly this order:
 *
 *   user message stored -> model called (streamed) -> assistant message stored -> for each call:
 *     permission -> dispatch stored -> tool runs, steps and output streamed -> output materialized
 *     -> outcome stored -> tool message stored -> callback
 *   -> model called again ... -> final assistant message stored -> run ended
 *
 *
 * GUARANTEES
 *
 *   1. A callback gets a message only when it is durable, and gets each message once. A reply that
 *      was discarded (because of a forced tool choice) is never a message; the run's event log
 *      keeps the attempt.
 *   2. A tool whose outcome is stored is never run again. A tool that was running when the process
 *      died is not run again automatically: the model is told that the effects of the call are
 *      unknown.
 *   3. However a run ends (the model, a limit, an error, a stop, a kill), the provider still
 *      accepts the history, and all text that was streamed to anyone is kept.
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
 * A flag that ends a run, set from another thread or a signal handler. It stays set. The loop and
 * the tools notice it within milliseconds; the loop stops waiting for a tool after two seconds.
 */
struct steno_stop;
STENO_API int steno_stop_new(struct steno_stop **out, struct steno_error *err);
/* Async-signal-safe. */
STENO_API void steno_stop_request(struct steno_stop *stop);
STENO_API bool steno_stop_requested(const struct steno_stop *stop); /* NULL: false */
/* A flag that is also set when `parent` (may be NULL) is set. Setting it does not set `parent`. */
STENO_API int steno_stop_new_below(
    const struct steno_stop *parent, struct steno_stop **out, struct steno_error *err);
/* A descriptor for poll(): it becomes readable, and stays so, once stop was requested. -1 for
 * NULL. */
STENO_API int steno_stop_fd(const struct steno_stop *stop);
STENO_API void steno_stop_free(struct steno_stop *stop);

/* ------------------------------------------------------------------- tools */

enum steno_tool_flags {
        STENO_TOOL_PARALLEL = 1,  /* may run beside other calls of the same turn */
        STENO_TOOL_PUBLIC = 2,    /* harmless: runs without asking for permission */
        STENO_TOOL_TERMINAL = 4,  /* a command's output: always an artifact of its own */
        STENO_TOOL_INLINE = 8,    /* its answers are always small: never materialized */
        STENO_TOOL_VISITORS = 16, /* a visitor of a public server may use it */
};

struct steno_tools;     /* what a model is offered */
struct steno_tool_call; /* one call, valid until the function returns */

/*
 * Runs a call, on a separate thread. The output is what the function writes with
 * steno_tool_call_write. A non-zero return makes the result an error, with the message of `err`.
 * The function should return soon after steno_tool_call_stopped becomes true; otherwise the loop
 * continues without it and drops what it still writes. `ctx` must stay valid until the function
 * returns.
 */
typedef int (*steno_tool_fn)(void *ctx, struct steno_tool_call *call, struct steno_error *err);

STENO_API const char *steno_tool_call_id(const struct steno_tool_call *call);
/* The arguments, byte for byte as the model wrote them; already checked to be a JSON object. */
STENO_API const char *steno_tool_call_args(const struct steno_tool_call *call, size_t *n);
/* Writes a piece of output; it is stored when the call returns. */
STENO_API int steno_tool_call_write(
    struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
/* Reports progress to people who watch. `total` 0: unknown. */
STENO_API int steno_tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done,
    uint64_t total, struct steno_error *err);
/* Was stop requested, or has the deadline passed? */
STENO_API bool steno_tool_call_stopped(const struct steno_tool_call *call);

STENO_API int steno_tools_new(struct steno_tools **out, struct steno_error *err);
/*
 * Offers a tool. Names are [a-zA-Z0-9_-]{1,64} (STENO_EINVAL) and unique (STENO_ECONFLICT).
 * `schema` is the JSON Schema of its arguments, an object; NULL: any object. The texts are copied.
 */
STENO_API int steno_tools_add(struct steno_tools *tools, const char *name, const char *description,
    const char *schema, uint32_t flags, steno_tool_fn fn, void *ctx, struct steno_error *err);
/* Adds the context_* tools, with which the model can read materialized outputs. */
STENO_API int steno_tools_add_context(struct steno_tools *tools, struct steno_error *err);
STENO_API void steno_tools_free(struct steno_tools *tools);

/* ------------------------------------------------------------- permissions */

enum steno_permission {
        STENO_ALLOW = 0,
        STENO_ASK = 1,
        STENO_DENY = 2,
};

/* A call that needs permission; borrowed. */
struct steno_permission_request {
        size_t size;
        const char *run;
        const char *call_id;
        const char *tool;     /* as offered to the model */
        const char *server;   /* MCP server, or NULL */
        const char *raw_name; /* the tool's own name at its server */
        const char *args;     /* exact bytes, NUL-terminated as well */
        size_t args_n;
        const char *approval; /* SHA-256 of run, request, call id, tool and exact bytes. An approval
                                 is valid only for the call with this hash */
        const struct steno_stop *stop;
        const char *repeat; /* SHA-256 of tool and bytes: the same when the call is repeated */
        /* The limits of the call: {"seconds","outputBytes"?,"memoryBytes"?,"cpuSeconds"?} */
        const char *limits;
        const char *environment; /* the names of the environment variables that it gets, a JSON
                                    array, or NULL */
};

/* Decides about one call and returns an enum steno_permission. The model is told `reason`, which
 * may stay empty. */
typedef int (*steno_permission_fn)(
    void *ctx, const struct steno_permission_request *request, char reason[240]);

/* ---------------------------------------------------------------- the loop */

enum steno_loop_flags {
        STENO_LOOP_CONTINUE = 1,         /* no prompt: continue from the stored history */
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
        struct steno_store *store; /* required */
        struct steno_conv *conv;   /* required; of the same store */

        /* what to do */
        const char *prompt;       /* the user's text, or */
        const char *message_json; /* the whole user message */
        const char *message_id;   /* id of the message, where message_json has none; a message that
                                     is sent twice with the same id is stored once */
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
        uint32_t idle_ms;            /* the longest time without a byte: 120,000 when 0 */
        uint32_t retries;            /* 3 when 0; UINT32_MAX: none */
        uint64_t budget;             /* tokens of a request, steno_view's; 0: none */
        const char *edit_strategies; /* steno_view's */

        /* the tools */
        struct steno_tools *tools;  /* may be NULL; must outlive the call */
        uint32_t tool_ms;           /* time limit of a call: 600,000 when 0 */
        steno_permission_fn permit; /* rules; NULL: ask for all but public tools */
        void *permit_ctx;
        /* Asks a person and waits. STENO_ASK: nobody has decided here, so that an answer from
         * elsewhere counts, and without one the call is denied. NULL: nobody is there. */
        steno_permission_fn ask;
        void *ask_ctx;

        /* limits; a run that reaches one ends with a stored reason */
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
 * Runs the loop. Returns 0 when the run has ended and its end is stored, also when a failed model
 * call or a limit ended it. *result says how it ended ({"runId","reason","messageId"?,"text"?,
 * "error"?:{...},"turns","usage","toolCalls"?}; toolCalls where there was no final_message with
 * them). Returns a negative code when the options are wrong (nothing was written) or the store
 * failed. `result` may be NULL.
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
