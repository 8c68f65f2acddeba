/* fit.c - see fit.h */
#include "format/fit.h"

#include <stdio.h>
#include <string.h>

#include "format/names.h"
#include "format/rules.h"
#include "format/sizes.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"
#include "model/via.h"

struct fit {
        struct writer *w;
        const struct rules *rules;
        struct arena *arena;
        struct writer_seen asked, approved; /* ids of requests for approval */
        /* of the message at hand */
        size_t left, texts;      /* parts that stay, and texts among them */
        struct server_use *uses; /* calls that the provider runs itself */
        size_t use_count;
};

struct server_use {
        struct str id;
        size_t at; /* among the parts */
};

static const char REFUSED[] = "the provider does not take it: a note stands in its place";

/* A copy of a message's parts that may be changed; peers follow. */
static bool own_parts(struct fit *f, struct message *m, bool *touched)
{
        if (*touched)
                return true;
        *touched = writing_own_parts(f->w, m, 0);
        return *touched;
}

/* ---- halves of surrogate pairs ---- */

static bool may_have_lone(struct str s)
{
        return s.n >= 6 && (memmem(s.p, s.n, "\\ud", 3) || memmem(s.p, s.n, "\\uD", 3)) &&
               rules_has_lone(s);
}

struct str fit_text(struct str s, struct arena *arena)
{
        if (!s.p || !may_have_lone(s))
                return s;
        char *to = arena_alloc(arena, s.n + 1);
        if (!to)
                return s;
        memcpy(to, s.p, s.n);
        for (size_t i = 0; i + 6 <= s.n;) {
                if (to[i] != '\\') {
                        i++;
                        continue;
                }
                if (to[i + 1] != 'u') {
                        i += 2;
                        continue;
                }
                bool pair = i + 12 <= s.n && !rules_has_lone(str_span(to + i, 12)) &&
                            rules_has_lone(str_span(to + i, 6));
                if (!pair && rules_has_lone(str_span(to + i, 6)))
                        memcpy(to + i + 2, "fffd", 4);
                i += pair ? 12 : 6;
        }
        return str_span(to, s.n);
}

static void mend(struct fit *f, struct str *s)
{
        *s = fit_text(*s, f->arena);
}

static void mend_extras(struct fit *f, struct extra **list)
{
        struct extra *first = NULL, **end = &first;
        bool lone = false;
        for (const struct extra *x = *list; x; x = x->next)
                lone |= may_have_lone(x->value) || may_have_lone(x->key);
        if (!lone)
                return;
        for (const struct extra *x = *list; x; x = x->next) {
                *end = arena_alloc(f->arena, sizeof **end);
                if (!*end)
                        return;
                **end = *x;
                mend(f, &(*end)->key);
                mend(f, &(*end)->value);
                end = &(*end)->next;
        }
        *end = NULL;
        *list = first;
}

static const char *field_of(const struct part *p)
{
        return p->kind == PART_CALL ? "arguments" : p->kind == PART_RESULT ? "result" : "content";
}

static int mend_part(struct fit *f, struct part *p)
{
        struct str *const all[] = {&p->raw, &p->text, &p->signature, &p->id, &p->name,
            &p->arguments, &p->output, &p->media.url, &p->media.name, &p->media.file_id,
            &p->output_raw};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                mend(f, all[i]);
        mend_extras(f, &p->extras);
        if (!p->child_count)
                return 0;
        struct part *children = arena_alloc(f->arena, p->child_count * sizeof *children);
        if (!children)
                return STENO_ENOMEM;
        memcpy(children, p->children, p->child_count * sizeof *children);
        p->children = children;
        for (size_t i = 0; i < p->child_count; i++)
                if (mend_part(f, &children[i]))
                        return STENO_ENOMEM;
        return 0;
}

static bool part_has_lone(const struct part *p)
{
        if (may_have_lone(p->text) || may_have_lone(p->raw) || may_have_lone(p->output) ||
            may_have_lone(p->arguments) || may_have_lone(p->output_raw))
                return true;
        for (size_t i = 0; i < p->child_count; i++)
                if (part_has_lone(&p->children[i]))
                        return true;
        return false;
}

static bool has_lone(const struct message *m)
{
        if (m->raw.p && m->origin != &format_legacy) /* whose records stand inside of a text */
                return may_have_lone(m->raw);
        for (size_t i = 0; i < m->count; i++)
                if (part_has_lone(&m->parts[i]))
                        return true;
        return false;
}

static int mend_message(struct fit *f, struct message *m, bool *touched)
{
        if (!has_lone(m))
                return 0;
        if (!own_parts(f, m, touched))
                return STENO_ENOMEM;
        mend(f, &m->name);
        mend(f, &m->id);
        mend_extras(f, &m->extras);
        for (size_t i = 0; i < m->count; i++) {
                if (mend_part(f, &m->parts[i]))
                        return STENO_ENOMEM;
                writing_lose(
                    f->w, m, field_of(&m->parts[i]), "half of a surrogate pair became U+FFFD");
        }
        return 0;
}

