/*
 * anthropic.c - messages of content blocks: text, image, document, tool_use, tool_result, thinking,
 * redacted_thinking.
 *
 * What the API requires of a history (`valid`): the user begins, roles alternate, results come
 * first in the user message behind their calls, no text is blank, and thinking has its signature.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/describe.h"
#include "format/reading.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"

static const char USER[] = "user";
static const char ASSISTANT[] = "assistant";
static const char SYSTEM[] =
    "system"; /* newer models also accept it between turns; views write "user" */

static int anthropic_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        static const char *const roles[] = {USER, ASSISTANT, SYSTEM, NULL};
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, roles);
        json_ref content = json_get(j, msg, "content");
        bool only = json_type(j, content) == JSON_ARRAY && json_count(j, content);
        for (json_ref b = only ? json_child(j, content) : JSON_NONE; !rc && b != JSON_NONE;
             b = json_next(j, content, b)) {
                json_ref type = json_get(j, b, "type");
                if (json_is(j, type, "tool_use")) {
                        rc = describe_call(&d, json_get(j, b, "id"), json_get(j, b, "name"),
                            "the id of a tool_use block");
                } else if (json_is(j, type, "tool_result")) {
                        rc = describe_answer(
                            &d, json_get(j, b, "tool_use_id"), JSON_NONE, "tool_use_id");
                        a.error |= json_bool(j, json_get(j, b, "is_error"), false);
                        continue;
                }
                only = false;
        }
        if (rc)
                return rc;
        if (only && str_is(a.role, USER))
                a.role = STR("tool");
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static void read_block(struct reading *r, json_ref b);

static bool read_plain(struct reading *r, json_ref b, const char *key, enum part_kind kind)
{
        const char *const keys[] = {"type", key, kind == PART_THINKING ? "signature" : NULL, NULL};
        json_ref f[3];
        struct extra *extras = NULL;
        reading_members(r, b, keys, f, &extras, false);
        if (json_type(r->j, f[1]) != JSON_STRING)
                return false;
        struct part *p = reading_part(r, kind, b);
        p->text = reading_string(r, f[1]);
        p->extras = extras;
        if (kind == PART_THINKING) {
                p->signature = reading_string_or_keep(r, &p->extras, "signature", f[2]);
        }
        return true;
}

static bool read_media(struct reading *r, json_ref b, enum part_kind kind)
{
        enum { TYPE, MEDIA_TYPE, DATA, URL, FILE_ID, COUNT };
        static const char *const outer[] = {"type", "source", "title", NULL};
        static const char *const keys[] = {"type", "media_type", "data", "url", "file_id", NULL};
        const struct json *j = r->j;
        json_ref f[3], g[COUNT];
        struct extra *extras = NULL;
        reading_members(r, b, outer, f, &extras, false);
        if (json_type(j, f[1]) != JSON_OBJECT)
                return false;
        reading_members(r, f[1], keys, g, &extras, true);
        bool data = json_is(j, g[TYPE], "base64") && json_type(j, g[DATA]) == JSON_STRING &&
                    json_type(j, g[MEDIA_TYPE]) == JSON_STRING;
        bool url = json_is(j, g[TYPE], "url") && json_type(j, g[URL]) == JSON_STRING;
        bool file = json_is(j, g[TYPE], "file") && json_type(j, g[FILE_ID]) == JSON_STRING;
        if (!data && !url && !file)
                return false;
        struct part *p = reading_part(r, kind, b);
        if (data) {
                p->media.mime = reading_string(r, g[MEDIA_TYPE]);
                p->media.data = reading_string(r, g[DATA]);
        } else if (url) {
                p->media.url = reading_string(r, g[URL]);
        } else {
                p->media.file_id = reading_string(r, g[FILE_ID]);
        }
        p->extras = extras;
        p->media.name = reading_string_or_keep(r, &p->extras, "title", f[2]);
        return true;
}

