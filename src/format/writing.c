/* writing.c - see writing.h */
#include "format/writing.h"

#include <stdio.h>

#include "base/hash.h"
#include "format/fit.h"
#include "model/token.h"

void writing_value(struct writer *w, struct str string)
{
        jsonw_raw(&w->json, STR("\""));
        buf_put_str(w->out, string);
        buf_putc(w->out, '"');
}

void writing_string(struct writer *w, const char *key, struct str string)
{
        if (!string.p)
                return;
        jsonw_key(&w->json, key);
        writing_value(w, string);
}

void writing_text(struct writer *w, const char *key, const char *plain)
{
        writing_string(w, key, str_of(plain));
}

void writing_raw(struct writer *w, const char *key, struct str raw)
{
        if (!raw.p)
                return;
        jsonw_field_raw(&w->json, key, raw);
}

void writing_id(struct writer *w, const struct message *m)
{
        char made[32];
        snprintf(made, sizeof made, "msg_%llu", (unsigned long long)m->seq);
        writing_string(w, "id", m->id.p ? m->id : str_of(made));
}

bool writing_same(struct writer *w, const struct message *m)
{
        if (!m->raw.p || !writing_own(w, m) || w->rebuild || (w->strip_own && m->own_fields))
                return false;
        jsonw_raw(&w->json, m->raw);
        return true;
}

/* The same for a format whose messages hold the results of their calls: if another message has the
 * result of a call, the message must be built. */
static bool same_answered(struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_CALL && p->peer &&
                    (p->peer < m->parts || p->peer >= m->parts + m->count))
                        return false;
        }
        return writing_same(w, m);
}

bool writing_same_part(struct writer *w, const struct message *m, const struct part *p)
{
        if (!p->raw.p || !writing_own(w, m) || w->rebuild || !m->raw.p)
                return false;
        jsonw_raw(&w->json, p->raw);
        return true;
}

/* ---- losses ---- */

static void lose(struct writer *w, const struct message *m, struct str field, const char *why)
{
        /* A message that was made here has nothing to lose. */
        if (w->on_loss && m->origin)
                w->on_loss(w->loss_ctx, m->seq, field, why);
}

void writing_lose(struct writer *w, const struct message *m, const char *field, const char *why)
{
        lose(w, m, str_of(field), why);
}

/* The same for a part that may have been an item of its own. */
static void lose_of(struct writer *w, const struct message *m, const struct part *p,
    const char *field, const char *why)
{
        if (w->on_loss && m->origin)
                w->on_loss(w->loss_ctx, p->seq ? p->seq : m->seq, str_of(field), why);
}

static const char no_place[] = "the format has no place for it";

static void lose_extra(
    struct writer *w, const struct message *m, const char *prefix, const struct extra *x)
{
        if (x->idle || !w->on_loss)
                return;
        char field[160];
        int n = snprintf(field, sizeof field, "%s%s%.*s", prefix, *prefix ? "." : "",
            (int)(x->key.n - 2 > 100 ? 100 : x->key.n - 2), x->key.p + 1);
        lose(w, m, str_span(field, (size_t)n), no_place);
}

void writing_extras(struct writer *w, const struct message *m, const char *prefix,
    const struct extra *list, bool inner)
{
        for (const struct extra *x = list; x; x = x->next) {
                if (x->inner != inner)
                        continue;
                if (!writing_own(w, m)) {
                        lose_extra(w, m, prefix, x);
                        continue;
                }
                jsonw_raw(&w->json, x->key);
                buf_putc(w->out, ':');
                buf_put_str(w->out, x->value);
        }
}

void writing_lose_extras(
    struct writer *w, const struct message *m, const char *prefix, const struct extra *list)
{
        for (const struct extra *x = list; x; x = x->next)
                lose_extra(w, m, prefix, x);
}

/* Returns the part's own type for the report, because "x" of {"type":"x"} says more than
 * "opaque". */
static struct str type_of(const struct part *p, struct arena *arena)
{
        struct json j;
        json_init(&j);
        struct str type = STR("part");
        if (p->raw.p && json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0) {
                struct str t = token_text(&j, json_get(&j, 0, "type"), arena);
                if (t.n && t.n < 100)
                        type = t;
        }
        json_release(&j);
        return type;
}

bool writing_opaque(struct writer *w, const struct message *m, const struct part *p)
{
        if (writing_own(w, m)) {
                jsonw_raw(&w->json, p->raw);
                return true;
        }
        if (w->on_loss)
                lose(w, m, type_of(p, w->arena), "a part of a type that the format does not have");
        return false;
}