/* ---- names ---- */

static bool is_named(const struct part *p)
{
        return (p->kind == PART_CALL || p->kind == PART_RESULT) && p->name.n;
}

/* A provider's own tool goes back to it under the name that it has there. */
static bool is_own_name(const struct fit *f, const struct message *m, const struct part *p)
{
        return p->provider_run && m->origin == f->w->format;
}

/* The names that the provider takes stay as they are, and no other tool gets one of them. */
static int take_names(struct fit *f, const struct history *h)
{
        f->w->names = arena_zalloc(f->arena, sizeof *f->w->names);
        if (!f->w->names)
                return STENO_ENOMEM;
        f->w->names->rules = f->rules;
        f->w->names->arena = f->arena;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                for (size_t k = 0; k < m->count; k++) {
                        const struct part *p = &m->parts[k];
                        if (p->kind != PART_CALL || !is_named(p))
                                continue;
                        struct str name = token_decode(p->name, f->arena, NULL);
                        if (rules_is_name(f->rules, name))
                                names_take(f->w->names, name);
                }
        }
        return f->arena->failed;
}

static int fit_names(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (!is_named(p) || is_own_name(f, m, p))
                        continue;
                struct str name = token_decode(p->name, f->arena, NULL);
                if (rules_is_name(f->rules, name))
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->parts[i].name = names_map(f->w->names, name);
                if (p->kind == PART_CALL)
                        writing_lose(f->w, m, "name", "mapped to a name that the provider takes");
        }
        if (m->name.p && !rules_is_name(f->rules, token_decode(m->name, f->arena, NULL))) {
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                writing_lose(f->w, m, "name", "no name that the provider takes");
                m->name = (struct str){0};
        }
        return f->arena->failed;
}

/* ---- media ---- */

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

static const char *guess_type(struct str url)
{
        static const char *const ends[][2] = {{".png", "image/png"}, {".jpg", "image/jpeg"},
            {".jpeg", "image/jpeg"}, {".gif", "image/gif"}, {".webp", "image/webp"},
            {".pdf", "application/pdf"}, {".txt", "text/plain"}, {".mp4", "video/mp4"},
            {".mp3", "audio/mp3"}, {".wav", "audio/wav"}};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                size_t n = strlen(ends[i][0]);
                if (url.n > n && memcmp(url.p + url.n - n, ends[i][0], n) == 0)
                        return ends[i][1];
        }
        return NULL;
}

/* What was meant: base64 in the place of an address, types under other names. */
static void correct(struct fit *f, struct part *p)
{
        struct media *x = &p->media;
        if (x->url.p && !x->data.p) {
                struct str url = token_decode(x->url, f->arena, NULL);
                const char *type = rules_image_type(url);
                if (type && rules_is_base64(url)) {
                        x->data = url;
                        x->mime = str_of(type);
                        x->url = (struct str){0};
                }
        }
        if (x->data.p && str_starts(x->data, "data:")) {
                struct str url = x->data;
                x->data = (struct str){0};
                const char *at = memmem(url.p, url.n, ";base64,", 8);
                if (at) {
                        x->mime = str_span(url.p + 5, (size_t)(at - url.p) - 5);
                        x->data = str_span(at + 8, (size_t)(url.p + url.n - at) - 8);
                }
        }
        if (x->data.p && memchr(x->data.p, '\\', x->data.n))
                x->data = token_decode(x->data, f->arena, NULL); /* "\/" in base64 */
        if (str_is(x->mime, "image/jpg"))
                x->mime = STR("image/jpeg");
        /* Only a type that differs is a change; is_same() compares pointers. */
        const char *real = x->data.p && p->kind == PART_IMAGE ? rules_image_type(x->data) : NULL;
        if (real && !str_is(x->mime, real))
                x->mime = str_of(real);
        if (!x->data.p && !x->mime.p && f->w->format == &format_gemini && x->url.p) {
                const char *type = guess_type(x->url);
                x->mime = type                    ? str_of(type)
                          : p->kind == PART_IMAGE ? STR("image/jpeg")
                                                  : STR("application/pdf");
        }
}

static const char *const *types_of(const struct fit *f, const struct part *p)
{
        return p->kind == PART_IMAGE   ? f->rules->images
               : p->kind == PART_AUDIO ? f->rules->sounds
                                       : f->rules->files;
}

static bool is_stored_file(const struct fit *f, struct str url)
{
        return f->w->format == &format_gemini && str_starts(url, "gs://") && url.n > 5 &&
               url.p[5] != '/';
}

