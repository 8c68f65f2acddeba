/*
 * permission.c - rules, matched exactly. permission.h numbers the guarantees that are cited here.
 */
#include "loop/permission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json_keys.h"
#include "exec/exec_args.h"

#define EXECUTE "execute_command"
#define RULES_MAX 10000

/* ---- reading rules ---- */

void permission_rules_init(struct permission_rules *rules)
{
        memset(rules, 0, sizeof(*rules));
}

static void rule_release(struct permission_rule *r)
{
        free(r->tool);
        free(r->server);
        json_keys_free_list(r->argv_prefix);
        free(r->shell);
        memset(r, 0, sizeof(*r));
}

void permission_rules_release(struct permission_rules *rules)
{
        for (size_t i = 0; i < rules->count; i++)
                rule_release(&rules->list[i]);
        free(rules->list);
        permission_rules_init(rules);
}

static bool action_of(const char *word, enum steno_permission *action)
{
        if (!word)
                return false;
        if (strcmp(word, "allow") == 0)
                *action = STENO_ALLOW;
        else if (strcmp(word, "ask") == 0)
                *action = STENO_ASK;
        else if (strcmp(word, "deny") == 0)
                *action = STENO_DENY;
        else
                return false;
        return true;
}

static int rule_check(const struct permission_rule *r, const char *where, struct steno_error *err)
{
        if (!r->tool && !r->server)
                return error_set(err, STENO_EINVAL, "%s: needs \"tool\" or \"server\"", where);
        if (!r->argv_prefix && !r->shell)
                return 0;
        if (r->server || !r->tool || strcmp(r->tool, EXECUTE) != 0)
                return error_set(err, STENO_EINVAL,
                    "%s: \"argvPrefix\" and \"shell\" are only for " EXECUTE, where);
        if (r->argv_prefix && r->shell)
                return error_set(
                    err, STENO_EINVAL, "%s: give \"argvPrefix\" or \"shell\", not both", where);
        if (r->argv_prefix && !r->argv_prefix[0])
                return error_set(err, STENO_EINVAL,
                    "%s: an empty \"argvPrefix\" would match everything; leave it out", where);
        return 0;
}

static int rule_read_public(struct permission_rule *r, const struct json *j, json_ref obj,
    const char *where, struct steno_error *err)
{
        json_ref ref = json_get(j, obj, "public");
        enum json_type type = json_type(j, ref);

        if (ref == JSON_NONE || type == JSON_FALSE)
                return 0;
        if (type != JSON_TRUE || r->action != STENO_ALLOW || (!r->argv_prefix && !r->shell))
                return error_set(err, STENO_EINVAL,
                    "%s: \"public\" is for a rule that allows an \"argvPrefix\" or a \"shell\"",
                    where);
        r->is_public = true;
        return 0;
}

static int rule_read(struct permission_rule *r, const struct json *j, json_ref obj,
    const char *where, struct steno_error *err)
{
        static const char *const known[] = {
            "action", "tool", "server", "argvPrefix", "shell", "public", NULL};
        char *action = NULL;
        int rc = json_keys_check(j, obj, known, where, err);

        memset(r, 0, sizeof(*r));
        if (rc == 0)
                rc = json_keys_string(j, obj, "action", where, &action, err);
        if (rc == 0 && !action_of(action, &r->action))
                rc = error_set(
                    err, STENO_EINVAL, "%s: \"action\" must be allow, ask or deny", where);
        if (rc == 0)
                rc = json_keys_string(j, obj, "tool", where, &r->tool, err);
        if (rc == 0)
                rc = json_keys_string(j, obj, "server", where, &r->server, err);
        if (rc == 0)
                rc = json_keys_strings(j, obj, "argvPrefix", where, &r->argv_prefix, err);
        if (rc == 0)
                rc = json_keys_string(j, obj, "shell", where, &r->shell, err);
        if (rc == 0)
                rc = rule_check(r, where, err);
        if (rc == 0)
                rc = rule_read_public(r, j, obj, where, err);
        if (rc < 0)
                rule_release(r);
        free(action);
        return rc;
}

