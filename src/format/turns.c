/* turns.c - see turns.h */
#include "format/turns.h"

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

bool turns_is_blank(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                if (c == ' ')
                        continue;
                if (c != '\\' || i + 1 == s.n)
                        return false;
                c = s.p[++i];
                if (c != 'n' && c != 't' && c != 'r')
                        return false;
        }
        return true;
}