static bool takes_address(const struct fit *f, const struct part *p)
{
        const struct format *to = f->w->format;
        return p->kind == PART_IMAGE || to != &format_openai;
}

static bool is_taken(struct fit *f, const struct part *p)
{
        const struct media *x = &p->media;
        struct str mime = x->mime.p ? token_decode(x->mime, f->arena, NULL) : STR("");
        bool gemini = f->w->format == &format_gemini;
        if (p->kind == PART_AUDIO &&
            (f->w->format == &format_anthropic || f->w->format == &format_responses))
                return false;
        if (x->data.p) {
                if (p->kind == PART_IMAGE && !x->mime.p)
                        return rules_image_type(x->data) != NULL;
                return mime.n && rules_is_media(types_of(f, p), mime) && rules_is_base64(x->data);
        }
        if (x->url.p) {
                struct str url = token_decode(x->url, f->arena, NULL);
                bool https = f->rules->https_only || gemini;
                if (gemini && !rules_is_media(types_of(f, p), mime))
                        return false;
                return is_stored_file(f, url) ||
                       (takes_address(f, p) && rules_is_address(url, https));
        }
        return x->file_id.n && !gemini &&
               !(f->w->format == &format_openai && p->kind == PART_IMAGE);
}

static struct part note_for(struct fit *f, const struct part *p)
{
        char text[200];
        const char *what = p->kind == PART_IMAGE   ? "An image"
                           : p->kind == PART_AUDIO ? "A sound"
                                                   : "A file";
        struct str mime = p->media.mime.p ? token_decode(p->media.mime, f->arena, NULL) : STR("");
        int n = snprintf(text, sizeof text,
            "[%s%s%.*s is not shown here: the provider does not take it.]", what,
            mime.n ? " of type " : "", (int)(mime.n > 60 ? 60 : mime.n), mime.n ? mime.p : "");
        return (struct part){.kind = PART_TEXT,
            .text = token_make(str_span(text, (size_t)n), f->arena),
            .seq = p->seq};
}

static bool is_same(const struct media *a, const struct media *b)
{
        return a->url.p == b->url.p && a->data.p == b->data.p && a->mime.p == b->mime.p;
}

/* Fits one medium. True: it changed. */
static bool fit_medium(struct fit *f, const struct message *m, struct part *p)
{
        struct media before = p->media;
        correct(f, p);
        if (f->w->format == &format_openai && p->kind == PART_FILE && p->media.data.p &&
            !p->media.name.p)
                p->media.name = STR("file");
        if (f->w->format == &format_responses && p->kind == PART_FILE && p->media.data.p &&
            !p->media.name.p)
                p->media.name = STR("file");
        if (is_taken(f, p)) {
                bool same = is_same(&before, &p->media) && before.name.p == p->media.name.p;
                if (!same)
                        p->raw = (struct str){0};
                return !same;
        }
        static const char *const names[] = {
            [PART_IMAGE] = "image", [PART_AUDIO] = "audio", [PART_FILE] = "file"};
        writing_lose(f->w, m, names[p->kind], REFUSED);
        writing_lose_extras(f->w, m, names[p->kind], p->extras);
        *p = note_for(f, p);
        return true;
}

static int fit_list(
    struct fit *f, const struct message *m, struct part **list, size_t count, bool *changed)
{
        struct part *copy = NULL;
        for (size_t i = 0; i < count; i++) {
                struct part p = (*list)[i];
                if (!is_media(&p) || !fit_medium(f, m, &p))
                        continue;
                if (!copy) {
                        copy = arena_alloc(f->arena, count * sizeof *copy);
                        if (!copy)
                                return STENO_ENOMEM;
                        memcpy(copy, *list, count * sizeof *copy);
                }
                copy[i] = p;
                *changed = true;
        }
        if (copy)
                *list = copy;
        return 0;
}

static int fit_media(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                struct part p = m->parts[i];
                bool changed = false;
                if (is_media(&p))
                        changed = fit_medium(f, m, &p);
                else if (p.kind == PART_RESULT &&
                         fit_list(f, m, &p.children, p.child_count, &changed))
                        return STENO_ENOMEM;
                if (!changed)
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                if (p.kind == PART_RESULT)
                        p.raw = (struct str){0};
                p.peer = m->parts[i].peer; /* it may have moved with the others */
                m->parts[i] = p;
        }
        return 0;
}

/* ---- what is not for this endpoint, or for no strict one ---- */

