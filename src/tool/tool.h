/*
 * tool.h - defines a tool, and the set of tools that a model is offered.
 *
 * This is the internal side of the tools in steno_loop.h. Sources of tools (MCP servers,
 * execute_command, the context_* tools, callbacks) implement it, and the loop knows nothing else of
 * them. A source makes tools (`struct tool`), adds them to a toolset, and hands itself to the set
 * with toolset_own(), so that it is closed with the set.
 *
 * A CALL, SEEN FROM A TOOL
 *
 *   The loop has checked that the arguments are a JSON object, has permission, and has stored the
 *   dispatch: the side effect may happen now. tool->call runs on a thread of its own. If
 *   TOOL_PARALLEL is set, it may run at the same time as other calls, also of the same tool.
 *
 *     - The tool writes its output in pieces as it comes, with tool_call_write(). When this
 *       returns, the piece is on its way to the disk, so the tool does not collect anything. The
 *       output so far is kept even if the call fails later.
 *     - If a tool fails (bad arguments, a missing file, an exit code that means failure), it writes
 *       a text that helps the model, sets result->is_error and returns 0. If the tool could not run
 *       at all (the server died, fork failed), it returns a negative code; then the model sees
 *       err->msg as the last line of the output. In both cases the loop continues.
 *     - The tool returns within 100 ms after steno_stop_requested(call->stop) becomes true, and
 *       kills the processes that it started. steno_stop_fd(call->stop) can be polled next to other
 *       descriptors.
 *     - call->deadline (monotonic milliseconds, time_monotonic_ms()) is the time limit. The tool
 *       itself must check it, and return STENO_ETIMEOUT after it has passed. tool_call_stopped()
 *       checks for both a stop and the deadline; tool_call_left_ms() is a time-out for poll(). If a
 *       tool reacts to neither, the loop continues without it two seconds later. Its thread
 *       remains, and its writes to the finished call are refused.
 *     - Nothing in `call` may be used after the return.
 *
 * THREADS  A toolset is built by one thread and only read afterwards. The functions on a call may
 *          be used by any number of threads, until the call returns.
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"
#include "steno_loop.h"

#define TOOL_PARALLEL STENO_TOOL_PARALLEL
#define TOOL_PUBLIC STENO_TOOL_PUBLIC
#define TOOL_TERMINAL STENO_TOOL_TERMINAL
#define TOOL_INLINE STENO_TOOL_INLINE
#define TOOL_VISITORS STENO_TOOL_VISITORS

struct tool;
struct tool_call_ops;

/* The input of a tool. */
struct steno_tool_call {
        const char *id;     /* the provider's call id */
        const char *run_id; /* ids of calls are unique only within (run, request) */
        uint64_t request;
        struct str args; /* exact bytes, a JSON object; args.p[args.n] is NUL */
        struct steno_conv *conv;
        const struct steno_stop *stop; /* never NULL */
        int64_t deadline;              /* time_monotonic_ms() at which the time is over; 0:
                                          never */
        const struct tool_call_ops *ops;
};

/* The functions that receive a call's output and steps; they belong to the loop or to a test. All
 * slots must be set. */
