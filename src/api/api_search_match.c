/*
 * api_search_match.c - does a text have what a query asks for, and where? See api_search_query.h.
 */
#include "api/api_search_query.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "output/finder.h"

static bool same_word(const struct word *have, const struct word *want, bool prefix)
{
        return (prefix ? have->n >= want->n : have->n == want->n) &&
               memcmp(have->folded, want->folded, want->n) == 0;
}

static int split_text(struct api_search_split *s, struct str text)
{
        struct words w = words_of(text);
        struct word word;
        s->count = 0;
        while (words_next(&w, &word)) {
                if (!grow_room(s->list, s->count, s->cap))
                        return STENO_ENOMEM;
                s->list[s->count++] = word;
        }
        return 0;
}

/* Where a term occurs at or behind word `from`; SIZE_MAX: nowhere. */
static size_t find_term(
    const struct api_search_split *s, const struct api_search_term *t, size_t from)
{
        for (size_t i = from; i + t->count <= s->count; i++) {
                size_t k = 0;
                while (k < t->count &&
                       same_word(&s->list[i + k], &t->words[k], t->prefix && k + 1 == t->count))
                        k++;
                if (k == t->count)
                        return i;
        }
        return SIZE_MAX;
}

static void add_span(struct api_search_matched *m, size_t from, size_t end)
{
        if (m->count < API_SEARCH_MATCHES_MAX)
                m->spans[m->count++] = (struct api_search_span){from, end};
}

static int by_place(const void *a, const void *b)
{
        const struct api_search_span *x = a, *y = b;
        return x->from < y->from ? -1 : x->from > y->from;
}

/* The first occurrence of term `i` at or behind `from`, as splitting all of the text would find it:
 * a byte of ASCII that is in no word always stands between two. */
static bool find_directly(
    const struct api_search_query *q, size_t i, struct str text, size_t from, struct word *out)
{
        const struct api_search_term *t = &q->terms[i];
        for (;;) {
                size_t at = finder_next(&q->finders[i], text.p, text.n, from, NULL);
                if (at >= text.n)
                        return false;
                struct words w = {text, at};
                while (w.at > from && !words_is_gap(text.p[w.at - 1]))
                        w.at--;
                while (words_next(&w, out) && out->end <= at)
                        ;
                if (out->from == at && same_word(out, &t->words[0], t->prefix))
                        return true;
                from = out->end;
        }
}

/* 1: it has all terms; 0: it has not. */
static int match_directly(
    const struct api_search_query *q, struct str text, struct api_search_matched *m)
{
        for (size_t i = 0; i < q->count; i++) {
                struct word word;
                bool found = find_directly(q, i, text, 0, &word);
                if (found == q->terms[i].without)
                        return 0;
                for (int k = 0; k < 3 && found; k++) {
                        add_span(m, word.from, word.end);
                        found = find_directly(q, i, text, word.end, &word);
                }
        }
        return 1;
}

/* The same for terms of any kind. */
static int match_split(const struct api_search_query *q, struct api_search_split *s,
    struct str text, struct api_search_matched *m)
{
        if (q->count && split_text(s, text))
                return STENO_ENOMEM;
        for (size_t i = 0; i < q->count; i++) {
                const struct api_search_term *t = &q->terms[i];
                size_t at = find_term(s, t, 0);
                if (t->without ? at != SIZE_MAX : at == SIZE_MAX)
                        return 0;
                for (int k = 0; k < 3 && !t->without && at != SIZE_MAX; k++) {
                        add_span(m, s->list[at].from, s->list[at + t->count - 1].end);
                        at = find_term(s, t, at + 1);
                }
        }
        return 1;
}

/* 1: the text has everything that the query asks for; 0: it has not. */
int api_search_match(struct api_search_query *q, struct api_search_split *s, struct str text,
    struct api_search_matched *m)
{
        *m = (struct api_search_matched){.together = true};
        int rc = q->finders ? match_directly(q, text, m) : match_split(q, s, text, m);
        if (rc != 1)
                return rc;
        if (q->expression) {
                struct grep_subject subject = {
                    .p = text.p, .n = text.n, .stop = text.n + 1, .effort = GREP_HARD};
                size_t from, end;
                rc = grep_pcre2()->next(q->expression, &subject, &from, &end, NULL);
                if (rc <= 0)
                        return rc == STENO_ENOMEM ? rc : 0;
                add_span(m, from, end);
        }
        if (m->count)
                qsort(m->spans, m->count, sizeof *m->spans, by_place);
        return 1;
}