static int drop_parts(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *why)
{
        static const char *const names[] = {"text", "image", "audio", "file", "call", "result",
            "thinking", "redacted_thinking", "refusal", "part"};
        bool *gone = NULL;
        f->left = m->count;
        f->texts = message_count(m, PART_TEXT);
        for (size_t i = 0; i < m->count; i++) {
                if (!drop(f, m, &m->parts[i]))
                        continue;
                writing_lose(f->w, m, names[m->parts[i].kind], why);
                if (!gone)
                        gone = arena_zalloc(f->arena, m->count * sizeof *gone);
                if (!gone)
                        return STENO_ENOMEM;
                gone[i] = true;
                f->left--;
                f->texts -= m->parts[i].kind == PART_TEXT;
        }
        if (!gone)
                return 0;
        if (!own_parts(f, m, touched))
                return STENO_ENOMEM;
        message_drop_parts(m, gone);
        return 0;
}

/* In a strict view a part of a type that the table does not have stays behind. */
static bool is_strange(struct fit *f, const struct message *m, const struct part *p)
{
        if (p->kind != PART_OPAQUE || m->origin != f->w->format || !p->raw.p)
                return false;
        static const char *const types[][2] = {{"openai", "part"}, {"responses", "message"},
            {"anthropic", "block"}, {"gemini", "part"}};
        const char *type = "message";
        for (size_t i = 0; i < 4; i++)
                if (strcmp(types[i][0], f->w->format->name) == 0)
                        type = m->item && m->shape == SHAPE_ARRAY ? "said" : types[i][1];
        struct json j;
        json_init(&j);
        bool strange = json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) != 0 ||
                       !rules_is_whole(f->rules, type, &j, 0);
        json_release(&j);
        return strange;
}

/* The extras but for one of them. */
static struct extra *without(struct fit *f, const struct extra *list, const struct extra *one)
{
        struct extra *first = NULL, **end = &first;
        for (; list; list = list->next) {
                if (list == one)
                        continue;
                *end = arena_alloc(f->arena, sizeof **end);
                if (!*end)
                        return NULL;
                **end = *list;
                end = &(*end)->next;
        }
        *end = NULL;
        return first;
}

/* ---- parts that mean something only beside another ---- */

/* A member of an opaque part, as text; absent where it is no string. */
static struct str opaque_member(struct fit *f, const struct part *p, const char *key)
{
        struct str text = {0};
        struct json j;
        if (p->kind != PART_OPAQUE || !p->raw.p)
                return text;
        json_init(&j);
        if (json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0)
                text = token_text(&j, json_get(&j, 0, key), f->arena);
        json_release(&j);
        return text;
}

/* An item that the endpoint is meant to have kept. A view is whole, so the endpoint keeps nothing,
 * and what the reference names stands in the history anyway. */
static bool is_reference(struct fit *f, const struct message *m, const struct part *p)
{
        return f->w->format == &format_responses && m->origin == f->w->format &&
               p->kind == PART_OPAQUE && str_is(opaque_member(f, p, "type"), "item_reference");
}

/* An approval belongs to a request before it, and each request has one. */
static bool is_stray_approval(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_responses || m->origin != f->w->format ||
            p->kind != PART_OPAQUE || !p->raw.p || !memmem(p->raw.p, p->raw.n, "mcp_approval_", 13))
                return false;
        struct str type = opaque_member(f, p, "type");
        if (str_is(type, "mcp_approval_request"))
                writing_seen_in(f->w, &f->asked, opaque_member(f, p, "id"));
        if (!str_is(type, "mcp_approval_response"))
                return false;
        struct str id = opaque_member(f, p, "approval_request_id");
        return !writing_seen_in(f->w, &f->asked, id) || writing_seen_in(f->w, &f->approved, id);
}

/* Anthropic runs some tools itself: the result stands in the same message, behind its call. */
static bool is_server_result(struct fit *f, const struct part *p)
{
        static const char END[] = "_tool_result";
        size_t n = sizeof END - 1;
        struct str type = opaque_member(f, p, "type");
        return type.n > n && memcmp(type.p + type.n - n, END, n) == 0;
}

/* What only the assistant may say, in a message of somebody else. */
static bool is_misplaced(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_anthropic || m->origin != f->w->format ||
            m->role == ROLE_ASSISTANT)
                return false;
        return p->kind == PART_THINKING || p->kind == PART_REDACTED || is_server_result(f, p) ||
               str_is(opaque_member(f, p, "type"), "server_tool_use");
}

/* "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'", and its input is an
 * object, as that of every call. */
static bool is_bad_server_call(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_anthropic || m->origin != f->w->format ||
            !str_is(opaque_member(f, p, "type"), "server_tool_use"))
                return false;
        struct str id = opaque_member(f, p, "id");
        bool bad = !str_starts(id, "srvtoolu_") || id.n == 9;
        for (size_t i = 9; !bad && i < id.n; i++)
                bad = id.p[i] == '-' || !rules_is_name(f->rules, str_span(id.p + i, 1));
        struct json j;
        json_init(&j);
        bad |= json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) != 0 ||
               json_type(&j, json_get(&j, 0, "input")) != JSON_OBJECT;
        json_release(&j);
        return bad;
}