static void read_use(struct reading *r, json_ref b)
{
        static const char *const keys[] = {"type", "id", "name", "input", NULL};
        json_ref f[4];
        struct part p = {.kind = PART_CALL};
        reading_members(r, b, keys, f, &p.extras, false);
        p.raw = reading_raw(r, b);
        p.id = reading_string(r, f[1]);
        p.name = reading_string(r, f[2]);
        reading_input(r, &p, f[3]);
        *reading_part(r, PART_CALL, b) = p;
}

static void read_result(struct reading *r, json_ref b)
{
        static const char *const keys[] = {"type", "tool_use_id", "content", "is_error", NULL};
        const struct json *j = r->j;
        json_ref f[4];
        struct part p = {.kind = PART_RESULT};
        reading_members(r, b, keys, f, &p.extras, false);
        p.raw = reading_raw(r, b);
        p.id = reading_string(r, f[1]);
        p.error = json_type(j, f[3]) == JSON_TRUE;
        if (!p.error) {
                reading_keep(r, &p.extras, "is_error", f[3], false);
                reading_idle(p.extras, "is_error", "false");
        }
        p.output_raw = reading_raw(r, f[2]);
        if (json_type(j, f[2]) == JSON_STRING) {
                p.output_kind = OUTPUT_TEXT;
                p.output = reading_string(r, f[2]);
        } else if (json_type(j, f[2]) == JSON_ARRAY) {
                reading_children(r, &p, f[2], read_block);
        } else if (f[2] != JSON_NONE) {
                p.output_kind = OUTPUT_DATA;
                p.output = reading_raw(r, f[2]);
        }
        *reading_part(r, PART_RESULT, b) = p;
}

static void read_block(struct reading *r, json_ref b)
{
        const struct json *j = r->j;
        json_ref type = json_get(j, b, "type");
        bool done = true;
        if (json_is(j, type, "text"))
                done = read_plain(r, b, "text", PART_TEXT);
        else if (json_is(j, type, "tool_use"))
                read_use(r, b);
        else if (json_is(j, type, "tool_result"))
                read_result(r, b);
        else if (json_is(j, type, "image"))
                done = read_media(r, b, PART_IMAGE);
        else if (json_is(j, type, "document"))
                done = read_media(r, b, PART_FILE);
        else if (json_is(j, type, "thinking"))
                done = read_plain(r, b, "thinking", PART_THINKING);
        else if (json_is(j, type, "redacted_thinking"))
                done = read_plain(r, b, "data", PART_REDACTED);
        else
                done = false;
        if (!done)
                reading_opaque(r, b);
}

