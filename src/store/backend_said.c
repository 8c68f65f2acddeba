/*
 * backend_said.c - what a record says of an output that left its message: for one whose own
 * description was lost.
 */
#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

/* Copies a member that is a text, cut to what `to` can hold; true: out of memory. */
static bool text_of(const struct json *j, json_ref object, const char *key, char *to, size_t size)
{
        struct buf b;
        buf_init(&b, 64 * KIB);
        json_string(j, json_get(j, object, key), &b, NULL);
        size_t n = b.n ? text_floor(b.p, b.n, size - 1) : 0;
        if (n)
                memcpy(to, b.p, n);
        to[n] = '\0';
        bool failed = b.failed == STENO_ENOMEM;
        buf_release(&b);
        return failed;
}

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
                failed = text_of(&j, said, "id", out->id, sizeof out->id) ||
                         text_of(&j, said, "mimeType", out->mime, sizeof out->mime) ||
                         text_of(&j, said, "hint", out->hint, sizeof out->hint);
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