static bool is_server_orphan(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_anthropic || m->origin != f->w->format ||
            !is_server_result(f, p))
                return false;
        struct str id = opaque_member(f, p, "tool_use_id");
        for (size_t i = 0; i < f->use_count && m->parts + f->uses[i].at < p; i++)
                if (str_eq(f->uses[i].id, id))
                        return false;
        return true;
}

/* Finds them once: there may be many results. */
static int find_server_uses(struct fit *f, const struct message *m)
{
        f->use_count = 0;
        if (f->w->format != &format_anthropic || m->origin != f->w->format)
                return 0;
        f->uses = arena_alloc(f->arena, (m->count + 1) * sizeof *f->uses);
        for (size_t i = 0; f->uses && i < m->count; i++)
                if (str_is(opaque_member(f, &m->parts[i], "type"), "server_tool_use"))
                        f->uses[f->use_count++] =
                            (struct server_use){opaque_member(f, &m->parts[i], "id"), i};
        return f->uses ? 0 : STENO_ENOMEM;
}

/* Thinking and signatures are worth something only where they were made. */
static bool is_secret(struct fit *f, const struct message *m, const struct part *p)
{
        if (p->kind == PART_THINKING || p->kind == PART_REDACTED)
                return true;
        if (p->kind != PART_OPAQUE || !p->raw.p || m->origin != f->w->format)
                return false;
        return memmem(p->raw.p, p->raw.n, "\"encrypted_content\"", 19) ||
               str_is(opaque_member(f, p, "type"), "reasoning");
}

/* The type in the table of what an extra stands in; NULL: all of them stay. */
static const char *type_of(const struct fit *f, const struct part *p)
{
        static const struct {
                const struct format *format;
                const char *message, *text, *call;
        } types[] = {{&format_openai, "assistant", "text", "function_call"},
            {&format_anthropic, "assistant", "text", "use"},
            {&format_gemini, "message", "part", "part"}};
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                if (types[i].format != f->w->format)
                        continue;
                return !p                     ? types[i].message
                       : p->kind == PART_TEXT ? types[i].text
                       : p->kind == PART_CALL ? types[i].call
                                              : NULL;
        }
        return NULL;
}

/* Members that no API has, and Gemini's signatures. */
static bool is_opaque_extra(const struct fit *f, const char *type, const struct extra *x)
{
        struct str name = str_span(x->key.p + 1, x->key.n - 2);
        return !x->inner &&
               (!rules_has_member(f->rules, type, name) || str_is(name, "thoughtSignature"));
}

static struct extra *without_opaque(struct fit *f, const char *type, struct extra *list)
{
        for (struct extra *x = type ? list : NULL; x; x = x->next)
                if (is_opaque_extra(f, type, x))
                        return without_opaque(f, type, without(f, list, x));
        return list;
}

static int fit_origin(struct fit *f, struct message *m, bool *touched)
{
        static const char why[] = "only the endpoint that made it can read it";
        bool own = m->origin == f->w->format;
        if (!via_is_foreign(m->via, f->w->via))
                return 0;
        if (drop_parts(f, m, touched, is_secret, why))
                return STENO_ENOMEM;
        struct extra *rest = own ? without_opaque(f, type_of(f, NULL), m->extras) : m->extras;
        if (rest != m->extras) {
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->extras = rest;
                writing_lose(f->w, m, "message", why);
        }
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                rest = own ? without_opaque(f, type_of(f, p), p->extras) : p->extras;
                if (!p->signature.p && rest == p->extras)
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                p->signature = p->raw = (struct str){0};
                p->extras = rest;
                writing_lose(f->w, m, "signature", why);
        }
        return f->arena->failed;
}

static bool is_signature(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!rules_is_name(&rules_responses, str_span(s.p + i, 1)) &&
                    !strchr("+/=", s.p[i]))
                        return false;
        return s.n > 0;
}

static struct extra *find_signature(const struct part *p)
{
        struct extra *x = p->extras;
        while (x && !str_is(x->key, "\"thoughtSignature\""))
                x = x->next;
        return x;
}

/* Gemini decodes the signature: one of another provider is no base64. */
static int fit_signatures(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; f->w->format == &format_gemini && i < m->count; i++) {
                struct part *p = &m->parts[i];
                const struct extra *x = find_signature(p);
                struct str told =
                    x && x->value.n >= 2 ? str_span(x->value.p + 1, x->value.n - 2) : p->signature;
                if (!told.p || is_signature(token_decode(told, f->arena, NULL)))
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                p->signature = p->raw = (struct str){0};
                if (x)
                        p->extras = without(f, p->extras, x);
                writing_lose(f->w, m, "signature", "no signature of this provider");
        }
        return f->arena->failed;
}