static int anthropic_read(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        static const char *const keys[] = {"role", "content", "id", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[3];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->native_role = reading_string(&r, f[0]);
        m->role = json_is(j, f[0], ASSISTANT) ? ROLE_ASSISTANT
                  : json_is(j, f[0], SYSTEM)  ? ROLE_SYSTEM
                                              : ROLE_USER;
        m->id = reading_string_or_keep(&r, &m->extras, "id", f[2]);
        m->piece = m->id.n && m->role == ROLE_ASSISTANT;
        switch (json_type(j, f[1])) {
        case JSON_STRING:
                m->shape = SHAPE_STRING;
                reading_text(&r, f[1]);
                break;
        case JSON_ARRAY:
                m->shape = SHAPE_ARRAY;
                for (json_ref b = json_child(j, f[1]); b != JSON_NONE; b = json_next(j, f[1], b))
                        read_block(&r, b);
                break;
        default:
                m->shape = SHAPE_ABSENT;
                reading_keep(&r, &m->extras, "content", f[1], false);
        }
        if (m->role == ROLE_USER && m->count && message_count(m, PART_RESULT) == m->count)
                m->role = ROLE_TOOL;
        return arena->failed;
}

/* ---- writing ---- */

/* Only the endpoint that made a signature can verify it. But a format that only carries messages of
 * other endpoints keeps it. */
static bool is_carried(const struct message *m)
{
        return m->origin && (m->origin->flags & FORMAT_CARRIER);
}

/* The provider refuses a message that ends in thinking. */
static bool goes_on_after(const struct writer *w, const struct message *m, const struct part *p)
{
        if (!w->valid || p < m->parts || p >= m->parts + m->count)
                return true;
        for (p++; p < m->parts + m->count; p++) {
                if (p->kind == PART_CALL || (p->kind == PART_OPAQUE && writing_own(w, m)) ||
                    (p->kind == PART_TEXT && !turns_is_blank(p->text)))
                        return true;
        }
        return false;
}

/* Does the thinking come after a call? It must come before the calls of its message. */
static bool follows_call(const struct writer *w, const struct message *m, const struct part *p)
{
        if (!w->valid || p < m->parts || p >= m->parts + m->count)
                return false;
        while (p-- > m->parts)
                if (p->kind == PART_CALL)
                        return true;
        return false;
}

static bool is_writable(const struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m);
        if ((p->kind == PART_THINKING || p->kind == PART_REDACTED) && follows_call(w, m, p))
                return false;
        switch (p->kind) {
        case PART_TEXT:
        case PART_REFUSAL:
                return !w->valid || !turns_is_blank(p->text);
        case PART_THINKING:
                if (!own && !(is_carried(m) && p->signature.p && p->text.p))
                        return false;
                return !w->valid || (p->signature.n && goes_on_after(w, m, p));
        case PART_REDACTED:
                return (own || is_carried(m)) && (!w->valid || p->text.n) && goes_on_after(w, m, p);
        case PART_OPAQUE:
                return own;
        case PART_AUDIO:
                return false;
        default:
                return true;
        }
}

/* Does the API accept the contents of a block? The input of a call must be an object, and no text
 * of a result may be blank. */
static bool is_sound(const struct writer *w, const struct message *m, const struct part *p)
{
        if (p->kind == PART_CALL && !(p->arguments.n && p->arguments.p[0] == '{'))
                return false;
        for (size_t i = 0; i < p->child_count; i++)
                if (!is_writable(w, m, &p->children[i]))
                        return false;
        return true;
}

static void write_media(struct writer *w, const struct message *m, const struct part *p)
{
        const struct media *x = &p->media;
        const char *what = p->kind == PART_IMAGE ? "image" : "document";
        jsonw_object(&w->json);
        writing_text(w, "type", what);
        jsonw_key(&w->json, "source");
        jsonw_object(&w->json);
        writing_text(w, "type", x->data.p ? "base64" : x->url.p ? "url" : "file");
        if (x->data.p)
                writing_string(w, "media_type", x->mime.p ? x->mime : STR("image/png"));
        writing_string(w, "data", x->data);
        writing_string(w, "url", x->url);
        writing_string(w, "file_id", x->file_id);
        writing_extras(w, m, what, p->extras, true);
        jsonw_object_end(&w->json);
        writing_string(w, "title", x->name);
        writing_extras(w, m, what, p->extras, false);
        jsonw_object_end(&w->json);
        if (x->detail.p)
                writing_lose(w, m, "detail", "the format has no place for it");
        if (x->mime.p && !x->data.p)
                writing_lose(w, m, "mimeType", "the format has no place for it");
}

static void write_text(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_object(&w->json);
        writing_text(w, "type", "text");
        writing_string(w, "text", p->text);
        writing_extras(w, m, "text", p->extras, false);
        jsonw_object_end(&w->json);
        if (p->kind == PART_REFUSAL)
                writing_lose(w, m, "refusal", "written as text");
}

static void write_thinking(struct writer *w, const struct message *m, const struct part *p)
{
        bool redacted = p->kind == PART_REDACTED;
        jsonw_object(&w->json);
        writing_text(w, "type", redacted ? "redacted_thinking" : "thinking");
        writing_string(w, redacted ? "data" : "thinking", p->text);
        writing_string(w, "signature", p->signature);
        writing_extras(w, m, "thinking", p->extras, false);
        jsonw_object_end(&w->json);
}

