/* fit.c - see fit.h: names, members, roles and cache marks, and the order of all steps. */
#include "format/fit_work.h"

#include <stdio.h>
#include <string.h>

#include "format/names.h"
#include "format/rules.h"
#include "format/sizes.h"
#include "format/writing.h"
#include "model/token.h"

/* ---- changing a message ---- */

/* Copies a message's parts, so that they can be changed. Peers then point to the copy. */
bool fit_own_parts(struct fit *f, struct message *m, bool *touched)
{
        if (*touched)
                return true;
        *touched = writing_own_parts(f->w, m, 0);
        return *touched;
}

/* Returns the extras without one of them. */
struct extra *fit_without(struct fit *f, const struct extra *list, const struct extra *one)
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

/* ---- names ---- */

static bool is_named(const struct part *p)
{
        return (p->kind == PART_CALL || p->kind == PART_RESULT) && p->name.n;
}

/* Is it a provider's own tool? It goes back to the provider under its own name. */
static bool is_own_name(const struct fit *f, const struct message *m, const struct part *p)
{
        return p->provider_run && m->origin == f->w->format;
}

/* Names that the provider accepts stay as they are, and no other tool gets one of them. */
static int take_names(struct fit *f, const struct history *h)
{
        f->w->names = arena_zalloc(f->arena, sizeof *f->w->names);
        if (!f->w->names)
                return STENO_ENOMEM;
        f->w->names->rules = f->rules;
        f->w->names->arena = f->arena;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                message_ahead(h, i);
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
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->parts[i].name = names_map(f->w->names, name);
                if (p->kind == PART_CALL)
                        writing_lose(
                            f->w, m, "name", "replaced by a name that the provider accepts");
        }
        if (m->name.p && !rules_is_name(f->rules, token_decode(m->name, f->arena, NULL))) {
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                writing_lose(f->w, m, "name", "not a name that the provider accepts");
                m->name = (struct str){0};
        }
        return f->arena->failed;
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

/* The state of a walk over the cache marks from the last to the first. The last four stay. A mark
 * of five minutes before a mark of an hour is removed. */
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
        p->extras = fit_without(f, p->extras, *x);
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
                        if (!fit_own_parts(f, m, &touched))
                                return STENO_ENOMEM;
                        writing_lose(f->w, m, "cache_control", "more than the provider accepts");
                        p.peer = m->parts[n].peer;
                        m->parts[n] = p;
                }
        }
        return f->arena->failed;
}

/* ---- all steps ---- */

/* Is the key in this list of words? Each word has spaces around it. */
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

/* Returns the list without members of a reply, or the same list if it has none. */
static struct extra *sift(struct fit *f, struct extra *list)
{
        for (struct extra *x = list; x; x = x->next)
                if (!x->inner && is_reply_extra(f, x))
                        return sift(f, fit_without(f, list, x));
        return list;
}