/* ---- calls that Gemini 3 wants signed ---- */

static bool is_gemini_3(const struct fit *f)
{
        struct str model = via_model(f->w->via);
        return f->w->format == &format_gemini && memmem(model.p, model.n, "gemini-3", 8);
}

/* The place behind the last words of the user: what follows is the current turn. */
static size_t current_turn(const struct history *h)
{
        size_t i = h->count;
        while (i > 0 && h->list[i - 1].role != ROLE_USER)
                i--;
        return i;
}

/* "thoughtSignature": "skip_thought_signature_validator" is what Google's documentation of thought
 * signatures gives for calls of the current turn that came from elsewhere. The first call of each
 * message carries the signature. */
static int fit_placeholders(struct fit *f, struct history *h)
{
        for (size_t i = is_gemini_3(f) ? current_turn(h) : h->count; i < h->count; i++) {
                struct message *m = &h->list[i];
                size_t k = 0;
                while (k < m->count && m->parts[k].kind != PART_CALL)
                        k++;
                if (m->role != ROLE_ASSISTANT || k == m->count || m->parts[k].signature.n ||
                    find_signature(&m->parts[k]))
                        continue;
                if (!writing_own_parts(f->w, m, 0))
                        return STENO_ENOMEM;
                m->parts[k].signature = STR("skip_thought_signature_validator");
                m->parts[k].raw = (struct str){0};
                writing_lose(f->w, m, "signature", "none, so the provider is told not to check it");
        }
        return 0;
}

/* ---- texts ---- */

static bool is_nothing(struct fit *f, const struct message *m, const struct part *p)
{
        if (p->kind != PART_TEXT || p->text.n || f->left < 2)
                return false;
        /* Alone beside calls it is what formats write for nothing, and writers leave it out. */
        return m->shape == SHAPE_ARRAY || !message_has(m, PART_CALL) || f->texts > 1;
}

static bool is_empty_child(const struct part *p)
{
        return p->kind == PART_TEXT && !p->text.n;
}

/* An empty text among the texts of a result. */
static int fit_children(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                size_t empty = 0, kept = 0;
                for (size_t k = 0; p->kind == PART_RESULT && k < p->child_count; k++)
                        empty += is_empty_child(&p->children[k]);
                if (!empty)
                        continue;
                struct part *children = arena_alloc(f->arena, p->child_count * sizeof *children);
                if (!children || !own_parts(f, m, touched))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                for (size_t k = 0; k < p->child_count; k++)
                        if (!is_empty_child(&p->children[k]))
                                children[kept++] = p->children[k];
                p->children = children;
                p->child_count = kept;
                p->raw = (struct str){0};
                if (!kept) {
                        p->output_kind = OUTPUT_TEXT;
                        p->output = STR("");
                }
                writing_lose(f->w, m, "content", "an empty text, which the provider refuses");
        }
        return 0;
}

/* Anthropic refuses a failure that says nothing. */
static int fit_errors(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; f->rules->error_says && i < m->count; i++) {
                struct part *p = &m->parts[i];
                bool empty = p->output_kind == OUTPUT_NONE ||
                             (p->output_kind == OUTPUT_TEXT && !p->output.n) ||
                             (p->output_kind == OUTPUT_DATA && str_is(p->output, "null")) ||
                             (p->output_kind == OUTPUT_PARTS && !p->child_count);
                if (p->kind != PART_RESULT || !p->error || !empty)
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                message_set_output(m, &m->parts[i], STR("[The tool failed and said nothing.]"));
                writing_lose(f->w, m, "content", "empty, which the provider refuses in a failure");
        }
        return 0;
}

/* Does an assistant's message say or do anything that a provider would read? */
static bool says_nothing(const struct fit *f, const struct message *m)
{
        if (m->role != ROLE_ASSISTANT || !f->w->format || f->w->format == &format_anthropic ||
            f->w->format == &format_gemini)
                return false; /* their turns leave out what is empty by themselves */
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_TEXT && turns_is_blank(p->text))
                        continue;
                if (p->kind == PART_THINKING || p->kind == PART_REDACTED)
                        continue;
                if (p->kind == PART_OPAQUE && m->origin != f->w->format)
                        continue;
                return false;
        }
        for (const struct extra *x = m->extras; x; x = x->next)
                if (m->origin == f->w->format && str_is(x->key, "\"audio\"") &&
                    !str_is(x->value, "null"))
                        return false;
        return true;
}

/* ---- cache marks ---- */