static void write_use(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_object(&w->json);
        writing_text(w, "type", "tool_use");
        writing_string(w, "id", p->id.p ? p->id : STR(""));
        writing_string(w, "name", p->name.p ? p->name : STR(""));
        writing_arguments_value(w, m, "input", p);
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        for (const struct extra *x = p->extras; x; x = x->next)
                if (x->inner)
                        writing_lose(w, m, "tool_calls.function",
                            "the format has no place for members of the inner object");
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
        writing_lose_figures(w, m, p);
}

static void write_block(struct writer *w, const struct message *m, const struct part *p);

static void write_children(struct writer *w, const struct message *m, const struct part *p)
{
        size_t n = 0;
        for (size_t i = 0; i < p->child_count; i++)
                n += is_writable(w, m, &p->children[i]);
        if (!n && w->valid) {
                if (p->child_count)
                        writing_lose(w, m, "content", "the format has no place for any part of it");
                if (p->error) /* the content of an error must not be empty */
                        writing_text(w, "content", "[The tool failed and said nothing.]");
                return;
        }
        jsonw_key(&w->json, "content");
        jsonw_array(&w->json);
        for (size_t i = 0; i < p->child_count; i++) {
                if (is_writable(w, m, &p->children[i]))
                        write_block(w, m, &p->children[i]);
                else
                        writing_lose_part(w, m, &p->children[i]);
        }
        jsonw_array_end(&w->json);
}

static void write_result(struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m);
        jsonw_object(&w->json);
        writing_text(w, "type", "tool_result");
        writing_string(w, "tool_use_id", p->id.p ? p->id : STR(""));
        if (p->output_kind == OUTPUT_PARTS)
                write_children(w, m, p);
        else if (p->output_kind == OUTPUT_DATA && own && !w->valid)
                writing_raw(w, "content", p->output);
        else if (p->output_kind != OUTPUT_NONE)
                writing_string(w, "content", writing_output(w, m, p));
        if (p->error)
                writing_raw(w, "is_error", STR("true"));
        writing_extras(w, m, "result", p->extras, false);
        jsonw_object_end(&w->json);
        if (own)
                return;
        writing_extras(w, m, "result", p->extras, true);
        writing_lose_figures(w, m, p);
        if (p->name.p && (!p->peer || !str_eq(p->name, p->peer->name)))
                writing_lose(w, m, "name", "the format has no place for it");
}

static void write_block(struct writer *w, const struct message *m, const struct part *p)
{
        bool sound = !w->valid || is_sound(w, m, p);
        if (m->shape != SHAPE_STRING && sound && writing_same_part(w, m, p))
                return;
        switch (p->kind) {
        case PART_IMAGE:
        case PART_FILE:
                write_media(w, m, p);
                break;
        case PART_CALL:
                write_use(w, m, p);
                break;
        case PART_RESULT:
                write_result(w, m, p);
                break;
        case PART_THINKING:
        case PART_REDACTED:
                write_thinking(w, m, p);
                break;
        case PART_OPAQUE:
                writing_opaque(w, m, p);
                break;
        default:
                write_text(w, m, p);
        }
}

static void say(struct writer *w, const char *text)
{
        struct message m = {0};
        struct part p = {.text = str_of(text)};
        write_text(w, &m, &p);
}

static bool is_clean(const struct writer *w, const struct message *m)
{
        if (m->role == ROLE_SYSTEM)
                return false;
        bool spoken = false;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (!is_writable(w, m, p) || !is_sound(w, m, p) ||
                    (p->kind == PART_RESULT && spoken))
                        return false;
                spoken |= p->kind != PART_RESULT;
        }
        return m->count > 0;
}

