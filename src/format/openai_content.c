/* openai_content.c - see openai_content.h */
#include "format/openai_content.h"

#include "format/writing.h"
#include "model/token.h"

static const struct {
        const char *name;
        enum role role;
} roles[] = {{"user", ROLE_USER}, {"assistant", ROLE_ASSISTANT}, {"tool", ROLE_TOOL},
    {"system", ROLE_SYSTEM}, {"developer", ROLE_DEVELOPER}};

enum role openai_role(const struct json *j, json_ref role)
{
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
                if (json_is(j, role, roles[i].name))
                        return roles[i].role;
        return ROLE_NONE;
}

const char *openai_role_name(enum role role)
{
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
                if (roles[i].role == role)
                        return roles[i].name;
        return "user";
}

/* ---- reading ---- */

static bool read_simple(struct reading *r, json_ref part, const char *key, enum part_kind kind)
{
        const char *const keys[] = {"type", key, NULL};
        json_ref f[2];
        struct extra *extras = NULL;
        reading_members(r, part, keys, f, &extras, false);
        if (json_type(r->j, f[1]) != JSON_STRING)
                return false;
        struct part *p = reading_part(r, kind, part);
        p->text = reading_string(r, f[1]);
        p->extras = extras;
        return true;
}

/* Reads a part whose content is one object of strings, as image_url{url,detail}. Some clients write
 * null for every member that is not set. */
static bool read_media(struct reading *r, json_ref part, const char *key, const char *const *keys,
    json_ref *g, struct extra **extras)
{
        const char *const outer[] = {"type", key, NULL};
        json_ref f[2];
        reading_members(r, part, outer, f, extras, false);
        if (json_type(r->j, f[1]) != JSON_OBJECT)
                return false;
        reading_members(r, f[1], keys, g, extras, true);
        for (size_t i = 0; keys[i]; i++) {
                if (json_type(r->j, g[i]) == JSON_NULL) {
                        reading_keep(r, extras, keys[i], g[i], true);
                        reading_idle(*extras, keys[i], "null");
                        g[i] = JSON_NONE;
                }
                if (g[i] != JSON_NONE && json_type(r->j, g[i]) != JSON_STRING)
                        return false;
        }
        return true;
}

static bool read_image(struct reading *r, json_ref part)
{
        static const char *const keys[] = {"url", "detail", NULL};
        json_ref g[2];
        struct extra *extras = NULL;
        if (!read_media(r, part, "image_url", keys, g, &extras) || g[0] == JSON_NONE)
                return false;
        struct part *p = reading_part(r, PART_IMAGE, part);
        reading_url(&p->media, reading_string(r, g[0]));
        p->media.detail = reading_string(r, g[1]);
        p->extras = extras;
        return true;
}

static bool read_audio(struct reading *r, json_ref part)
{
        static const char *const keys[] = {"data", "format", NULL};
        json_ref g[2];
        struct extra *extras = NULL;
        if (!read_media(r, part, "input_audio", keys, g, &extras) || g[0] == JSON_NONE ||
            g[1] == JSON_NONE)
                return false;
        struct part *p = reading_part(r, PART_AUDIO, part);
        p->media.data = reading_string(r, g[0]);
        p->media.mime = token_join(STR("audio/"), reading_string(r, g[1]), r->arena);
        p->extras = extras;
        return true;
}

static bool read_file(struct reading *r, json_ref part)
{
        static const char *const keys[] = {"file_id", "file_data", "filename", NULL};
        json_ref g[3];
        struct extra *extras = NULL;
        if (!read_media(r, part, "file", keys, g, &extras) ||
            (g[0] == JSON_NONE && g[1] == JSON_NONE))
                return false;
        struct part *p = reading_part(r, PART_FILE, part);
        p->media.file_id = reading_string(r, g[0]);
        if (g[1] != JSON_NONE)
                reading_url(&p->media, reading_string(r, g[1]));
        p->media.name = reading_string(r, g[2]);
        p->extras = extras;
        return true;
}

/* Reads a text part in the form of Responses, which some clients use here. */
static bool read_foreign_text(struct reading *r, json_ref part)
{
        if (!read_simple(r, part, "text", PART_TEXT))
                return false;
        struct part *p = &r->m->parts[r->m->count - 1];
        p->foreign = true;
        reading_idle(p->extras, "annotations", "[]");
        reading_idle(p->extras, "logprobs", "[]");
        return true;
}