int permission_rules_read(struct permission_rules *rules, const struct json *j, json_ref array,
    const char *where, struct steno_error *err)
{
        size_t before = rules->count;
        size_t n = json_count(j, array);
        int rc = 0;

        if (json_type(j, array) != JSON_ARRAY || before + n > RULES_MAX)
                return error_set(
                    err, STENO_EINVAL, "%s: must be a list of at most %d rules", where, RULES_MAX);
        if (n == 0)
                return 0;
        struct permission_rule *list = realloc(rules->list, (before + n) * sizeof(*list));
        if (!list)
                return error_nomem(err);
        rules->list = list;
        for (json_ref e = json_child(j, array); e != JSON_NONE; e = json_next(j, array, e)) {
                char place[120];
                snprintf(place, sizeof(place), "%.90s[%zu]", where, rules->count - before);
                rc = rule_read(&list[rules->count], j, e, place, err);
                if (rc < 0)
                        break;
                rules->count++;
        }
        if (rc < 0)
                while (rules->count > before)
                        rule_release(&list[--rules->count]);
        return rc;
}

/* ---- matching ---- */

/* What is known of a call. */
struct call {
        const struct steno_permission_request *request;
        bool is_execute;
        bool parsed;
        bool inside; /* runs in the session's directory or below */
        struct exec_args args;
};

/* Judged by its spelling: a relative path without "..". */
static bool is_inside(const char *directory)
{
        if (!directory)
                return true;
        if (directory[0] == '/')
                return false;
        for (const char *p = directory; *p;) {
                size_t n = strcspn(p, "/");
                if (n == 2 && p[0] == '.' && p[1] == '.')
                        return false;
                p += n;
                p += strspn(p, "/");
        }
        return true;
}

static void call_read(struct call *c, const struct steno_permission_request *request)
{
        struct str args = {request->args, request->args_n};

        memset(c, 0, sizeof(*c));
        c->request = request;
        c->is_execute = !request->server && strcmp(request->tool, EXECUTE) == 0;
        if (c->is_execute) {
                c->parsed = exec_args_parse(&c->args, args, NULL) == 0;
                c->inside = c->parsed && is_inside(c->args.directory);
                return;
        }
        struct json j;
        json_init(&j);
        c->parsed =
            json_parse(&j, args.p, args.n, NULL, NULL) == 0 && json_type(&j, 0) == JSON_OBJECT;
        json_release(&j);
}

static bool names_tool(const struct permission_rule *r, const struct steno_permission_request *q)
{
        if (r->server && (!q->server || strcmp(r->server, q->server) != 0))
                return false;
        if (!r->tool || strcmp(r->tool, "*") == 0)
                return true;
        const char *name = r->server && q->raw_name ? q->raw_name : q->tool;
        return strcmp(r->tool, name) == 0;
}

static bool begins_with(char **argv, char **prefix)
{
        for (size_t i = 0; prefix[i]; i++)
                if (!argv[i] || strcmp(argv[i], prefix[i]) != 0)
                        return false;
        return true;
}

enum match { NO, YES, PERHAPS };

static enum match match_command(const struct permission_rule *r, const struct call *c)
{
        bool same;

        /* An MCP server may have a tool that is also called execute_command. */
        if (!c->is_execute)
                return NO;
        if (!c->parsed)
                return PERHAPS;
        if (r->argv_prefix && c->args.shell)
                return PERHAPS;
        if (r->argv_prefix)
                same = begins_with(c->args.argv, r->argv_prefix);
        else
                same = c->args.shell && strcmp(c->args.shell, r->shell) == 0;
        if (same && r->action == STENO_ALLOW && !c->inside)
                return NO;
        return same ? YES : NO;
}