static struct extra **find_mark(struct part *p)
{
        struct extra **x = &p->extras;
        while (*x && !str_is((*x)->key, "\"cache_control\""))
                x = &(*x)->next;
        return *x && (*x)->value.n && (*x)->value.p[0] == '{' ? x : NULL;
}

static bool is_long(const struct extra *x)
{
        return memmem(x->value.p, x->value.n, "\"1h\"", 4) != NULL;
}

/* Walks the marks from the last to the first: the last four stay, and none of five minutes that
 * stands before one of an hour. */
struct marks {
        size_t kept;
        bool hour;
};

static bool stays(struct fit *f, struct marks *k, const struct extra *x)
{
        if (k->kept == f->rules->cache_marks || (k->hour && !is_long(x)))
                return false;
        k->kept++;
        k->hour |= is_long(x);
        return true;
}

static bool unmark(struct fit *f, struct marks *k, struct part *p)
{
        struct extra **x = find_mark(p);
        if (!x || stays(f, k, *x))
                return false;
        p->extras = without(f, p->extras, *x);
        p->raw = (struct str){0};
        return true;
}

static int fit_marks(struct fit *f, struct history *h)
{
        struct marks k = {0};
        if (!f->rules->cache_marks)
                return 0;
        for (size_t i = h->count; i-- > 0;) {
                struct message *m = &h->list[i];
                bool touched = false;
                if (m->origin != f->w->format)
                        continue;
                for (size_t n = m->count; n-- > 0;) {
                        struct part p = m->parts[n];
                        bool changed = unmark(f, &k, &p);
                        struct part *children = NULL;
                        for (size_t c = p.child_count; c-- > 0;) {
                                struct part child = p.children[c];
                                if (!unmark(f, &k, &child))
                                        continue;
                                if (!children) {
                                        children =
                                            arena_alloc(f->arena, p.child_count * sizeof *children);
                                        if (!children)
                                                return STENO_ENOMEM;
                                        memcpy(
                                            children, p.children, p.child_count * sizeof *children);
                                        p.children = children;
                                        p.raw = (struct str){0};
                                }
                                children[c] = child;
                                changed = true;
                        }
                        if (!changed)
                                continue;
                        if (!own_parts(f, m, &touched))
                                return STENO_ENOMEM;
                        writing_lose(f->w, m, "cache_control", "more than the provider takes");
                        p.peer = m->parts[n].peer;
                        m->parts[n] = p;
                }
        }
        return f->arena->failed;
}

/* ---- all of it ---- */

/* Is a key token one of these words, which have spaces around them? */
static bool is_listed(const char *words, struct str key)
{
        char word[40];
        int n = snprintf(word, sizeof word, " %.*s ", (int)key.n - 2, key.p + 1);
        return key.n > 2 && n < (int)sizeof word && strstr(words, word);
}

static bool is_reply_extra(const struct fit *f, const struct extra *x)
{
        return rules_is_reply_member(f->rules, str_span(x->key.p + 1, x->key.n - 2));
}

/* A list without such members; the same list where there are none. */
static struct extra *sift(struct fit *f, struct extra *list)
{
        for (struct extra *x = list; x; x = x->next)
                if (!x->inner && is_reply_extra(f, x))
                        return sift(f, without(f, list, x));
        return list;
}

/* Members of a reply, and Steno's own, never go out, whoever put them there. */
static int fit_members(struct fit *f, struct message *m, bool *touched)
{
        if (m->origin != f->w->format || !f->rules->reply)
                return 0;
        struct extra *list = sift(f, m->extras);
        bool id = m->id.p && rules_is_reply_member(f->rules, STR("id"));
        if ((list != m->extras || id) && !own_parts(f, m, touched))
                return STENO_ENOMEM;
        m->extras = list;
        if (id)
                m->id = (struct str){0};
        for (size_t i = 0; i < m->count; i++) {
                list = sift(f, m->parts[i].extras);
                if (list == m->parts[i].extras)
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->parts[i].extras = list;
                m->parts[i].raw = (struct str){0};
        }
        return f->arena->failed;
}

/* A list of one empty text is a text: the list would be refused. */
static int fit_shape(struct fit *f, struct message *m, bool *touched)
{
        if (m->count != 1 || m->parts[0].kind != PART_TEXT || m->parts[0].text.n ||
            m->shape == SHAPE_STRING)
                return 0;
        if (!own_parts(f, m, touched))
                return STENO_ENOMEM;
        writing_lose_extras(f->w, m, "content", m->parts[0].extras);
        m->parts[0].extras = NULL;
        m->parts[0].raw = (struct str){0};
        m->shape = SHAPE_STRING;
        return 0;
}

