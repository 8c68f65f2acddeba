/*
 * fit_secrets.c - thinking, signatures and opaque members (fit_work.h): they are sent back only to
 * the endpoint that made them.
 */
#include "format/fit_work.h"

#include <string.h>

#include "format/rules.h"
#include "format/writing.h"
#include "model/token.h"
#include "model/via.h"

/* Thinking and signatures are useful only to the endpoint that made them. */
static bool is_secret(struct fit *f, const struct message *m, const struct part *p)
{
        if (p->kind == PART_THINKING || p->kind == PART_REDACTED)
                return true;
        if (p->kind != PART_OPAQUE || !p->raw.p || m->origin != f->w->format)
                return false;
        return memmem(p->raw.p, p->raw.n, "\"encrypted_content\"", 19) ||
               str_is(fit_opaque_member(f, p, "type"), "reasoning");
}

/* Returns the type in the table for the object that has the extra; NULL: all extras stay. */
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

/* Is it a member that no API has, or one of Gemini's signatures? */
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
                        return without_opaque(f, type, fit_without(f, list, x));
        return list;
}

int fit_origin(struct fit *f, struct message *m, bool *touched)
{
        static const char why[] = "only the endpoint that made it can read it";
        bool own = m->origin == f->w->format;
        if (!via_is_foreign(m->via, f->w->via))
                return 0;
        if (fit_drop_parts(f, m, touched, is_secret, why))
                return STENO_ENOMEM;
        struct extra *rest = own ? without_opaque(f, type_of(f, NULL), m->extras) : m->extras;
        if (rest != m->extras) {
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->extras = rest;
                writing_lose(f->w, m, "message", why);
        }
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                rest = own ? without_opaque(f, type_of(f, p), p->extras) : p->extras;
                if (!p->signature.p && rest == p->extras)
                        continue;
                if (!fit_own_parts(f, m, touched))
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

/* Gemini decodes the signature: one of another provider is not base64. */
int fit_signatures(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; f->w->format == &format_gemini && i < m->count; i++) {
                struct part *p = &m->parts[i];
                const struct extra *x = find_signature(p);
                struct str told =
                    x && x->value.n >= 2 ? str_span(x->value.p + 1, x->value.n - 2) : p->signature;
                if (!told.p || is_signature(token_decode(told, f->arena, NULL)))
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                p->signature = p->raw = (struct str){0};
                if (x)
                        p->extras = fit_without(f, p->extras, x);
                writing_lose(f->w, m, "signature", "not a signature of this provider");
        }
        return f->arena->failed;
}

/* ---- calls that need a signature for Gemini 3 ---- */

static bool is_gemini_3(const struct fit *f)
{
        struct str model = via_model(f->w->via);
        return f->w->format == &format_gemini && memmem(model.p, model.n, "gemini-3", 8);
}

/* Returns the place behind the last text of the user. The current turn begins there. */
static size_t current_turn(const struct history *h)
{
        size_t i = h->count;
        while (i > 0 && h->list[i - 1].role != ROLE_USER)
                i--;
        return i;
}

/* The first call of each message must have a signature. For calls of the current turn that came
 * from another provider, Google's documentation of thought signatures gives this value:
 * "thoughtSignature": "skip_thought_signature_validator". */
int fit_placeholders(struct fit *f, struct history *h)
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
                writing_lose(f->w, m, "signature",
                    "there is none, so the provider is asked not to check it");
        }
        return 0;
}
