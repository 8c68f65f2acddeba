/*
 * own_watch.c - one stream for all windows of a browser: POST /api/watch, PATCH and DELETE
 * /api/watch/:id; and GET /api/approvals.
 */
#include "routes/handlers.h"

#include "http/server_core.h"
#include "http/waiting.h"
#include "http/watches.h"

void own_watch(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        json_init(&j);
        if (request_json(r, &j, NULL)) {
                json_ref topics = json_get(&j, 0, "topics");
                int rc = watches_check(&j, topics, &err);
                bool full = watches_full(r->server->watches);
                struct stream *s = rc || full ? NULL : stream_events(r, NULL, NULL);
                if (rc) {
                        request_error(r, 400, "bad_request", "%s", err.msg);
                } else if (full) {
                        request_error(r, 503, "busy", "too many watches at once");
                } else if (s) {
                        stream_ref(s);
                        if (watches_add(r->server->watches, r->who.project, &j, topics, s, &err))
                                stream_break(s);
                        stream_unref(s);
                }
        }
        json_release(&j);
}

void own_watch_change(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        json_init(&j);
        if (request_json(r, &j, NULL)) {
                int rc = watches_change(r->server->watches, r->who.project, r->params[0].p, &j,
                    json_get(&j, 0, "add"), json_get(&j, 0, "remove"), &err);
                if (rc == STENO_EINVAL)
                        request_error(r, 400, "bad_request", "%s", err.msg);
                else if (rc)
                        request_failed(r, rc, &err);
                else {
                        buf_puts(&r->reply, "{}");
                        request_reply_json(r, 200);
                }
        }
        json_release(&j);
}

void own_watch_end(struct request *r)
{
        if (watches_end(r->server->watches, r->who.project, r->params[0].p)) {
                buf_puts(&r->reply, "{}");
                request_reply_json(r, 200);
        } else {
                request_error(r, 404, "not_found", "no such watch");
        }
}

void own_approvals(struct request *r)
{
        waiting_put(r->server->waiting, r->who.project, &r->reply);
        request_reply_json(r, 200);
}