struct tool_call_ops {
        int (*write)(
            struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
        int (*step)(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
            struct steno_error *err);
        /* Returns the output's ref as soon as it has one (a terminal's at once), else NULL. A
         * watcher can then follow the output. The string lives as long as the call. */
        const char *(*ref)(struct steno_tool_call *call);
};

/* The result of a tool beside its output. Zero is success. */
struct tool_result {
        bool is_error;
        bool has_exit; /* exit_code is valid; it is also shown in the stub */
        int exit_code;
        int signal; /* the signal that ended it, or 0 */
        /* More members of the tool message, as JSON without braces:
         * `"structuredContent":{...},"x":1`. Empty: none. All of them are left out if one has a
         * name that the loop sets itself: MEMBER_BY_OUTPUT and MEMBER_BY_LOOP in model/members.h
         * (id, content, ref ...). */
        struct buf extra;
};

/* The limits that will apply to a call. They are shown to the person who is asked for permission.
 * 0: no limit. */
struct tool_terms {
        uint64_t ms; /* the loop's time limit, which a tool may reduce */
        uint64_t output_bytes;
        uint64_t memory_bytes;
        uint64_t cpu_seconds;
        struct buf
            environment; /* names of variables, a JSON array; empty: there are none to show */
};

struct tool {
        const char *name;        /* offered to the model: [a-zA-Z0-9_-]{1,64}, unique in a set */
        const char *alias;       /* another name that a model may use for it, or NULL */
        const char *raw_name;    /* its own name at its source; NULL: the same as `name` */
        const char *server;      /* the MCP server that it belongs to, or NULL */
        const char *description; /* may be NULL */
        struct str schema;       /* JSON Schema of the arguments, an object; empty: any object */
        uint32_t flags;          /* TOOL_* */
        uint32_t limit_ms;       /* time limit of a call; 0: the loop's limit */
        int (*call)(const struct tool *self, struct steno_tool_call *call,
            struct tool_result *result, struct steno_error *err);
        /* Fills the limits of a call. NULL: only the time is limited. */
        int (*terms)(const struct tool *self, struct str args, struct tool_terms *terms,
            struct steno_error *err);
        steno_tool_fn fn; /* for a tool that a C program registered, else NULL */
        /* Belongs to the source. `self` points to a copy of this struct, so keep state behind
         * ctx. */
        void *ctx;
        struct toolset_things *things; /* the strings and objects that it and ctx point to; set
                                          by toolset_add */
};

/* ---- for tools ---- */

/* Returns 0, STENO_EINTERRUPTED if the call is over (stopped, or the loop continued without it), or
 * an error of the store. On an error, the tool should clean up and return that code. */
int tool_call_write(struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
int tool_call_puts(struct steno_tool_call *call, const char *z, struct steno_error *err);
/* Reports progress: an event for watchers, and a step of the tool message. `text` may be NULL;
 * `total` is 0 as long as it is not known. */
int tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
    struct steno_error *err);
/* Was a stop requested, or has the deadline passed? */
bool tool_call_stopped(const struct steno_tool_call *call);
/* Returns the milliseconds to the deadline, 0 if it has passed, -1 if there is none, as poll()
 * expects. */
int tool_call_left_ms(const struct steno_tool_call *call);

/* ---- sets ---- */

struct toolset_things; /* closed with the set; it counts its users */

struct steno_tools {
        struct tool *list;
        size_t count;
        size_t cap;
        struct toolset_things *things; /* NULL: none yet */
};

void toolset_init(struct steno_tools *set);
/* Closes everything that the set owns, latest first. If a call still uses it (toolset_hold), it is
 * closed when this call ends. */
void toolset_release(struct steno_tools *set);

/*
 * A call that the loop continued without can outlive its set. As long as it holds its tool,
 * everything that the set owns stays open. The last holder closes it, on its own thread.
 */
void toolset_hold(const struct tool *tool);
void toolset_let_go(const struct tool *tool);

/*
 * Adds a copy of *tool. The set must own the strings and the ctx that it points to, or they must
 * belong to the set to which the tool was added first (toolset_own, toolset_strdup,
 * toolset_strings). STENO_EINVAL: a provider would refuse the name, or the schema is not a JSON
 * object; STENO_ECONFLICT: the name or alias is taken; STENO_ENOMEM.
 */
int toolset_add(struct steno_tools *set, const struct tool *tool, struct steno_error *err);
/* Calls `release(thing)` when the set is released, or at once if this function fails
 * (STENO_ENOMEM). */
int toolset_own(
    struct steno_tools *set, void *thing, void (*release)(void *thing), struct steno_error *err);
/* Returns a copy that lives as long as the set; NULL if memory is out. */
const char *toolset_strdup(struct steno_tools *set, struct str s);
/* The same for a list that ends with NULL. A NULL list counts as an empty list. */
const char *const *toolset_strings(struct steno_tools *set, const char *const *list);

/* Finds a tool by its offered name or alias; NULL if there is none. The set owns it. */
const struct tool *toolset_find(const struct steno_tools *set, struct str name);
/* May `name` be offered to a provider? */
bool toolset_name_ok(struct str name);

/* ---- permission ---- */

/*
 * A permission hook is steno_permission_fn of steno_loop.h: `permit` decides by rules and returns
 * STENO_ALLOW, STENO_ASK or STENO_DENY without waiting. On STENO_ASK, the loop writes the event
 * tool_call_approval{state:"pending"} and calls `ask`, which waits for a person (until an answer,
 * or request->stop) and returns STENO_ALLOW or STENO_DENY. Any other value means STENO_DENY. The
 * loop calls both on its own thread, one call at a time, in the order of the calls; TOOL_PUBLIC
 * tools skip both. request->approval is the result of toolset_call_approval(), and request->repeat
 * that of toolset_approval(): an approval for other bytes does not match.
 */
int toolset_approval(struct str name, struct str args, char out[65]);
/* The same for one call of one request, because providers reuse ids. */
int toolset_call_approval(const char *run, uint64_t request, const char *call_id, struct str name,
    struct str args, char out[65]);

#endif