void openai_read_part(struct reading *r, json_ref part)
{
        const struct json *j = r->j;
        json_ref type = json_get(j, part, "type");
        bool done = false;
        if (json_is(j, type, "text"))
                done = read_simple(r, part, "text", PART_TEXT);
        else if (json_is(j, type, "input_text") || json_is(j, type, "output_text"))
                done = read_foreign_text(r, part);
        else if (json_is(j, type, "refusal"))
                done = read_simple(r, part, "refusal", PART_REFUSAL);
        else if (json_is(j, type, "image_url"))
                done = read_image(r, part);
        else if (json_is(j, type, "input_audio"))
                done = read_audio(r, part);
        else if (json_is(j, type, "file"))
                done = read_file(r, part);
        if (!done)
                reading_opaque(r, part);
}

void openai_read_content(struct reading *r, json_ref content)
{
        const struct json *j = r->j;
        switch (json_type(j, content)) {
        case JSON_NOTHING:
                r->m->shape = SHAPE_ABSENT;
                break;
        case JSON_NULL:
                r->m->shape = SHAPE_NULL;
                break;
        case JSON_STRING:
                r->m->shape = SHAPE_STRING;
                reading_text(r, content);
                break;
        case JSON_ARRAY:
                r->m->shape = SHAPE_ARRAY;
                if (!r->expected)
                        r->expected = json_count(j, content);
                for (json_ref e = json_child(j, content); e != JSON_NONE;
                     e = json_next(j, content, e))
                        openai_read_part(r, e);
                break;
        default:
                r->m->shape = SHAPE_ABSENT;
                reading_keep(r, &r->m->extras, "content", content, false);
        }
}

int openai_detect_content(const struct json *j, json_ref content)
{
        if (json_type(j, content) != JSON_ARRAY)
                return 50;
        int score = 45;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                if (json_is(j, type, "image_url") || json_is(j, type, "input_audio"))
                        return 90;
                if (!json_is(j, type, "text") && !json_is(j, type, "file") &&
                    !json_is(j, type, "refusal"))
                        score = 10;
        }
        return score;
}

/* ---- writing ---- */

static void write_media(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        bool audio = p->kind == PART_AUDIO && x->data.p && str_starts(x->mime, "audio/");
        bool image = p->kind == PART_IMAGE && (x->data.p || x->url.p);
        const char *key = audio ? "input_audio" : image ? "image_url" : "file";
        jsonw_object(&w->json);
        writing_text(w, "type", key);
        jsonw_key(&w->json, key);
        jsonw_object(&w->json);
        if (audio) {
                writing_string(w, "data", x->data);
                writing_string(w, "format", str_span(x->mime.p + 6, x->mime.n - 6));
        } else if (image) {
                writing_url(w, "url", x);
                writing_string(w, "detail", x->detail);
        } else {
                writing_string(w, "file_id", x->file_id);
                if (x->data.p || x->url.p)
                        writing_url(w, "file_data", x);
                writing_string(w, "filename", x->name);
        }
        writing_extras(w, m, key, p->extras, true);
        jsonw_object_end(&w->json);
        writing_extras(w, m, key, p->extras, false);
        jsonw_object_end(&w->json);
        if ((audio || image) && x->name.p)
                writing_lose(w, m, "filename", "the format has no place for it");
        if (image && x->url.p && x->mime.p)
                writing_lose(w, m, "mimeType", "the format has no place for it");
}

/* Is it not a part at all, or a known type with wrong contents? Types that are not known here are
 * sent to the provider unchanged. */
static bool is_broken(const struct part *p)
{
        static const char *const known[] = {"text", "refusal", "image_url", "input_audio", "file"};
        struct json j;
        bool broken = false;
        if (p->kind != PART_OPAQUE || !p->raw.p)
                return false;
        json_init(&j);
        if (json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0) {
                json_ref type = json_get(&j, 0, "type");
                broken = json_type(&j, type) != JSON_STRING;
                for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                        broken = broken || json_is(&j, type, known[i]);
        }
        json_release(&j);
        return broken;
}

bool openai_has_broken(const struct part *parts, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (is_broken(&parts[i]) ||
                    openai_has_broken(parts[i].children, parts[i].child_count))
                        return true;
        return false;
}

static void write_broken(struct writer *w, const struct message *m, const struct part *p)
{
        bool string = p->raw.n >= 2 && p->raw.p[0] == '"';
        jsonw_object(&w->json);
        writing_text(w, "type", "text");
        writing_string(w, "text",
            string ? str_span(p->raw.p + 1, p->raw.n - 2) : token_make(p->raw, w->arena));
        jsonw_object_end(&w->json);
        writing_lose(w, m, "content", "a part that the format refuses, written as a text");
}

