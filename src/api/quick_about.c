/* quick_about.c - see quick_about.h */
#include "api/quick_about.h"

#include <string.h>

#include "base/scan.h"
#include "format/format.h"

static inline __attribute__((always_inline)) bool eat(struct str *s, const char *lit, size_t n)
{
        if (s->n < n || memcmp(s->p, lit, n) != 0)
                return false;
        s->p += n;
        s->n -= n;
        return true;
}
#define EAT(s, lit) eat(s, lit, sizeof(lit) - 1)

static bool eat_number(struct str *s, uint64_t *out)
{
        size_t n = 0;
        uint64_t v = 0;
        while (n < s->n && n < 19 && s->p[n] >= '0' && s->p[n] <= '9')
                v = v * 10 + (uint64_t)(s->p[n++] - '0');
        *out = v;
        s->p += n;
        s->n -= n;
        return n > 0;
}

static bool eat_string(struct str *s, struct str *out)
{
        if (!EAT(s, "\""))
                return false;
        const char *q = scan_plain_string(s->p, s->p + s->n);
        bool plain = q;
        if (!q)
                q = memchr(s->p, '"', s->n);
        if (!q || (!plain && memchr(s->p, '\\', (size_t)(q - s->p))))
                return false;
        *out = str_span(s->p, (size_t)(q - s->p));
        s->n -= (size_t)(q + 1 - s->p);
        s->p = q + 1;
        return true;
}

static bool eat_list(
    struct quick_about *q, struct str *s, size_t *used, struct str **list, size_t *count)
{
        *list = &q->ids[*used];
        do {
                if (*used == QUICK_IDS || !eat_string(s, &q->ids[*used]))
                        return false;
                ++*used, ++*count;
        } while (EAT(s, ","));
        return EAT(s, "]");
}

/* `x` from behind its length, without its end. */
static bool read_form(struct quick_about *q, struct str x, struct about *out)
{
        size_t used = 0;
        uint64_t rule = 0;
        *out = (struct about){.brief = true};
        if (EAT(&x, "\"plain\":") && !(eat_number(&x, &rule) && EAT(&x, ",")))
                return false;
        out->plain = rule == FORMAT_READY_RULE ? FORMAT_READY_RULE : 0;
        if (!EAT(&x, "\"role\":") || !eat_string(&x, &out->role))
                return false;
        if (EAT(&x, ",\"calls\":[") && !eat_list(q, &x, &used, &out->calls, &out->call_count))
                return false;
        if (EAT(&x, ",\"answers\":[") && !eat_list(q, &x, &used, &out->answers, &out->answer_count))
                return false;
        if (EAT(&x, ",\"own\":true"))
                out->own_fields = true;
        return x.n == 0;
}

/* Cuts off the end of `x`: its bracket, and the salt before it, which is another in each record and
 * is nothing that a view shows. */
static bool cut_end(struct str *x)
{
        static const char MEMBER[] = ",\"salt\":\"";
        const size_t name = sizeof MEMBER - 1, hex = 2 * (size_t)ABOUT_SALT, all = name + hex + 1;
        if (!x->n || x->p[x->n - 1] != '}')
                return false;
        x->n--;
        if (x->n < all)
                return true;
        const char *at = x->p + x->n - all;
        if (memcmp(at, MEMBER, name) == 0 && memchr(at + name, '"', hex + 1) == at + name + hex)
                x->n -= all;
        return true;
}

/* The copy of the text is what the role in the about points into. */
static void remember(struct quick_about *q, struct str form)
{
        struct quick_form *f = &q->forms[q->next++ % QUICK_FORMS];
        memcpy(f->text, form.p, form.n);
        f->n = read_form(q, str_span(f->text, form.n), &f->about) ? form.n : 0;
}

void quick_about_init(struct quick_about *q)
{
        q->next = 0;
        for (int i = 0; i < QUICK_FORMS; i++)
                q->forms[i].n = 0;
}

const struct about *quick_about_read(struct quick_about *q, struct str x)
{
        uint64_t length;
        if (!EAT(&x, "{") || (EAT(&x, "\"len\":") && !(eat_number(&x, &length) && EAT(&x, ","))) ||
            !cut_end(&x))
                return NULL;
        for (int i = 0; i < QUICK_FORMS; i++)
                if (q->forms[i].n == x.n && memcmp(q->forms[i].text, x.p, x.n) == 0)
                        return &q->forms[i].about;
        if (!read_form(q, x, &q->about))
                return NULL;
        if (x.n <= QUICK_FORM_MAX && !q->about.call_count && !q->about.answer_count)
                remember(q, x);
        return &q->about;
}
