/* turns.c - see turns.h */
#include "format/turns.h"

#include <stdlib.h>

#include "format/rules.h"
#include "format/writing.h"

struct turns {
        struct writer *w;
        const struct turns_style *style;
        const char *role; /* the role of the turn that was written last; NULL: none yet */
        bool open;
};

const char *turns_role(const struct turns_style *style, const struct message *m)
{
        return m->role == ROLE_ASSISTANT ? style->model : style->user;
}

bool turns_has_words(
    const struct turns_style *style, const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (style->is_writable(w, m, &m->parts[i]))
                        return true;
        return false;
}

/* ---- one turn ---- */

static void close_turn(struct turns *t)
{
        if (!t->open)
                return;
        jsonw_array_end(&t->w->json);
        jsonw_object_end(&t->w->json);
        t->open = false;
}

static void open_turn(struct turns *t, const char *role)
{
        jsonw_object(&t->w->json);
        writing_text(t->w, "role", role);
        jsonw_key(&t->w->json, t->style->content);
        jsonw_array(&t->w->json);
        t->role = role;
        t->open = true;
}

/* If the first turn is not the user's, inserts one. The report names the message `m`. */
static void begin(struct turns *t, const char *role, const struct message *m)
{
        if (t->role || !t->w->valid || role == t->style->user)
                return;
        writing_lose(t->w, m, "message", "a turn of the user was put before it");
        open_turn(t, t->style->user);
        t->style->say(t->w, "[The conversation begins with the assistant.]");
        close_turn(t);
}

/* Opens a turn of this role, unless it is open already. */
static void need_turn(struct turns *t, const char *role, const struct message *m)
{
        if (t->open && t->role == role)
                return;
        close_turn(t);
        begin(t, role, m);
        open_turn(t, role);
}

/* Writes a whole message unchanged. */
static void copy(struct turns *t, const char *role, const struct message *m)
{
        close_turn(t);
        begin(t, role, m);
        jsonw_raw(&t->w->json, m->raw);
        t->role = role;
}

/* ---- messages ---- */

enum which { ALL, RESULTS, OTHERS };

static void write_parts(struct turns *t, const struct message *m, enum which which)
{
        struct writer *w = t->w;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (which != ALL && (p->kind == PART_RESULT) != (which == RESULTS))
                        continue;
                if (t->style->is_writable(w, m, p)) {
                        need_turn(t, turns_role(t->style, m), m);
                        t->style->write_part(w, m, p);
                } else if (p->kind == PART_TEXT && p->text.n == 0 && message_has(m, PART_CALL)) {
                        continue; /* other formats write "" beside calls if there is no text */
                } else if (p->kind == PART_TEXT) {
                        writing_lose(w, m, "content", "blank text, which the format refuses");
                        writing_lose_extras(w, m, "content", p->extras);
                } else {
                        writing_lose_part(w, m, p);
                }
        }
}

static void write_message(struct turns *t, const struct message *m)
{
        struct writer *w = t->w;
        bool joined =
            t->open && t->role == turns_role(t->style, m) && turns_has_words(t->style, w, m);
        if (t->style->results_first && w->valid) {
                write_parts(t, m, RESULTS);
                write_parts(t, m, OTHERS);
        } else {
                write_parts(t, m, ALL);
        }
        if (joined && m->role != ROLE_TOOL)
                writing_lose(w, m, "message", "joined with the one before it");
        if (!m->count)
                writing_lose(w, m, "content", "empty, which the format refuses");
        if (m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER)
                writing_lose(w, m, "role", "written as user");
        writing_lose_members(w, m, NULL);
        writing_lose_extras(w, m, "", m->extras);
}

/* Does the next message that has content continue the same turn? */
static bool goes_on(const struct turns *t, const struct history *h, size_t i)
{
        for (size_t k = i + 1; k < h->count; k++)
                if (turns_has_words(t->style, t->w, &h->list[k]))
                        return turns_role(t->style, &h->list[k]) ==
                               turns_role(t->style, &h->list[i]);
        return false;
}

/* Can the message be copied? It must be a turn that the provider accepts, and no neighbour may
 * belong to the same turn. */
static bool is_copied(const struct turns *t, const struct history *h, size_t i)
{
        const struct message *m = &h->list[i];
        const struct writer *w = t->w;
        if (!m->raw.p || !writing_own(w, m) || w->rebuild)
                return false;
        return !w->valid || (t->style->is_clean(w, m) && t->role != turns_role(t->style, m) &&
                                !goes_on(t, h, i));
}

int turns_write(struct writer *w, const struct history *h, const struct turns_style *style)
{
        struct turns t = {.w = w, .style = style};
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                message_ahead(h, i);
                if (is_copied(&t, h, i)) {
                        copy(&t, turns_role(style, m), m);
                } else if (!w->valid && writing_own(w, m)) {
                        style->write_alone(w, m);
                } else {
                        if (!w->valid)
                                close_turn(&t);
                        write_message(&t, m);
                }
        }
        close_turn(&t);
        return 0;
}

/* ---- white space ---- */

/* Returns the length of the character at s[i]; an escape counts as one character. *blank: it is
 * white space or a control character. */
static size_t next_char(struct str s, size_t i, bool *blank)
{
        if (s.p[i] != '\\' || i + 1 == s.n)
                return rules_next(s, i, blank);
        char c = s.p[i + 1];
        if (c != 'u' || s.n - i < 6) {
                *blank = c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f';
                return 2;
        }
        char hex[5] = {s.p[i + 2], s.p[i + 3], s.p[i + 4], s.p[i + 5], '\0'};
        *blank = rules_is_space((uint32_t)strtoul(hex, NULL, 16));
        return 6;
}

size_t turns_trimmed(struct str s)
{
        size_t end = 0;
        for (size_t i = 0; i < s.n;) {
                bool blank;
                i += next_char(s, i, &blank);
                if (!blank)
                        end = i;
        }
        return end;
}

bool turns_is_blank(struct str s)
{
        bool blank = true;
        for (size_t i = 0; i < s.n && blank;)
                i += next_char(s, i, &blank);
        return blank;
}