static void write_part(struct writer *w, const struct message *m, const struct part *p)
{
        if (w->valid && writing_own(w, m) && is_broken(p)) {
                write_broken(w, m, p);
                return;
        }
        if (m->shape != SHAPE_STRING && writing_same_part(w, m, p))
                return;
        switch (p->kind) {
        case PART_TEXT:
        case PART_REFUSAL:
                jsonw_object(&w->json);
                writing_text(w, "type", p->kind == PART_TEXT ? "text" : "refusal");
                writing_string(w, p->kind == PART_TEXT ? "text" : "refusal", p->text);
                writing_extras(w, m, "content", p->extras, false);
                jsonw_object_end(&w->json);
                break;
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                write_media(w, m, p);
                break;
        case PART_OPAQUE:
                writing_opaque(w, m, p);
                break;
        default:
                writing_lose_part(w, m, p);
        }
}

bool openai_refuses_apart(const struct writer *w, const struct message *m)
{
        size_t parts = 0;
        for (size_t i = 0; i < m->count; i++)
                parts += m->parts[i].kind != PART_CALL && m->parts[i].kind != PART_RESULT &&
                         m->parts[i].kind != PART_THINKING && m->parts[i].kind != PART_REDACTED;
        return m->shape != SHAPE_ARRAY || (w->valid && parts > 1);
}

static bool is_content(const struct writer *w, const struct message *m, const struct part *p)
{
        switch (p->kind) {
        case PART_TEXT:
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                return true;
        case PART_OPAQUE:
                return writing_own(w, m);
        case PART_REFUSAL:
                return !openai_refuses_apart(w, m);
        default:
                return false;
        }
}

static void report_rest(struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_OPAQUE && !writing_own(w, m))
                        writing_opaque(w, m, p);
        }
}

bool openai_has_content(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (is_content(w, m, &m->parts[i]))
                        return true;
        return false;
}

void openai_write_content(struct writer *w, const struct message *m)
{
        size_t n = 0;
        const struct part *only = NULL;
        for (size_t i = 0; i < m->count; i++)
                if (is_content(w, m, &m->parts[i]))
                        n++, only = &m->parts[i];
        report_rest(w, m);
        bool own = writing_own(w, m);
        bool calls = message_has(m, PART_CALL);
        bool refuses = message_has(m, PART_REFUSAL);
        if (n == 0 && !(own && !w->valid) && !calls && !refuses) {
                /* A provider accepts an empty text, but neither null nor an empty array. */
                writing_text(w, "content", "");
                return;
        }
        if (n == 0 && own && m->shape == SHAPE_ABSENT)
                return;
        if (n == 0 && (!own || m->shape != SHAPE_ARRAY || w->valid)) {
                writing_raw(w, "content", STR("null"));
                return;
        }
        if (n == 1 && only->kind == PART_TEXT && (!own || m->shape != SHAPE_ARRAY)) {
                writing_lose_extras(w, m, "content", own ? NULL : only->extras);
                writing_string(w, "content", only->text);
                return;
        }
        jsonw_key(&w->json, "content");
        jsonw_array(&w->json);
        for (size_t i = 0; i < m->count; i++)
                if (is_content(w, m, &m->parts[i]))
                        write_part(w, m, &m->parts[i]);
        jsonw_array_end(&w->json);
}

/* Does the result have a child that can be written? */
static bool has_words(const struct writer *w, const struct message *m, const struct part *p)
{
        for (size_t i = 0; i < p->child_count; i++)
                if (is_content(w, m, &p->children[i]))
                        return true;
        return false;
}

void openai_write_output(struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m) && !w->valid;
        switch (p->output_kind) {
        case OUTPUT_NONE:
                if (!own)
                        writing_text(w, "content", "");
                return;
        case OUTPUT_TEXT:
                writing_string(w, "content", p->output);
                return;
        case OUTPUT_DATA:
                if (own)
                        writing_raw(w, "content", p->output);
                else
                        writing_string(w, "content", writing_output(w, m, p));
                return;
        case OUTPUT_PARTS:
                break;
        }
        if (!has_words(w, m, p) && !own) {
                for (size_t i = 0; i < p->child_count; i++)
                        writing_lose_part(w, m, &p->children[i]);
                writing_text(w, "content", "");
                return;
        }
        if (p->child_count == 1 && p->children[0].kind == PART_TEXT && !writing_own(w, m)) {
                writing_lose_extras(w, m, "content", p->children[0].extras);
                writing_string(w, "content", p->children[0].text);
                return;
        }
        jsonw_key(&w->json, "content");
        jsonw_array(&w->json);
        for (size_t i = 0; i < p->child_count; i++)
                write_part(w, m, &p->children[i]);
        jsonw_array_end(&w->json);
}
