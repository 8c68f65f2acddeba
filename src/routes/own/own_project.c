/*
 * own_project.c - GET and PATCH /api/project: the settings of the token's project.
 */
#include "routes/handlers.h"

#include "base/json.h"

static void reply(struct request *r, int rc, char *json, const struct steno_error *err)
{
        if (rc) {
                request_failed(r, rc, err);
                return;
        }
        buf_puts(&r->reply, json);
        steno_free(json);
        request_reply_json(r, 200);
}

void own_project_get(struct request *r)
{
        struct steno_error err = {0};
        char *json = NULL;
        int rc = steno_project_settings(r->store, r->who.project, &json, &err);
        reply(r, rc, json, &err);
}

void own_project_patch(struct request *r)
{
        struct steno_error err = {0};
        char *json = NULL;
        struct json j;
        json_init(&j);
        if (request_json(r, &j, NULL)) {
                struct str raw = json_raw(&j, 0);
                int rc = steno_project_change(r->store, r->who.project, raw.p, raw.n, &json, &err);
                reply(r, rc, json, &err);
        }
        json_release(&j);
}
