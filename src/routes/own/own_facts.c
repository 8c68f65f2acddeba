/* own_facts.c - see own_facts.h */
#include "routes/own/own_facts.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define FIELD_MAX (4 * KIB)     /* a larger one is content, and the view has it */
#define DISPLAY_MAX (256 * KIB) /* a diff of a whole file */

struct facts {
        struct jsonw w;
        uint64_t last;
        struct steno_error *err;
};

static bool is_content(struct str key)
{
        static const char *const CONTENT[] = {
            "\"content\"", "\"tool_calls\"", "\"toolCalls\"", "\"parts\"", "\"steps\""};
        for (size_t i = 0; i < sizeof CONTENT / sizeof *CONTENT; i++)
                if (str_is(key, CONTENT[i]))
                        return true;
        return false;
}

static void put_fields(struct jsonw *w, const struct json *j)
{
        jsonw_key(w, "fields");
        jsonw_object(w);
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k)) {
                struct str key = json_raw(j, k), value = json_raw(j, json_value(j, k));
                if (is_content(key) || value.n > FIELD_MAX || memchr(key.p, '\\', key.n))
                        continue;
                jsonw_key_str(w, str_span(key.p + 1, key.n - 2));
                jsonw_raw(w, value);
        }
        jsonw_object_end(w);
}

static void put_display(struct jsonw *w, const struct json *j, json_ref part)
{
        json_ref display = json_get(j, json_get(j, part, "result"), "returnDisplay");
        json_ref call = json_get(j, part, "toolCallId");
        if (call == JSON_NONE)
                call = json_get(j, part, "id");
        struct str raw = json_raw(j, display);
        if (display == JSON_NONE || call == JSON_NONE || raw.n > DISPLAY_MAX)
                return;
        jsonw_object(w);
        jsonw_field_copy(w, "call", j, call);
        jsonw_field_raw(w, "display", raw);
        jsonw_object_end(w);
}

static void put_displays(struct jsonw *w, const struct json *j)
{
        json_ref list = json_get(j, 0, "content");
        if (json_type(j, list) != JSON_ARRAY)
                return;
        jsonw_key(w, "displays");
        jsonw_array(w);
        for (json_ref p = json_child(j, list); p != JSON_NONE; p = json_next(j, list, p))
                put_display(w, j, p);
        jsonw_array_end(w);
}

/* 0 also for what is not a message. */
static int put_message(struct facts *f, const struct steno_record *r)
{
        struct json j;
        char *text = NULL;
        size_t n = 0;
        const char *kind = steno_record_kind(r);
        if (strcmp(kind, "message") != 0 && strcmp(kind, "supersede") != 0)
                return 0;
        json_init(&j);
        int rc = steno_record_message(r, &text, &n, f->err);
        if (rc == 0)
                rc = json_parse(&j, text, n, NULL, f->err);
        if (rc == 0 && json_type(&j, 0) == JSON_OBJECT) {
                put_fields(&f->w, &j);
                put_displays(&f->w, &j);
        }
        json_release(&j);
        steno_free(text);
        return rc == STENO_ENOMEM ? rc : 0; /* damaged records are reported by the view */
}

static int put_fact(void *ctx, const struct steno_record *r)
{
        struct facts *f = ctx;
        size_t n = 0;
        if (steno_record_seq(r) > f->last)
                return 1;
        jsonw_object(&f->w);
        jsonw_field_u64(&f->w, "seq", steno_record_seq(r));
        jsonw_field_cstr(&f->w, "id", steno_record_id(r));
        jsonw_field_cstr(&f->w, "at", steno_record_at(r));
        jsonw_field_cstr(&f->w, "format", steno_record_format(r));
        jsonw_field_cstr(&f->w, "kind", steno_record_kind(r));
        if (steno_record_target(r)) {
                jsonw_field_cstr(&f->w, "target", steno_record_target(r));
        }
        const char *about = steno_record_about(r, &n);
        if (about && n) {
                jsonw_field_raw(&f->w, "about", str_span(about, n));
        }
        int rc = put_message(f, r);
        jsonw_object_end(&f->w);
        return rc;
}

int own_facts_put(struct steno_conv *conv, uint64_t first, uint64_t last, struct buf *out,
    struct steno_error *err)
{
        struct facts f = {.w = jsonw_to(out), .last = last, .err = err};
        int rc = 0;
        jsonw_array(&f.w);
        if (first && last >= first)
                rc = steno_read(conv, first - 1, last - first + 1, put_fact, &f, err);
        jsonw_array_end(&f.w);
        if (rc < 0)
                return rc;
        return buf_check(out, err);
}
