/*
 * fit_texts.c - texts that a provider refuses: halves of surrogate pairs, and empty texts
 * (fit_work.h).
 */
#include "format/fit_work.h"

#include <string.h>

#include "format/rules.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"

/* ---- halves of surrogate pairs ---- */

static bool may_have_lone(struct str s)
{
        return s.n >= 6 && rules_has_lone(s);
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

static bool is_inside(struct str s, struct str whole)
{
        return s.p >= whole.p && s.p + s.n <= whole.p + whole.n;
}

/* Checks the strings of a part, except `seen`, which was checked before. A call and its result may
 * have been read from the same value, and most strings point into the value that they were read
 * from. */
static bool part_has_lone(const struct part *p, struct str seen)
{
        const struct str inner[] = {p->text, p->output, p->arguments, p->output_raw};
        if (!is_inside(p->raw, seen) && may_have_lone(p->raw))
                return true;
        for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
                if (!is_inside(inner[i], p->raw) && may_have_lone(inner[i]))
                        return true;
        for (size_t i = 0; i < p->child_count; i++)
                if (part_has_lone(&p->children[i], p->raw))
                        return true;
        return false;
}

static bool has_lone(const struct message *m)
{
        if (m->raw.p && m->origin != &format_legacy) /* in legacy, calls are inside of texts */
                return may_have_lone(m->raw);
        for (size_t i = 0; i < m->count; i++)
                if (part_has_lone(&m->parts[i], i ? m->parts[i - 1].raw : (struct str){0}))
                        return true;
        return false;
}

int fit_surrogates(struct fit *f, struct message *m, bool *touched)
{
        if (!has_lone(m))
                return 0;
        if (!fit_own_parts(f, m, touched))
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

/* ---- texts in parts of the wrong type ---- */

static bool is_miscast(
    const struct fit *f, const struct message *m, const struct part *p, bool in_result)
{
        bool openai = f->w->format == &format_openai;
        bool responses = f->w->format == &format_responses;
        if (p->kind == PART_REFUSAL)
                return (openai || responses) && (in_result || m->role != ROLE_ASSISTANT);
        if (p->kind != PART_TEXT || m->origin != f->w->format)
                return false;
        return openai ? p->foreign
                      : responses && in_result && p->raw.p &&
                            memmem(p->raw.p, p->raw.n, "\"output_text\"", 13);
}

static void recast(struct fit *f, const struct message *m, struct part *p)
{
        if (p->kind == PART_REFUSAL)
                writing_lose(
                    f->w, m, "refusal", "written as a text, because the assistant did not say it");
        writing_lose_extras(f->w, m, "content", p->extras);
        p->kind = PART_TEXT;
        p->extras = NULL;
        p->raw = (struct str){0};
}

static int recast_children(struct fit *f, struct message *m, size_t at, bool *touched)
{
        size_t i = 0, n = m->parts[at].child_count;
        while (i < n && !is_miscast(f, m, &m->parts[at].children[i], true))
                i++;
        if (i == n)
                return 0;
        struct part *children = arena_alloc(f->arena, n * sizeof *children);
        if (!children || !fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        struct part *p = &m->parts[at];
        memcpy(children, p->children, n * sizeof *children);
        p->children = children;
        p->raw = p->output_raw = (struct str){0};
        for (; i < n; i++)
                if (is_miscast(f, m, &children[i], true))
                        recast(f, m, &children[i]);
        return 0;
}

int fit_words(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                if (m->parts[i].kind == PART_RESULT && recast_children(f, m, i, touched))
                        return STENO_ENOMEM;
                if (!is_miscast(f, m, &m->parts[i], false))
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                recast(f, m, &m->parts[i]);
        }
        return 0;
}

/* ---- empty texts ---- */

static bool is_nothing(struct fit *f, const struct message *m, const struct part *p)
{
        if (p->kind != PART_TEXT || p->text.n || f->left < 2)
                return false;
        /* In some formats a single empty text beside calls means no text; writers leave it out. */
        return m->shape == SHAPE_ARRAY || !message_has(m, PART_CALL) || f->texts > 1;
}

int fit_empty_texts(struct fit *f, struct message *m, bool *touched)
{
        return fit_drop_parts(
            f, m, touched, is_nothing, "an empty text, which the provider refuses");
}

static bool is_empty_child(struct fit *f, const struct message *m, const struct part *p)
{
        (void)f, (void)m;
        return p->kind == PART_TEXT && !p->text.n;
}

int fit_children(struct fit *f, struct message *m, bool *touched)
{
        return fit_drop_children(f, m, touched, is_empty_child, "",
                   "an empty text, which the provider refuses") ||
               fit_drop_children(f, m, touched, fit_is_bare, "", "a part without content");
}

/* Anthropic refuses an error without content. */
int fit_errors(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; f->rules->error_says && i < m->count; i++) {
                struct part *p = &m->parts[i];
                bool empty = p->output_kind == OUTPUT_NONE ||
                             (p->output_kind == OUTPUT_TEXT && !p->output.n) ||
                             (p->output_kind == OUTPUT_DATA && str_is(p->output, "null")) ||
                             (p->output_kind == OUTPUT_PARTS && !p->child_count);
                if (p->kind != PART_RESULT || !p->error || !empty)
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                message_set_output(m, &m->parts[i], STR("[The tool failed and said nothing.]"));
                writing_lose(f->w, m, "content", "empty, which the provider refuses in an error");
        }
        return 0;
}

/* Is the output a list of parts, none of which the format knows? */
static bool is_foreign(const struct fit *f, const struct message *m, const struct part *p)
{
        for (size_t i = 0; i < p->child_count; i++)
                if (p->children[i].kind != PART_OPAQUE || m->origin == f->w->format)
                        return false;
        return f->w->format == &format_responses && p->output_kind == OUTPUT_PARTS &&
               p->child_count;
}

/* Does the output have a type that the provider does not accept? This is checked for messages of
 * the provider's own format only. All providers accept a text or a list; Anthropic also accepts no
 * output and an empty list. */
static bool is_mistyped(const struct fit *f, const struct message *m, const struct part *p)
{
        bool functions = p->call == CALL_FUNCTION || p->call == CALL_CUSTOM;
        if (m->origin != f->w->format)
                return false;
        if (f->w->format == &format_anthropic)
                return p->output_kind == OUTPUT_DATA;
        return f->w->format == &format_responses && functions &&
               (p->output_kind == OUTPUT_NONE || p->output_kind == OUTPUT_DATA ||
                   (p->output_kind == OUTPUT_PARTS && !p->child_count));
}

int fit_outputs(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                bool foreign = is_foreign(f, m, p);
                bool data = p->output_kind == OUTPUT_DATA && !str_is(p->output, "null");
                if (p->kind != PART_RESULT || (!foreign && !is_mistyped(f, m, p)))
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                for (size_t k = 0; foreign && k < p->child_count; k++)
                        writing_lose_part(f->w, m, &p->children[k]);
                message_set_output(m, p,
                    foreign ? STR("[A part that the provider does not take]")
                    : data  ? token_make(p->output, f->arena)
                            : STR(""));
                writing_lose(f->w, m, "content", "written as a text");
        }
        return f->arena->failed;
}

bool fit_says_nothing(const struct fit *f, const struct message *m)
{
        if (m->role == ROLE_TOOL && !m->count)
                return true;
        if (m->role != ROLE_ASSISTANT || !f->w->format || f->w->format == &format_anthropic ||
            f->w->format == &format_gemini)
                return false; /* their writers leave out empty turns (turns.h) */
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
