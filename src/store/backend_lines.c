/* backend_lines.c - see backend_lines.h */
#include "store/backend_lines.h"

#include <string.h>

#include "base/limits.h"
#include "model/sealed.h"

/* ---- journals ---- */

void backend_event_put(struct buf *out, const struct run_event *e)
{
        size_t start = out->n;
        buf_puts(out, "{\"seq\":");
        buf_put_u64(out, e->seq);
        buf_puts(out, ",\"at\":\"");
        buf_put_str(out, e->at);
        buf_puts(out, "\",\"type\":\"");
        buf_put_str(out, e->type);
        buf_puts(out, "\",\"data\":");
        buf_put_str(out, e->data);
        sealed_finish(out, start);
}

bool backend_event_read(struct str line, struct run_event *out)
{
        struct sealed s;
        struct run_event e = {0};
        if (!sealed_check(line) || !sealed_body(line, &s) || !sealed_take(&s, STR("{\"seq\":")) ||
            !sealed_take_u64(&s, &e.seq) || !sealed_take(&s, STR(",\"at\":\"")) ||
            !sealed_take_string(&s, &e.at) || !sealed_take(&s, STR(",\"type\":\"")) ||
            !sealed_take_string(&s, &e.type) || !sealed_take(&s, STR(",\"data\":")) || s.p >= s.end)
                return false;
        e.data = str_span(s.p, (size_t)(s.end - s.p));
        *out = e;
        return true;
}

/* ---- manifests ---- */

static const char *const STATES[] = {"open", "closed", "deleted"};

void backend_manifest_put(struct buf *out, const struct artifact_info *a)
{
        char at[TIME_TEXT];
        size_t start = out->n;
        struct jsonw w = jsonw_to(out);
        time_format(a->created, at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", a->id);
        jsonw_field_cstr(&w, "kind", a->kind);
        jsonw_field_cstr(&w, "name", a->name);
        jsonw_field_cstr(&w, "state", STATES[a->state]);
        jsonw_field_cstr(&w, "created", at);
        jsonw_field_cstr(&w, "hint", a->hint);
        if (a->state != ARTIFACT_OPEN) {
                jsonw_field_u64(&w, "size", a->size);
                jsonw_field_u64(&w, "lines", a->lines);
                jsonw_field_cstr(&w, "mime", a->mime);
                jsonw_field_bool(&w, "utf8", a->utf8);
                jsonw_field_cstr(&w, "sha256", a->sha256);
        }
        if (a->state == ARTIFACT_DELETED) {
                time_format(a->deleted_at, at);
                jsonw_field_cstr(&w, "deleted", at);
                jsonw_field_cstr(&w, "by", a->deleted_by);
        }
        sealed_finish(out, start);
        if (!out->failed)
                out->n--; /* the line feed is its caller's */
}

/* Lines of earlier versions have no sum. */
static bool has_wrong_sum(struct str line)
{
        static const char MEMBER[] = ",\"crc\":\"";
        return line.n > SEALED_BYTES &&
               memcmp(line.p + line.n - SEALED_BYTES, MEMBER, sizeof MEMBER - 1) == 0 &&
               !sealed_check(line);
}

int backend_manifest_read(struct json *j, struct str line, struct artifact_info *out)
{
        char state[64], created[64], deleted[64];
        const struct {
                const char *key;
                char *to;
                size_t size;
        } texts[] = {{"id", out->id, sizeof out->id}, {"kind", out->kind, sizeof out->kind},
            {"name", out->name, sizeof out->name}, {"mime", out->mime, sizeof out->mime},
            {"hint", out->hint, sizeof out->hint}, {"sha256", out->sha256, sizeof out->sha256},
            {"by", out->deleted_by, sizeof out->deleted_by}, {"state", state, sizeof state},
            {"created", created, sizeof created}, {"deleted", deleted, sizeof deleted}};
        if (has_wrong_sum(line))
                return 0;
        int rc = json_parse(j, line.p, line.n, NULL, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        *out = (struct artifact_info){0};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                if (!json_copy_string(j, 0, texts[i].key, texts[i].to, texts[i].size))
                        return STENO_ENOMEM;
        time_parse(created, strlen(created), &out->created);
        time_parse(deleted, strlen(deleted), &out->deleted_at);
        json_u64(j, json_get(j, 0, "size"), &out->size);
        json_u64(j, json_get(j, 0, "lines"), &out->lines);
        out->utf8 = json_bool(j, json_get(j, 0, "utf8"), false);
        for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
                if (strcmp(state, STATES[i]) == 0)
                        out->state = (enum artifact_state)i;
        /* A name is a file of ours, never a path. */
        return out->id[0] && out->name[0] && !strchr(out->name, '/') && out->name[0] != '.';
}