/* Members of a reply and Steno's own members are never sent, whoever added them. */
static int fit_members(struct fit *f, struct message *m, bool *touched)
{
        if (m->origin != f->w->format || !f->rules->reply)
                return 0;
        struct extra *list = sift(f, m->extras);
        bool id = m->id.p && rules_is_reply_member(f->rules, STR("id"));
        if ((list != m->extras || id) && !fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        m->extras = list;
        if (id)
                m->id = (struct str){0};
        for (size_t i = 0; i < m->count; i++) {
                list = sift(f, m->parts[i].extras);
                if (list == m->parts[i].extras)
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->parts[i].extras = list;
                m->parts[i].raw = (struct str){0};
        }
        return f->arena->failed;
}

/* Providers refuse a list of one empty text, so it is written as a string. */
static int fit_shape(struct fit *f, struct message *m, bool *touched)
{
        if (m->count != 1 || m->parts[0].kind != PART_TEXT || m->parts[0].text.n ||
            m->shape == SHAPE_STRING)
                return 0;
        if (!fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        writing_lose_extras(f->w, m, "content", m->parts[0].extras);
        m->parts[0].extras = NULL;
        m->parts[0].raw = (struct str){0};
        m->shape = SHAPE_STRING;
        return 0;
}

/* Only the assistant makes calls, and a tool message has only results. */
static int fit_role(struct fit *f, struct message *m, bool *touched)
{
        if (m->role == ROLE_TOOL && m->count && !message_has(m, PART_RESULT)) {
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                m->role = ROLE_USER;
                writing_lose(f->w, m, "role", "written as the user, because it is not a result");
                return 0;
        }
        if (m->role != ROLE_USER || !message_has(m, PART_CALL) || message_has(m, PART_RESULT))
                return 0;
        if (!fit_own_parts(f, m, touched))
                return STENO_ENOMEM;
        m->role = ROLE_ASSISTANT;
        writing_lose(f->w, m, "role", "written as the assistant, because it calls tools");
        return 0;
}

static struct extra *find_bad_thought(const struct part *p)
{
        struct extra *x = p->kind == PART_TEXT ? p->extras : NULL;
        while (x && (!str_is(x->key, "\"thought\"") || str_is(x->value, "false") ||
                        str_is(x->value, "true")))
                x = x->next;
        return x;
}

/* A part of Gemini's has exactly one data member, and the response of a function is an object. */
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
                bool nameless = p->kind == PART_RESULT && !p->name.p;
                bool silent = p->kind == PART_RESULT && p->output_kind == OUTPUT_NONE;
                struct extra *thought = find_bad_thought(p);
                if (!second && !bare && !nameless && !silent && !thought)
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                struct part *q = &m->parts[i];
                q->raw = (struct str){0};
                if (silent)
                        message_set_output(m, q, STR(""));
                if (thought) {
                        q->extras = fit_without(f, q->extras, thought);
                        writing_lose(f->w, m, "thought", "neither true nor false");
                        i--;
                        continue;
                }
                if (bare) {
                        bool string = q->output.p[0] == '"';
                        q->output = string ? str_span(q->output.p + 1, q->output.n - 2)
                                           : token_make(q->output, f->arena);
                        q->output_kind = OUTPUT_TEXT;
                        q->output_object = false;
                }
                if (second) {
                        m->parts[i].extras = fit_without(f, m->parts[i].extras, second);
                        writing_lose(f->w, m, "part",
                            "the provider accepts only one of these members in a part");
                        i--; /* the part may have a third member */
                }
        }
        return f->arena->failed;
}

static int fit_message(struct fit *f, struct message *m)
{
        bool touched = false;
        if (fit_role(f, m, &touched) || fit_gemini(f, m, &touched) || fit_members(f, m, &touched) ||
            fit_surrogates(f, m, &touched) || fit_origin(f, m, &touched) ||
            fit_signatures(f, m, &touched) || fit_names(f, m, &touched) ||
            fit_media(f, m, &touched) || fit_words(f, m, &touched) ||
            fit_children(f, m, &touched) || fit_outputs(f, m, &touched) ||
            fit_errors(f, m, &touched) || fit_parts(f, m, &touched) ||
            fit_empty_texts(f, m, &touched) || fit_types(f, m, &touched))
                return STENO_ENOMEM;
        return fit_shape(f, m, &touched) || f->arena->failed;
}

/* Reports all members of a message that is left out because it is empty. */
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
        bool gap = false; /* the message before this one was left out */
        for (size_t i = 0; i < h->count; i++) {
                struct message m = h->list[i];
                size_t count = m.count;
                message_ahead(h, i);
                if (fit_message(&f, &m))
                        return STENO_ENOMEM;
                bool nothing = fit_says_nothing(&f, &m);
                if (nothing)
                        lose_message(&f, &m);
                /* The second condition is an item that has no parts left. */
                bool left = nothing || (count && !m.count && m.role == ROLE_NONE);
                m.apart = m.apart || gap;
                gap = left;
                if (!left)
                        to.list[to.count++] = m;
        }
        *out = to;
        return fit_marks(&f, out) || fit_placeholders(&f, out) || sizes_fit(w, out);
}
