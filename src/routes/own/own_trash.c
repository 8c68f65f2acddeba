/*
 * own_trash.c - GET /api/trash, and DELETE /api/trash/:id, which removes one for good. Bringing one
 * back is POST /api/chat-sessions/:id/restore, with the id or the trash id.
 */
#include "routes/handlers.h"

#include <string.h>

/* The trash of the store, of which this token sees its own project. */
static int read_trash(struct request *r, struct json *j, char **text, struct steno_error *err)
{
        int rc = steno_trash_list(r->store, text, err);
        return rc ? rc : json_parse(j, *text, strlen(*text), NULL, err);
}

void own_trash_list(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        char *text = NULL;
        json_init(&j);
        int rc = read_trash(r, &j, &text, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                struct jsonw w = jsonw_to(&r->reply);
                json_ref items = json_get(&j, 0, "items");
                jsonw_object(&w);
                jsonw_key(&w, "items");
                jsonw_array(&w);
                for (json_ref i = json_child(&j, items); i != JSON_NONE;
                     i = json_next(&j, items, i))
                        if (json_is(&j, json_get(&j, i, "project"), r->who.project))
                                jsonw_raw(&w, json_raw(&j, i));
                jsonw_array_end(&w);
                jsonw_object_end(&w);
                request_reply_json(r, 200);
        }
        json_release(&j);
        steno_free(text);
}

/* Is it a trash id of this project? An id of a conversation that is not in the trash must not be
 * purged here. */
static bool is_in_trash(struct request *r, const struct json *j, const char *id)
{
        json_ref items = json_get(j, 0, "items");
        for (json_ref i = json_child(j, items); i != JSON_NONE; i = json_next(j, items, i))
                if (json_is(j, json_get(j, i, "trashId"), id) &&
                    json_is(j, json_get(j, i, "project"), r->who.project))
                        return true;
        return false;
}

void own_trash_remove(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        char *text = NULL, *report = NULL;
        json_init(&j);
        int rc = read_trash(r, &j, &text, &err);
        if (rc == 0 && !is_in_trash(r, &j, r->params[0].p)) {
                request_error(r, 404, "not_found", "the trash has no such conversation");
        } else {
                if (rc == 0)
                        rc = steno_purge(r->store, r->who.project, r->params[0].p, &report, &err);
                if (rc) {
                        request_failed(r, rc, &err);
                } else {
                        buf_puts(&r->reply, "{\"removed\":true}");
                        request_reply_json(r, 200);
                }
        }
        steno_free(report);
        json_release(&j);
        steno_free(text);
}

void own_session_purge(struct request *r)
{
        struct steno_error err = {0};
        char *report = NULL;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return; /* what is in the trash is removed with DELETE /api/trash/:id */
        steno_conv_close(conv);
        int rc = steno_purge(r->store, r->who.project, r->params[0].p, &report, &err);
        request_reply_made(r, rc, report, &err);
}
