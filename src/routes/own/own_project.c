/*
 * own_project.c - GET and PATCH /api/project: the settings of the token's project.
 */
#include "routes/handlers.h"

#include "base/json.h"

void own_project_get(struct request *r)
{
        struct steno_error err = {0};
        char *json = NULL;
        int rc = steno_project_settings(r->store, r->who.project, &json, &err);
        request_reply_made(r, rc, json, &err);
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
                request_reply_made(r, rc, json, &err);
        }
        json_release(&j);
}
