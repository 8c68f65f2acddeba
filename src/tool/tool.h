/*
 * tool.h - the loop's other end: what a tool is, and the set of tools a model is offered.
 *
 * This is the inside of steno_loop.h's tools; sources of tools (MCP servers, execute_command, the
 * context_* tools, callbacks) are written against it, and the loop knows nothing else of them. A
 * source makes tools (`struct tool`), adds them to a toolset, and gives itself to the set with
 * toolset_own(), so that it is closed with the set.
 *
 * A CALL, SEEN FROM A TOOL
 *
 *   The loop has checked that the arguments are a JSON object, has permission, and has stored
 *   the dispatch: the side effect may happen now. tool->call runs on a thread of its own, beside
 *   other calls when TOOL_PARALLEL is set (also calls of the same tool).
 *
 *     - Output goes out in pieces as it comes, with tool_call_write(): it is on its way to the
 *       disk when that returns, so nothing needs to be collected. What was written counts even
 *       when the call fails later.
 *     - A tool that cannot do what it was asked (bad arguments, a missing file, exit code 1 where
 *       that means failure) writes words the model can act on, sets result->is_error and returns
 *       0. Returning a negative code means "could not run at all" (the server died, fork failed);
 *       err->msg is then shown to the model as the output's last line. Either way the loop goes
 *       on.
 *     - It returns within 100 ms after steno_stop_requested(call->stop), and kills what it
 *       started. steno_stop_fd(call->stop) can be polled next to other descriptors.
 *     - call->deadline (monotonic milliseconds, time_monotonic_ms()) is its time limit. The tool
 *       itself must notice that it has passed, and return STENO_ETIMEOUT. To check for both a stop
 *       and the deadline, use tool_call_stopped(), and tool_call_left_ms() as a time-out for
 *       poll(). If a tool reacts to neither, the loop continues without it two seconds later. Its
 *       thread remains, and its writes to the finished call are refused.
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

/* What a tool is given. */
struct steno_tool_call {
        const char *id;     /* the provider's call id */
        const char *run_id; /* ids are unique only within (run, request) */
        uint64_t request;
        struct str args; /* exact bytes, a JSON object; args.p[args.n] is NUL */
        struct steno_conv *conv;
        const struct steno_stop *stop; /* never NULL */
        int64_t deadline;              /* time_monotonic_ms() at which it is over; 0: never */
        const struct tool_call_ops *ops;
};

/* Where a call's output and steps go: functions of the loop, or of a test. All slots are set. */
struct tool_call_ops {
        int (*write)(
            struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
        int (*step)(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
            struct steno_error *err);
        /* The output's ref once it has one (a terminal's at once), else NULL: for telling whoever
         * watches where to tail. Lives as long as the call. */
        const char *(*ref)(struct steno_tool_call *call);
};

/* What a tool answers beside its output. Zero is success. */
struct tool_result {
        bool is_error;
        bool has_exit; /* exit_code counts; it also stands in the stub */
        int exit_code;
        int signal; /* that ended it, or 0 */
        /* Further members of the tool message, as JSON: `"structuredContent":{...},"x":1`, without
         * braces. Empty: none. They are left out when one of them has a name that the loop sets
         * itself: MEMBER_BY_OUTPUT and MEMBER_BY_LOOP in model/members.h (id, content, ref ...). */
        struct buf extra;
};

/* What will hold for a call. It is told to whoever is asked for permission. 0: no limit. */
struct tool_terms {
        uint64_t ms; /* the loop's limit, which a tool may make shorter */
        uint64_t output_bytes;
        uint64_t memory_bytes;
        uint64_t cpu_seconds;
        struct buf
            environment; /* names of variables, a JSON array; empty: there are none to tell */
};

struct tool {
        const char *name;        /* offered to the model: [a-zA-Z0-9_-]{1,64}, unique in a set */
        const char *alias;       /* another name a model may use for it, or NULL */
        const char *raw_name;    /* its own name at its source; NULL: the same as `name` */
        const char *server;      /* MCP server it belongs to, or NULL */
        const char *description; /* may be NULL */
        struct str schema;       /* JSON Schema of the arguments, an object; empty: any object */
        uint32_t flags;          /* TOOL_* */
        uint32_t limit_ms;       /* time limit of a call; 0: the loop's */
        int (*call)(const struct tool *self, struct steno_tool_call *call,
            struct tool_result *result, struct steno_error *err);
        /* NULL: only the time is limited. */
        int (*terms)(const struct tool *self, struct str args, struct tool_terms *terms,
            struct steno_error *err);
        steno_tool_fn fn; /* of a tool that a C program registered, else NULL */
        /* The source's. A copy of this struct is what `self` points at: keep state behind ctx. */
        void *ctx;
        struct toolset_things *things; /* what it and ctx point to; set by toolset_add */
};

/* ---- for tools ---- */

/* Returns 0, STENO_EINTERRUPTED when the call is over (stopped or left behind), or an error of the
 * store. On an error the tool should clean up and return that code. */
int tool_call_write(struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err);
int tool_call_puts(struct steno_tool_call *call, const char *z, struct steno_error *err);
/* Progress: an event that watchers see, and a step of the tool message. `text` may be NULL,
 * `total` 0 while unknown. */
int tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
    struct steno_error *err);