void writing_lose_part(struct writer *w, const struct message *m, const struct part *p)
{
        static const char *const names[] = {"text", "image", "audio", "file", "call", "result",
            "thinking", "redacted_thinking", "refusal"};
        if (p->kind == PART_OPAQUE) {
                writing_opaque(w, m, p);
                return;
        }
        writing_lose(w, m, names[p->kind], no_place);
}

static bool is_in(const char *const *list, const char *z)
{
        for (; list && *list; list++)
                if (strcmp(*list, z) == 0)
                        return true;
        return false;
}

void writing_lose_members(struct writer *w, const struct message *m, const char *const *has)
{
        const struct {
                const char *name;
                struct str value;
        } members[] = {{"id", m->id}, {"name", m->name}, {"createdAt", m->created_at}};
        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
                if (members[i].value.p && !is_in(has, members[i].name))
                        writing_lose(w, m, members[i].name, no_place);
}

void writing_lose_figures(struct writer *w, const struct message *m, const struct part *p)
{
        const struct {
                const char *name;
                struct str value;
        } figures[] = {{"duration", p->duration}, {"steps", p->steps}, {"invokedAt", p->invoked_at},
            {"ref", p->ref}, {"returnDisplay", p->display}, {"displayName", p->display_name},
            {"description", p->description}};
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
                if (figures[i].value.p)
                        lose_of(w, m, p, figures[i].name, no_place);
        if (p->ending)
                writing_lose(w, m, "state", no_place);
}

/* Calls of one message are in one array, but calls of several messages are anywhere in memory. */
static bool is_before(const struct part *a, const struct part *b)
{
        return a->seq != b->seq ? a->seq < b->seq : a < b;
}

/* Reports results that came in another order than their calls. *last is NULL behind each message
 * that is not a tool's. */
static void report_order(struct writer *w, const struct message *m, const struct part **last)
{
        for (size_t k = 0; k < m->count; k++) {
                const struct part *call = m->parts[k].peer;
                if (m->parts[k].kind != PART_RESULT || !call)
                        continue;
                if (*last && is_before(call, *last))
                        writing_lose(w, m, "message", "in the order of the calls");
                *last = call;
        }
}

void writing_report_result(struct writer *w, const struct message *m, const struct part *p)
{
        if (!p->peer)
                writing_lose(w, m, "result", "a result without a call");
        writing_lose_extras(w, m, "result", p->extras);
}

void writing_report_silence(struct writer *w, const struct message *m, const struct part *p)
{
        if (p->output_kind == OUTPUT_NONE)
                writing_lose(w, m, "content", "absent, written as an empty text");
}

int writing_embedded(
    struct writer *w, const struct history *h, writing_message_fn message, writing_part_fn report)
{
        const struct part *last = NULL;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                if (same_answered(w, m))
                        continue;
                if (m->role != ROLE_TOOL && m->role != ROLE_NONE) {
                        last = NULL;
                        int rc = message(w, m);
                        if (rc)
                                return rc;
                        continue;
                }
                report_order(w, m, &last);
                for (size_t k = 0; k < m->count; k++) {
                        if (m->parts[k].kind == PART_RESULT)
                                report(w, m, &m->parts[k]);
                        else
                                writing_lose_part(w, m, &m->parts[k]);
                }
                writing_lose_members(w, m, NULL);
                writing_lose_extras(w, m, "", m->extras);
        }
        return 0;
}

/* ---- arguments and outputs ---- */

bool writing_is_object(struct str s)
{
        size_t i = 0;
        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\n' || s.p[i] == '\t' || s.p[i] == '\r'))
                i++;
        return i < s.n && s.p[i] == '{' && json_valid(s.p, s.n, NULL);
}

static void put_raw_arguments(struct writer *w, struct str string)
{
        jsonw_object(&w->json);
        writing_string(w, RAW_ARGUMENTS, string);
        jsonw_object_end(&w->json);
}

