/* turns.c - see turns.h */
#include "format/turns.h"

#include <stdlib.h>

#include "format/rules.h"
#include "format/writing.h"

static void begin(struct turns *t, const char *role, const struct message *m)
{
        if (t->role || !t->w->valid || role == t->user)
                return;
        writing_lose(t->w, m, "message", "a turn of the user was put before it");
        turns_block(t, t->user, m);
        t->say(t, "[The conversation begins with the assistant.]");
        turns_close(t);
}

void turns_block(struct turns *t, const char *role, const struct message *m)
{
        if (t->open && t->role == role)
                return;
        turns_close(t);
        if (role != t->user)
                begin(t, role, m);
        jsonw_object(&t->w->json);
        writing_text(t->w, "role", role);
        jsonw_key(&t->w->json, t->content);
        jsonw_array(&t->w->json);
        t->role = role;
        t->open = true;
}

void turns_close(struct turns *t)
{
        if (!t->open)
                return;
        jsonw_array_end(&t->w->json);
        jsonw_object_end(&t->w->json);
        t->open = false;
}

void turns_copy(struct turns *t, const char *role, const struct message *m)
{
        turns_close(t);
        begin(t, role, m);
        jsonw_raw(&t->w->json, m->raw);
        t->role = role;
}

/* The length of the character at s[i], an escape being one; *blank: it is white space or a control
 * character. */
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