static enum steno_permission judge(
    const struct permission_rules *rules, const struct call *c, size_t *rule)
{
        bool doubt = !c->parsed;

        for (size_t i = 0; i < rules->count; i++) {
                const struct permission_rule *r = &rules->list[i];
                if (!names_tool(r, c->request))
                        continue;
                enum match m = r->argv_prefix || r->shell ? match_command(r, c) : YES;
                if (m == PERHAPS && r->action == STENO_DENY)
                        doubt = true;
                if (m != YES)
                        continue;
                if (rule)
                        *rule = i;
                return r->action == STENO_ALLOW && doubt ? STENO_ASK : r->action;
        }
        return STENO_ASK;
}

enum steno_permission permission_check(const struct permission_rules *rules,
    const struct steno_permission_request *request, size_t *rule)
{
        struct call c;

        if (rule)
                *rule = PERMISSION_NO_RULE;
        call_read(&c, request);
        enum steno_permission answer = judge(rules, &c, rule);
        exec_args_release(&c.args);
        return answer;
}

/* ---- visitors ---- */

bool permission_rules_open(const struct permission_rules *rules)
{
        for (size_t i = 0; i < rules->count; i++)
                if (rules->list[i].is_public)
                        return true;
        return false;
}

/* A visitor could freely choose whatever follows a prefix. */
static bool is_whole(const struct permission_rule *r, const struct call *c)
{
        size_t n = 0;

        while (r->argv_prefix && r->argv_prefix[n])
                n++;
        return c->args.shell || (c->args.argv && !c->args.argv[n]);
}

/* Rules that allow calls only for the owner are skipped. */
static bool judge_visitor(const struct permission_rules *rules, const struct call *c)
{
        for (size_t i = 0; i < rules->count; i++) {
                const struct permission_rule *r = &rules->list[i];
                if (!names_tool(r, c->request))
                        continue;
                enum match m = r->argv_prefix || r->shell ? match_command(r, c) : YES;
                if (m != NO && r->action != STENO_ALLOW)
                        return false;
                if (m == YES && r->is_public && is_whole(r, c))
                        return true;
        }
        return !c->is_execute;
}

bool permission_check_visitor(
    const struct permission_rules *rules, const struct steno_permission_request *request)
{
        struct call c;

        call_read(&c, request);
        bool open = c.parsed && judge_visitor(rules, &c);
        exec_args_release(&c.args);
        return open;
}

/* ---- approvals ---- */

void permission_approvals_release(struct permission_approvals *approvals)
{
        free(approvals->list);
        memset(approvals, 0, sizeof(*approvals));
}

bool permission_approved(const struct permission_approvals *approvals, const char *approval)
{
        for (size_t i = 0; approval && i < approvals->count; i++)
                if (strcmp(approvals->list[i], approval) == 0)
                        return true;
        return false;
}

int permission_approve(
    struct permission_approvals *approvals, const char *approval, struct steno_error *err)
{
        if (strlen(approval) != 64)
                return error_set(err, STENO_EINVAL, "an approval is 64 hex digits");
        if (permission_approved(approvals, approval))
                return 0;
        if (!grow_room(approvals->list, approvals->count, approvals->cap))
                return error_nomem(err);
        memcpy(approvals->list[approvals->count++], approval, 65);
        return 0;
}

/* ---- for the loop ---- */

void permission_release(struct permission *p)
{
        permission_rules_release(&p->rules);
        permission_approvals_release(&p->approvals);
}

int permission_decide(void *ctx, const struct steno_permission_request *request, char reason[240])
{
        struct permission *p = ctx;
        size_t rule;
        enum steno_permission answer = permission_check(&p->rules, request, &rule);

        /* An approval answers a question; it does not overrule a deny. */
        if (answer == STENO_ASK && permission_approved(&p->approvals, request->repeat))
                return STENO_ALLOW;
        if (answer == STENO_DENY)
                snprintf(reason, 240, "permission rule %zu denies it", rule + 1);
        return answer;
}

int permission_decide_visitor(
    void *ctx, const struct steno_permission_request *request, char reason[240])
{
        const struct permission *p = ctx;

        if (permission_check_visitor(&p->rules, request))
                return STENO_ALLOW;
        snprintf(reason, 240, "this call is not open to visitors");
        return STENO_DENY;
}