static void write_alone(struct writer *w, const struct message *m)
{
        jsonw_object(&w->json);
        writing_text(w, "role",
            m->role == ROLE_SYSTEM      ? SYSTEM
            : m->role == ROLE_ASSISTANT ? ASSISTANT
                                        : USER);
        if (m->shape == SHAPE_STRING && m->count == 1) {
                writing_string(w, "content", m->parts[0].text);
        } else if (m->shape != SHAPE_ABSENT) {
                jsonw_key(&w->json, "content");
                jsonw_array(&w->json);
                for (size_t i = 0; i < m->count; i++)
                        write_block(w, m, &m->parts[i]);
                jsonw_array_end(&w->json);
        }
        writing_string(w, "id", m->id);
        writing_extras(w, m, "", m->extras, false);
        jsonw_object_end(&w->json);
}

static const struct turns_style style = {
    .content = "content",
    .user = USER,
    .model = ASSISTANT,
    .results_first = true,
    .is_writable = is_writable,
    .is_clean = is_clean,
    .write_part = write_block,
    .write_alone = write_alone,
    .say = say,
};

/* The API refuses a history whose last message is the assistant's and ends in white space. Sets
 * *out to the history without that white space. False: there is none, or out of memory. */
static bool trim_end(struct writer *w, const struct history *h, struct history *out)
{
        size_t i = h->count;
        while (i > 0 && !turns_has_words(&style, w, &h->list[i - 1]))
                i--;
        if (!w->valid || !i || h->list[i - 1].role != ROLE_ASSISTANT)
                return false;
        struct message last = h->list[i - 1];
        size_t k = last.count;
        while (k > 0 && !is_writable(w, &last, &last.parts[k - 1]))
                k--;
        struct str text = last.parts[k - 1].text;
        if (last.parts[k - 1].kind != PART_TEXT || turns_trimmed(text) == text.n)
                return false;
        struct part *parts = arena_alloc(w->arena, last.count * sizeof *parts);
        struct message *list = arena_alloc(w->arena, h->count * sizeof *list);
        if (!parts || !list)
                return false;
        memcpy(parts, last.parts, last.count * sizeof *parts);
        parts[k - 1].text.n = turns_trimmed(text);
        last.parts = parts;
        message_touch(&last);
        memcpy(list, h->list, h->count * sizeof *list);
        list[i - 1] = last;
        writing_lose(w, &last, "content", "white space at the end, which the format refuses");
        *out = *h;
        out->list = list;
        return true;
}

static int anthropic_write(struct writer *w, const struct history *h)
{
        struct history trimmed;
        return turns_write(w, trim_end(w, h, &trimmed) ? &trimmed : h, &style);
}

static int anthropic_detect(const struct json *j, json_ref msg)
{
        json_ref role = json_get(j, msg, "role");
        if (!json_is(j, role, USER) && !json_is(j, role, ASSISTANT) && !json_is(j, role, SYSTEM))
                return 0;
        json_ref content = json_get(j, msg, "content");
        int score = 40;
        if (json_type(j, content) != JSON_ARRAY)
                return score;
        for (json_ref b = json_child(j, content); b != JSON_NONE; b = json_next(j, content, b)) {
                json_ref type = json_get(j, b, "type");
                if (json_is(j, type, "tool_result") && json_get(j, b, "tool_use_id") == JSON_NONE)
                        return 0;
                if (json_is(j, type, "tool_use") || json_is(j, type, "tool_result") ||
                    json_is(j, type, "thinking") || json_get(j, b, "source") != JSON_NONE)
                        score = 92;
        }
        return score;
}

const struct format format_anthropic = {
    .name = "anthropic",
    .flags = FORMAT_PROVIDER | FORMAT_UNIQUE_IDS | FORMAT_USER_MEDIA,
    .describe = anthropic_describe,
    .read = anthropic_read,
    .write = anthropic_write,
    .carries = is_writable,
    .detect = anthropic_detect,
};
