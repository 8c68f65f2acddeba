/*
 * fit_parts.c - parts that the provider does not accept where they are (fit_work.h): their type is
 * unknown to it, or they need another part beside them.
 */
#include "format/fit_work.h"

#include <string.h>

#include "format/rules.h"
#include "format/writing.h"
#include "model/token.h"

/* ---- leaving out ---- */

int fit_drop_parts(struct fit *f, struct message *m, bool *touched,
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
        if (!fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        message_drop_parts(m, gone);
        return 0;
}

int fit_drop_children(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *instead,
    const char *why)
{
        for (size_t i = 0; i < m->count; i++) {
                size_t kept = 0, n = m->parts[i].child_count;
                for (size_t k = 0; m->parts[i].kind == PART_RESULT && k < n; k++)
                        kept += !drop(f, m, &m->parts[i].children[k]);
                if (m->parts[i].kind != PART_RESULT || kept == n)
                        continue;
                struct part *children = arena_alloc(f->arena, (kept + 1) * sizeof *children);
                if (!children || !fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                struct part *p = &m->parts[i];
                kept = 0;
                for (size_t k = 0; k < n; k++)
                        if (!drop(f, m, &p->children[k]))
                                children[kept++] = p->children[k];
                p->children = children;
                p->child_count = kept;
                p->raw = p->output_raw = (struct str){0};
                if (!kept)
                        message_set_output(m, p, str_of(instead));
                writing_lose(f->w, m, "content", why);
        }
        return 0;
}

/* ---- types ---- */

/* Is the type of the part missing in the table? A strict view leaves such a part out. */
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

/* Is it an image or file of Responses without any address, data or id? All these members are
 * optional. */
static bool is_nowhere(const struct json *j)
{
        static const char *const IMAGE[] = {"image_url", "file_id", NULL};
        static const char *const FILES[] = {"file_data", "file_url", "file_id", NULL};
        json_ref type = json_get(j, 0, "type");
        const char *const *keys = json_is(j, type, "input_image")  ? IMAGE
                                  : json_is(j, type, "input_file") ? FILES
                                                                   : NULL;
        for (size_t i = 0; keys && keys[i]; i++)
                if (json_type(j, json_get(j, 0, keys[i])) == JSON_STRING)
                        return false;
        return keys != NULL;
}

/* Has the part a known type, but not the members that the type needs? The provider refuses the
 * whole history for it. OpenAI's writer makes a text of such a part. */
static bool is_empty_handed(struct fit *f, const struct message *m, const struct part *p)
{
        static const char *const types[][3] = {{"responses", "said", "spoken"},
            {"anthropic", "block", "result_block"}, {"gemini", "part", "response_part"}};
        if (p->kind != PART_OPAQUE || m->origin != f->w->format || !p->raw.p ||
            (m->item && m->role == ROLE_NONE))
                return false;
        bool lacks = false;
        struct json j;
        json_init(&j);
        for (size_t i = 0; i < 3; i++) {
                if (strcmp(types[i][0], f->w->format->name) != 0 ||
                    json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) != 0)
                        continue;
                lacks = is_nowhere(&j) || rules_lacks(f->rules, types[i][1], &j, 0) ||
                        rules_lacks(f->rules, types[i][2], &j, 0);
        }
        json_release(&j);
        return lacks;
}

/* ---- parts that need another part ---- */

/* Returns a member of an opaque part as text; absent if it is not a string. */
struct str fit_opaque_member(struct fit *f, const struct part *p, const char *key)
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

/* Is it a reference to an item that the endpoint should have kept? A view contains the whole
 * history and the endpoint keeps nothing, so the history has the item itself anyway. */
static bool is_reference(struct fit *f, const struct message *m, const struct part *p)
{
        return f->w->format == &format_responses && m->origin == f->w->format &&
               p->kind == PART_OPAQUE && str_is(fit_opaque_member(f, p, "type"), "item_reference");
}

/* Is it an approval without a request before it, or a second one? Each request has one approval. */
static bool is_stray_approval(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_responses || m->origin != f->w->format ||
            p->kind != PART_OPAQUE || !p->raw.p || !memmem(p->raw.p, p->raw.n, "mcp_approval_", 13))
                return false;
        struct str type = fit_opaque_member(f, p, "type");
        if (str_is(type, "mcp_approval_request"))
                writing_seen_in(f->w, &f->asked, fit_opaque_member(f, p, "id"));
        if (!str_is(type, "mcp_approval_response"))
                return false;
        struct str id = fit_opaque_member(f, p, "approval_request_id");
        return !writing_seen_in(f->w, &f->asked, id) || writing_seen_in(f->w, &f->approved, id);
}

/* Is it the result of a tool that Anthropic ran itself? It is in the same message, behind its
 * call. */
static bool is_server_result(struct fit *f, const struct part *p)
{
        static const char END[] = "_tool_result";
        size_t n = sizeof END - 1;
        struct str type = fit_opaque_member(f, p, "type");
        return type.n > n && memcmp(type.p + type.n - n, END, n) == 0;
}

/* Is it a part that only the assistant may have, in a message of another role? */
static bool is_misplaced(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_anthropic || m->origin != f->w->format ||
            m->role == ROLE_ASSISTANT)
                return false;
        return p->kind == PART_THINKING || p->kind == PART_REDACTED || is_server_result(f, p) ||
               str_is(fit_opaque_member(f, p, "type"), "server_tool_use");
}