/* Stop was requested or the deadline has passed. */
bool tool_call_stopped(const struct steno_tool_call *call);
/* Milliseconds to the deadline, 0 when it has passed, -1 when there is none: as poll() wants. */
int tool_call_left_ms(const struct steno_tool_call *call);

/* ---- sets ---- */

struct toolset_things; /* what is closed with the set, counted */

struct steno_tools {
        struct tool *list;
        size_t count;
        size_t cap;
        struct toolset_things *things; /* NULL: none yet */
};

void toolset_init(struct steno_tools *set);
/* Closes everything that the set owns, latest first. What a call still uses (toolset_hold) is
 * closed when that call ends. */
void toolset_release(struct steno_tools *set);

/*
 * A call that was left behind can outlive its set. While it holds its tool, everything that the set
 * owns stays open. The last holder closes it, on its own thread.
 */
void toolset_hold(const struct tool *tool);
void toolset_let_go(const struct tool *tool);

/*
 * Adds a copy of *tool; the strings and ctx it points to must be owned by the set, or by that which
 * the tool was added to first (toolset_own, toolset_strdup, toolset_strings). STENO_EINVAL: a name
 * a provider would refuse, a schema that is not a JSON object; STENO_ECONFLICT: the name or alias
 * is taken; STENO_ENOMEM.
 */
int toolset_add(struct steno_tools *set, const struct tool *tool, struct steno_error *err);
/* `release(thing)` is called when the set is released, or at once when this fails (STENO_ENOMEM).
 */
int toolset_own(
    struct steno_tools *set, void *thing, void (*release)(void *thing), struct steno_error *err);
/* A copy that lives as long as the set; NULL when memory is out. */
const char *toolset_strdup(struct steno_tools *set, struct str s);
/* The same for a list that ends with NULL; a NULL list is an empty one. */
const char *const *toolset_strings(struct steno_tools *set, const char *const *list);

/* By offered name or alias; NULL when there is none. Borrowed from the set. */
const struct tool *toolset_find(const struct steno_tools *set, struct str name);
/* May `name` be offered to a provider? */
bool toolset_name_ok(struct str name);

/* ---- permission ---- */

/*
 * A permission hook is steno_permission_fn of steno_loop.h: `permit` decides by rules and answers
 * STENO_ALLOW, STENO_ASK or STENO_DENY without waiting; on STENO_ASK the loop writes the event
 * tool_call_approval{state:"pending"} and calls `ask`, which waits for a person (until an answer,
 * or request->stop) and answers STENO_ALLOW or STENO_DENY. Any other answer is a deny. The loop
 * calls both on its own thread, one call at a time, in the order of the calls; TOOL_PUBLIC tools
 * skip both. request->approval is what toolset_call_approval() gives, and request->repeat
 * what toolset_approval() gives: an approval that was given for other bytes does not match.
 */
int toolset_approval(struct str name, struct str args, char out[65]);
/* The same for one call of one request: providers use ids again. */
int toolset_call_approval(const char *run, uint64_t request, const char *call_id, struct str name,
    struct str args, char out[65]);

#endif