/* Only the assistant calls. */
static int fit_role(struct fit *f, struct message *m, bool *touched)
{
        if (m->role != ROLE_USER || !message_has(m, PART_CALL) || message_has(m, PART_RESULT))
                return 0;
        if (!own_parts(f, m, touched))
                return STENO_ENOMEM;
        m->role = ROLE_ASSISTANT;
        writing_lose(f->w, m, "role", "written as the assistant, because it calls tools");
        return 0;
}

/* A part of Gemini's holds one thing, and what a function answers is an object. */
static int fit_gemini(struct fit *f, struct message *m, bool *touched)
{
        static const char DATA[] = " text inlineData fileData functionCall functionResponse "
                                   "executableCode codeExecutionResult ";
        for (size_t i = 0;
             f->w->format == &format_gemini && m->origin == f->w->format && i < m->count; i++) {
                const struct part *p = &m->parts[i];
                struct extra *second = p->kind == PART_OPAQUE ? NULL : p->extras;
                while (second && (second->inner || !is_listed(DATA, second->key)))
                        second = second->next;
                bool bare = p->kind == PART_RESULT && p->output_kind == OUTPUT_DATA &&
                            p->output.n && p->output.p[0] != '{';
                if (!second && !bare)
                        continue;
                if (!own_parts(f, m, touched))
                        return STENO_ENOMEM;
                struct part *q = &m->parts[i];
                q->raw = (struct str){0};
                if (bare) {
                        bool string = q->output.p[0] == '"';
                        q->output = string ? str_span(q->output.p + 1, q->output.n - 2)
                                           : token_make(q->output, f->arena);
                        q->output_kind = OUTPUT_TEXT;
                        q->output_object = false;
                }
                if (second) {
                        m->parts[i].extras = without(f, m->parts[i].extras, second);
                        writing_lose(f->w, m, "part", "a part holds one thing");
                        i--; /* there may be a third */
                }
        }
        return f->arena->failed;
}

static int fit_message(struct fit *f, struct message *m)
{
        bool touched = false;
        if (fit_role(f, m, &touched) || fit_gemini(f, m, &touched) || fit_members(f, m, &touched) ||
            mend_message(f, m, &touched) || fit_origin(f, m, &touched) ||
            fit_signatures(f, m, &touched) || fit_names(f, m, &touched) ||
            fit_media(f, m, &touched) || fit_children(f, m, &touched) ||
            fit_errors(f, m, &touched) ||
            drop_parts(f, m, &touched, is_reference, "what it refers to stands in the history") ||
            drop_parts(
                f, m, &touched, is_stray_approval, "it answers no request, or a second time") ||
            drop_parts(f, m, &touched, is_misplaced, "only the assistant may say it") ||
            drop_parts(f, m, &touched, is_bad_server_call, "no call that the provider made") ||
            find_server_uses(f, m) ||
            drop_parts(f, m, &touched, is_server_orphan, "its call does not stand before it") ||
            drop_parts(f, m, &touched, is_nothing, "an empty text, which the provider refuses"))
                return STENO_ENOMEM;
        if (f->w->strict &&
            drop_parts(f, m, &touched, is_strange, "of a type that is not in the provider's table"))
                return STENO_ENOMEM;
        return fit_shape(f, m, &touched) || f->arena->failed;
}

/* A message that would be empty: what it does hold, or that it is empty. */
static void lose_message(struct fit *f, const struct message *m)
{
        bool empty = !m->count;
        for (size_t k = 0; k < m->count; k++) {
                if (m->parts[k].kind == PART_TEXT)
                        empty = true;
                else
                        writing_lose_part(f->w, m, &m->parts[k]);
                writing_lose_extras(f->w, m, "content", m->parts[k].extras);
        }
        if (empty)
                writing_lose(f->w, m, "content", "an empty message, which the provider refuses");
        writing_lose_members(f->w, m, NULL);
        writing_lose_extras(f->w, m, "", m->extras);
}

int fit_history(struct writer *w, const struct history *h, struct history *out)
{
        struct fit f = {.w = w, .rules = rules_find(w->format->name), .arena = w->arena};
        if (!f.rules || !w->valid) {
                *out = *h;
                return 0;
        }
        struct history to = {.list = arena_alloc(f.arena, (h->count + 1) * sizeof *to.list)};
        if (!to.list || take_names(&f, h))
                return STENO_ENOMEM;
        for (size_t i = 0; i < h->count; i++) {
                struct message m = h->list[i];
                size_t count = m.count;
                if (fit_message(&f, &m))
                        return STENO_ENOMEM;
                if (says_nothing(&f, &m)) {
                        lose_message(&f, &m);
                        continue;
                }
                if (count && !m.count && m.role == ROLE_NONE)
                        continue; /* an item of its own that was left out */
                to.list[to.count++] = m;
        }
        *out = to;
        return fit_marks(&f, out) || fit_placeholders(&f, out) || sizes_fit(w, out);
}