/* Is it a call of the provider's own tool that the provider refuses? "server_tool_use.id: String
 * should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'", and the input must be an object, as in every
 * call. */
static bool is_bad_server_call(struct fit *f, const struct message *m, const struct part *p)
{
        if (f->w->format != &format_anthropic || m->origin != f->w->format ||
            !str_is(fit_opaque_member(f, p, "type"), "server_tool_use"))
                return false;
        struct str id = fit_opaque_member(f, p, "id");
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
        struct str id = fit_opaque_member(f, p, "tool_use_id");
        for (size_t i = 0; i < f->use_count && m->parts + f->uses[i].at < p; i++)
                if (str_eq(f->uses[i].id, id))
                        return false;
        return true;
}

/* Collects the provider's own calls once, because a message may have many results. */
static int find_server_uses(struct fit *f, const struct message *m)
{
        f->use_count = 0;
        if (f->w->format != &format_anthropic || m->origin != f->w->format)
                return 0;
        f->uses = arena_alloc(f->arena, (m->count + 1) * sizeof *f->uses);
        for (size_t i = 0; f->uses && i < m->count; i++)
                if (str_is(fit_opaque_member(f, &m->parts[i], "type"), "server_tool_use"))
                        f->uses[f->use_count++] =
                            (struct server_use){fit_opaque_member(f, &m->parts[i], "id"), i};
        return f->uses ? 0 : STENO_ENOMEM;
}

int fit_parts(struct fit *f, struct message *m, bool *touched)
{
        return fit_drop_parts(
                   f, m, touched, is_reference, "the item that it refers to is in the history") ||
               fit_drop_parts(f, m, touched, is_stray_approval, "no open request belongs to it") ||
               fit_drop_parts(f, m, touched, is_misplaced, "only the assistant may use it") ||
               fit_drop_parts(f, m, touched, is_bad_server_call,
                   "not a call that the provider can have made") ||
               find_server_uses(f, m) ||
               fit_drop_parts(f, m, touched, is_server_orphan, "its call is not before it");
}

bool fit_is_bare(struct fit *f, const struct message *m, const struct part *p)
{
        size_t i = 1;
        if (p->kind != PART_OPAQUE || m->origin != f->w->format || m->role == ROLE_NONE ||
            p->raw.n < 2 || p->raw.p[0] != '{')
                return false;
        while (i + 1 < p->raw.n && p->raw.p[i] && strchr(" \t\r\n", p->raw.p[i]))
                i++;
        return p->raw.p[i] == '}';
}

/* Is it a part of Gemini without any of the data members? */
static bool is_hollow(struct fit *f, const struct message *m, const struct part *p)
{
        static const char *const DATA[] = {"text", "inlineData", "fileData", "functionCall",
            "functionResponse", "executableCode", "codeExecutionResult"};
        struct json j;
        if (f->w->format != &format_gemini || p->kind != PART_OPAQUE || m->origin != f->w->format ||
            !p->raw.p)
                return false;
        json_init(&j);
        bool holds = false;
        if (json_parse(&j, p->raw.p, p->raw.n, NULL, NULL) == 0)
                for (size_t i = 0; i < sizeof DATA / sizeof *DATA; i++)
                        holds = holds || json_get(&j, 0, DATA[i]) != JSON_NONE;
        json_release(&j);
        return !holds;
}

/* An empty part is the only part of this message of Gemini. Views that show every message would
 * lose it, and no provider accepts it unchanged, so it becomes a text. A strict view leaves it
 * out. */
static int say_that_it_is_empty(struct fit *f, struct message *m, bool *touched)
{
        if (f->w->format != &format_gemini || f->w->strict || m->count != 1 ||
            !fit_is_bare(f, m, &m->parts[0]))
                return 0;
        if (!fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        m->parts[0] = (struct part){.kind = PART_TEXT,
            .text = token_make(STR("[A part that holds nothing]"), f->arena),
            .seq = m->parts[0].seq};
        writing_lose(f->w, m, "part", "a part without content");
        return 0;
}

int fit_types(struct fit *f, struct message *m, bool *touched)
{
        int rc = say_that_it_is_empty(f, m, touched);
        /* OpenAI's writer makes a text of such a part. */
        if (rc == 0 && f->w->format != &format_openai)
                rc = fit_drop_parts(f, m, touched, fit_is_bare, "a part without content");
        if (rc == 0)
                rc = fit_drop_parts(f, m, touched, is_empty_handed, "a part without content");
        if (rc == 0)
                rc = fit_drop_children(f, m, touched, is_empty_handed,
                    "[A part that holds nothing]", "a part without content");
        if (rc == 0)
                rc = fit_drop_children(f, m, touched, is_misplaced,
                    "[A part that only the assistant may say]", "only the assistant may use it");
        if (rc || !f->w->strict)
                return rc;
        rc = fit_drop_parts(f, m, touched, is_hollow, "a part without content");
        if (rc == 0)
                rc = fit_drop_parts(
                    f, m, touched, is_strange, "its type is not in the provider's table");
        return rc ? rc
                  : fit_drop_children(f, m, touched, is_strange,
                        "[A part that the provider does not take]",
                        "its type is not in the provider's table");
}