void writing_arguments_value(
    struct writer *w, const struct message *m, const char *key, const struct part *p)
{
        jsonw_key(&w->json, key);
        if (!p->arguments.p || (p->arguments_text && !p->arguments.n)) {
                if (p->arguments.p)
                        lose_of(w, m, p, "arguments", "empty, written as {}");
                jsonw_raw(&w->json, STR("{}"));
                return;
        }
        if (!p->arguments_text) {
                if ((writing_own(w, m) && !w->valid) || p->arguments.p[0] == '{')
                        jsonw_raw(&w->json, p->arguments);
                else
                        put_raw_arguments(w, token_make(p->arguments, w->arena));
                return;
        }
        bool lossy = false;
        struct str text = token_decode(p->arguments, w->arena, &lossy);
        /* Reading would take an object with this member apart. */
        if (!lossy && writing_is_object(text) && !memmem(text.p, text.n, RAW_ARGUMENTS, 15))
                jsonw_raw(&w->json, w->valid ? fit_text(text, w->arena) : text);
        else
                put_raw_arguments(w, p->arguments);
}

void writing_arguments_text(
    struct writer *w, const struct message *m, const char *key, const struct part *p)
{
        jsonw_key(&w->json, key);
        if (p->arguments_text) {
                writing_value(w, p->arguments);
                return;
        }
        jsonw_str(&w->json, p->arguments.p ? p->arguments : STR("{}"));
        if (m->origin && (m->origin->flags & FORMAT_TEXT_ARGUMENTS) && p->raw.p && p->arguments.p)
                lose_of(w, m, p, "arguments", "an object, written as text");
}

/* Returns data as a text. It is read back as a text, unless all results of the source format are
 * objects. */
static struct str data_text(struct writer *w, const struct message *m, const struct part *p)
{
        if (str_is(p->output, "null")) {
                writing_lose(w, m, "content", "null, written as an empty text");
                return STR("");
        }
        bool object = m->origin && (m->origin->flags & FORMAT_OBJECT_RESULTS);
        if (!object || p->output.p[0] != '{')
                writing_lose(w, m, "result", "data, written as text");
        return token_make(p->output, w->arena);
}

struct str writing_output(struct writer *w, const struct message *m, const struct part *p)
{
        struct token_sum s;
        switch (p->output_kind) {
        case OUTPUT_NONE:
                break;
        case OUTPUT_TEXT:
                return p->output;
        case OUTPUT_DATA:
                return data_text(w, m, p);
        case OUTPUT_PARTS:
                token_sum_begin(&s);
                token_sum_add(&s, STR(""));
                for (size_t i = 0; i < p->child_count; i++)
                        if (p->children[i].kind == PART_TEXT)
                                token_sum_add(&s, p->children[i].text);
                return token_sum_end(&s, w->arena);
        }
        return STR("");
}

void writing_url(struct writer *w, const char *key, const struct media *media)
{
        if (!media->data.p) {
                writing_string(w, key, media->url);
                return;
        }
        jsonw_field_raw(&w->json, key, STR("\"data:"));
        buf_put_str(w->out, media->mime.p ? media->mime : STR("application/octet-stream"));
        buf_puts(w->out, ";base64,");
        buf_put_str(w->out, media->data);
        buf_putc(w->out, '"');
}

bool writing_own_parts(struct writer *w, struct message *m, size_t room)
{
        struct part *parts = arena_alloc(w->arena, (m->count + room + 1) * sizeof *parts);
        if (!parts)
                return false;
        for (size_t i = 0; i < m->count; i++) {
                parts[i] = m->parts[i];
                if (parts[i].peer)
                        parts[i].peer->peer = &parts[i];
        }
        m->parts = parts;
        message_touch(m);
        return true;
}

bool writing_seen(struct writer *w, struct str id)
{
        return writing_seen_in(w, &w->seen, id);
}

bool writing_seen_in(struct writer *w, struct writer_seen *s, struct str id)
{
        if (s->count * 2 >= s->cap) {
                size_t cap = s->cap ? s->cap * 2 : 64;
                uint64_t *to = arena_zalloc(w->arena, cap * sizeof *to);
                if (!to)
                        return false;
                for (size_t i = 0; i < s->cap; i++)
                        for (size_t k = s->list[i]; s->list[i]; k++) {
                                if (to[k & (cap - 1)])
                                        continue;
                                to[k & (cap - 1)] = s->list[i];
                                break;
                        }
                s->list = to;
                s->cap = cap;
        }
        uint64_t hash = hash_64(id.p, id.n) | 1;
        for (size_t k = hash;; k++) {
                uint64_t *slot = &s->list[k & (s->cap - 1)];
                if (*slot == hash)
                        return true;
                if (*slot)
                        continue;
                *slot = hash;
                s->count++;
                return false;
        }
}
