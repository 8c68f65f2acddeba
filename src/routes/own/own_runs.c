/*
 * own_runs.c - /api/runs: watching, stopping and approving.
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "http/runner.h"
#include "http/server_core.h"
#include "http/follow.h"

/* Is the run there, and may this token see it? Else 404 was answered. */
static bool reach_run(struct request *r, const char *run)
{
        struct steno_error err = {0};
        struct json j;
        char *info = NULL;
        json_init(&j);
        int rc = steno_run_info(r->store, r->who.project, run, &info, &err);
        bool mine =
            rc == 0 && json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
            (!r->who.session[0] || json_is(&j, json_get(&j, 0, "conversation"), r->who.session));
        if (!mine && (rc == 0 || rc == STENO_ENOTFOUND || rc == STENO_EINVAL))
                request_error(r, 404, "not_found", "no such run");
        else if (!mine)
                request_failed(r, rc, &err);
        json_release(&j);
        steno_free(info);
        return mine;
}

void own_run_get(struct request *r)
{
        struct steno_error err = {0};
        char *info;
        if (!reach_run(r, r->params[0].p))
                return;
        int rc = steno_run_info(r->store, r->who.project, r->params[0].p, &info, &err);
        request_reply_made(r, rc, info, &err);
}

/* Last-Event-ID is "<run>-<seq>"; ?after=SEQ says the same. */
static bool resume_point(struct request *r, uint64_t *after)
{
        const char *last = request_header(r, "Last-Event-ID");
        if (!last)
                return request_number(r, "after", 0, 0, UINT64_MAX >> 1, after);
        const char *dash = strrchr(last, '-');
        *after = strtoull(dash ? dash + 1 : last, NULL, 10);
        return true;
}

void own_run_events(struct request *r)
{
        struct steno_error err = {0};
        uint64_t after;
        const struct projection *projection = projection_find(request_query(r, "format"));
        if (!projection) {
                request_error(r, 400, "bad_request", "there is no such format of events");
                return;
        }
        if (!resume_point(r, &after) || !reach_run(r, r->params[0].p))
                return;
        struct stream *s = stream_events(r, NULL, NULL);
        if (!s)
                return;
        if (projection->header[0])
                request_header_out(r, projection->header[0], projection->header[1]);
        stream_write(s, ": steno\n\n", 9);
        if (follow_add(
                r->server->follow, r->who.project, r->params[0].p, after, projection, s, &err)) {
                stream_break(s);
                stream_unref(s);
        }
}

void own_run_stop(struct request *r)
{
        struct steno_error err = {0};
        if (!reach_run(r, r->params[0].p))
                return;
        /* A run that is over is stopped already. */
        bool stopped = (r->server->chat && runner_stop(r->server->chat, r->who.project,
                                               r->params[0].p, &err) == 0) ||
                       steno_run_stop(r->store, r->who.project, r->params[0].p, &err) == 0;
        buf_printf(&r->reply, "{\"stopped\":%s}", stopped ? "true" : "false");
        request_reply_json(r, 200);
}

/* {"approved":true|false} or {"decision":"allow"|"deny"}, with the event's "approval" hash. */
void own_run_approve(struct request *r)
{
        struct steno_error err = {0};
        static const struct body_rule RULES[] = {
            {"approved", BODY_BOOL}, {"decision", BODY_NAME}, {"approval", BODY_NAME}, {0}};
        struct json j;
        json_init(&j);
        if (!reach_run(r, r->params[0].p) || !request_json(r, &j, RULES)) {
                json_release(&j);
                return;
        }
        json_ref approved = json_get(&j, 0, "approved");
        json_ref decision = json_get(&j, 0, "decision");
        enum json_type t = json_type(&j, approved);
        bool allow = t == JSON_TRUE || json_is(&j, decision, "allow");
        bool deny = t == JSON_FALSE || json_is(&j, decision, "deny");
        if (allow == deny) {
                request_error(r, 400, "bad_request", "approved must be true or false");
        } else {
                const char *approval = request_member(r, &j, 0, "approval");
                bool over = false;
                int rc = r->server->chat
                             ? runner_approve(r->server->chat, r->who.project, r->params[0].p,
                                   r->params[1].p, approval, allow, &over, &err)
                             : STENO_ENOTFOUND;
                /* Another server, or a terminal, may hold the run. */
                if (rc == STENO_ENOTFOUND && approval && !over)
                        rc = steno_run_answer(r->store, r->who.project, r->params[0].p,
                            r->params[1].p, approval, allow, &err);
                if (rc < 0)
                        request_failed(r, rc, &err);
                else {
                        buf_printf(&r->reply, "{\"approved\":%s}", allow ? "true" : "false");
                        request_reply_json(r, 200);
                }
        }
        json_release(&j);
}
