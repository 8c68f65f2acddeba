/*
 * backend_said.c - what a record says about an output that was taken out of its message, for
 * outputs whose own description was lost.
 */
#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

int backend_said_read(
    struct str m, struct str ref, struct artifact_info *out, struct steno_error *err)
{
        struct json j;
        bool failed = false;
        *out = (struct artifact_info){.state = ARTIFACT_CLOSED};
        json_init(&j);
        int rc = json_parse(&j, m.p, m.n, NULL, NULL);
        json_ref said = rc ? JSON_NONE : json_get(&j, 0, "ref");
        if (rc == 0 && json_is_str(&j, json_get(&j, said, "id"), ref)) {
                json_u64(&j, json_get(&j, said, "byteSize"), &out->size);
                json_i64(&j, json_get(&j, said, "createdAt"), &out->created);
                failed = !json_copy_string(&j, said, "id", out->id, sizeof out->id) ||
                         !json_copy_string(&j, said, "mimeType", out->mime, sizeof out->mime) ||
                         !json_copy_string(&j, said, "hint", out->hint, sizeof out->hint);
        }
        json_release(&j);
        return rc == STENO_ENOMEM || failed ? error_nomem(err) : 0;
}

void backend_said_take(const struct about_out *o, struct artifact_info *out)
{
        *out = (struct artifact_info){.state = ARTIFACT_CLOSED, .size = o->ref_size};
        out->created = id_time(o->ref);
        snprintf(out->id, sizeof out->id, "%.*s", (int)o->ref.n, o->ref.p);
        snprintf(out->sha256, sizeof out->sha256, "%.*s", (int)o->ref_sha.n, o->ref_sha.p);
        snprintf(out->mime, sizeof out->mime, "%.*s", (int)o->mime.n, o->mime.n ? o->mime.p : "");
        snprintf(out->hint, sizeof out->hint, "%.*s", (int)o->hint.n, o->hint.n ? o->hint.p : "");
        if (!o->mime.n)
                snprintf(out->mime, sizeof out->mime, "text/plain");
}
