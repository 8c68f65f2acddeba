/*
 * permission.h - may this call run? Rules first, then approvals, then a person.
 *
 * A rule is an object of the config's "permissions" list:
 *
 *   {"action":"allow"|"ask"|"deny", "tool":NAME, "server":S?, "argvPrefix":[...]?, "shell":"..."?,
 *    "public":true?}
 *
 *   tool        the name that is offered to the model, or "*" for every tool; beside `server`, the
 *               name the tool has at that server
 *   server      only tools of this MCP server; alone, all of them
 *   argvPrefix  of execute_command: the call's argv must begin with exactly these arguments
 *   shell       of execute_command: the call's shell string must be exactly this
 *   public      of an allow rule with argvPrefix or shell: a visitor of a public server may run
 *               this command too, word for word; what follows an argvPrefix is not open to them
 *
 * The first rule that matches decides; when none does, the answer is ask. Text is compared byte
 * for byte, never normalised, split, or expanded. No rule allows a call that cannot be read with
 * certainty:
 *
 *   1. If the arguments cannot be parsed (also: a key twice, a NUL, an unknown key), the answer is
 *      ask or deny.
 *   2. A shell string is opaque. No argvPrefix matches it. If an argvPrefix denies something, the
 *      answer for any shell string is ask or deny, because it may contain just that.
 *   3. A rule with argvPrefix or shell allows only in the session's directory and below it, for the
 *      same words mean something else elsewhere.
 */
#ifndef LOOP_PERMISSION_H
#define LOOP_PERMISSION_H

#include "base/json.h"
#include "base/str.h"
#include "steno_loop.h"

struct permission_rule {
        enum steno_permission action;
        char *tool;         /* NULL: any tool of `server` */
        char *server;       /* NULL: no matter */
        char **argv_prefix; /* NULL-terminated, or NULL */
        char *shell;        /* or NULL */
        bool is_public;     /* visitors may run it too */
};

struct permission_rules {
        struct permission_rule *list;
        size_t count;
};

void permission_rules_init(struct permission_rules *rules);
void permission_rules_release(struct permission_rules *rules);
/* Adds the rules of a JSON array behind those that are there; `where` names it in errors
 * (STENO_EINVAL). On failure nothing is added. */
int permission_rules_read(struct permission_rules *rules, const struct json *j, json_ref array,
    const char *where, struct steno_error *err);

#define PERMISSION_NO_RULE ((size_t)-1)

/* What the rules say of a call. *rule (may be NULL) becomes the index of the one that decided. */
enum steno_permission permission_check(const struct permission_rules *rules,
    const struct steno_permission_request *request, size_t *rule);

/* Does a rule open a command to visitors? */
bool permission_rules_open(const struct permission_rules *rules);
/* May a visitor make this call, of a tool that is marked TOOL_VISITORS? A rule that asks or denies
 * closes it. execute_command needs a public rule; other tools need none. */
bool permission_check_visitor(
    const struct permission_rules *rules, const struct steno_permission_request *request);

/* ---- approvals: calls that a person allowed for the rest of the session ---- */

struct permission_approvals {
        char (*list)[65];
        size_t count;
        size_t cap;
};

void permission_approvals_release(struct permission_approvals *approvals);
/* `approval` is the request's `repeat`: bound to the tool and the exact bytes of the arguments. */
int permission_approve(
    struct permission_approvals *approvals, const char *approval, struct steno_error *err);
bool permission_approved(const struct permission_approvals *approvals, const char *approval);

/* ---- for the loop ---- */

struct permission {
        struct permission_rules rules;
        struct permission_approvals approvals;
};

void permission_release(struct permission *p);
/* A steno_permission_fn whose ctx is a struct permission; not for several threads at once. */
int permission_decide(void *ctx, const struct steno_permission_request *request, char reason[240]);
/* The same for visitors: it allows or denies and never asks. Any number of threads at once. */
int permission_decide_visitor(
    void *ctx, const struct steno_permission_request *request, char reason[240]);

#endif
