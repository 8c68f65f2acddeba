/* api_search_query.c - reading a query; see api_search_query.h */
#include "api/api_search_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "output/finder.h"

static int refuse(struct api_search_query *q, const char *why, struct str what)
{
        return error_set(
            q->err, STENO_EINVAL, "%s: %.*s", why, (int)(what.n < 100 ? what.n : 100), what.p);
}

static int add_term(struct api_search_query *q, struct str text, bool without, bool prefix)
{
        struct words w = words_of(text);
        struct word word;
        if (q->count == API_SEARCH_TERMS_MAX)
                return refuse(q, "too many words in a query", text);
        struct api_search_term *t = &q->terms[q->count];
        *t = (struct api_search_term){.without = without, .prefix = prefix};
        while (words_next(&w, &word)) {
                if (!word.n)
                        return refuse(q, "this is longer than any word that is indexed", text);
                if (t->count == API_SEARCH_PHRASE_MAX)
                        return refuse(q, "a phrase has too many words", text);
                t->words[t->count++] = word;
        }
        q->count += t->count > 0;
        return 0;
}

static int set_time(struct api_search_query *q, struct str value, int64_t *to)
{
        char text[40];
        int64_t ms;
        if (value.n == 10 && value.n + 10 < sizeof text) {
                snprintf(text, sizeof text, "%.*sT00:00:00Z", (int)value.n, value.p);
                value = str_of(text);
        }
        if (!time_parse(value.p, value.n, &ms))
                return refuse(q, "not a date such as 2026-11-15", value);
        *to = ms;
        return 0;
}

static int set_text(struct api_search_query *q, struct str value, char **to, const char **ask)
{
        free(*to);
        *to = strndup(value.p, value.n);
        *ask = *to;
        return *to ? 0 : error_nomem(q->err);
}

/* 1: it is a filter and was taken; 0: it is none. */
static int take_filter(struct api_search_query *q, struct str token)
{
        static const struct {
                const char *name;
                int role;
        } ROLES[] = {{"user", SEARCH_USER}, {"assistant", SEARCH_ASSISTANT}, {"tool", SEARCH_TOOL},
            {"system", SEARCH_SYSTEM}, {"developer", SEARCH_SYSTEM}};
        const char *colon = memchr(token.p, ':', token.n);
        if (!colon || colon == token.p || colon == token.p + token.n - 1)
                return 0;
        struct str key = str_span(token.p, (size_t)(colon - token.p));
        struct str value = str_span(colon + 1, token.n - key.n - 1);
        int rc = 0;
        if (str_is(key, "role")) {
                for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
                        if (str_is(value, ROLES[i].name))
                                q->ask.role = ROLES[i].role;
                rc = q->ask.role ? 0 : refuse(q, "there is no role", value);
        } else if (str_is(key, "is") && str_is(value, "error")) {
                q->ask.error = true;
        } else if (str_is(key, "in") && str_is(value, "output")) {
                q->only_outputs = true;
        } else if (str_is(key, "tool")) {
                rc = set_text(q, value, &q->tool, &q->ask.tool);
        } else if (str_is(key, "model")) {
                rc = set_text(q, value, &q->model, &q->ask.model);
        } else if (str_is(key, "project")) {
                rc = set_text(q, value, &q->project, &q->ask.project);
        } else if (str_is(key, "conversation")) {
                rc = set_text(q, value, &q->conversation, &q->ask.conversation);
        } else if (str_is(key, "after")) {
                rc = set_time(q, value, &q->ask.after);
        } else if (str_is(key, "before")) {
                rc = set_time(q, value, &q->ask.before);
        } else {
                return 0;
        }
        return rc ? rc : 1;
}

static int take_expression(struct api_search_query *q, struct str text)
{
        struct grep_mode mode = {.utf8 = false, .case_sensitive = false};
        if (q->expression)
                return refuse(q, "a query has one expression", text);
        return grep_pcre2()->compile(text, &mode, &q->expression, q->err);
}

/* The token that begins at *at: up to a space, or to the end of a quote or an expression. */
static int take_token(struct api_search_query *q, struct str s, size_t *at)
{
        size_t i = *at;
        bool without = s.p[i] == '-' && i + 1 < s.n && s.p[i + 1] != ' ';
        i += without;
        char quote = s.p[i] == '"' || s.p[i] == '/' ? s.p[i] : 0;
        const char *end = quote ? memchr(s.p + i + 1, quote, s.n - i - 1) : NULL;
        while (quote == '/' && end && end[-1] == '\\')
                end = memchr(end + 1, quote, (size_t)(s.p + s.n - end) - 1);
        if (quote && end) {
                struct str inside = str_span(s.p + i + 1, (size_t)(end - s.p) - i - 1);
                *at = (size_t)(end - s.p) + 1;
                return quote == '/' ? take_expression(q, inside)
                                    : add_term(q, inside, without, false);
        }
        size_t from = i;
        while (i < s.n && s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\n')
                i++;
        *at = i;
        struct str token = str_span(s.p + from, i - from);
        int rc = without ? 0 : take_filter(q, token);
        if (rc)
                return rc < 0 ? rc : 0;
        bool prefix = token.n > 1 && token.p[token.n - 1] == '*';
        return add_term(q, token, without, prefix);
}

static bool is_ascii(const struct word *w)
{
        for (size_t i = 0; i < w->n; i++)
                if ((unsigned char)w->folded[i] >= 0x80)
                        return false;
        return true;
}

/* Where every term is one word of ASCII, which is how most people search, none of the text has to
 * be split but what is around a match: nothing else becomes ASCII when it is compared. */
static int make_finders(struct api_search_query *q)
{
        for (size_t i = 0; i < q->count; i++)
                if (q->terms[i].count != 1 || !is_ascii(&q->terms[i].words[0]))
                        return 0;
        if (!q->count)
                return 0;
        q->finders = malloc(q->count * sizeof *q->finders);
        if (!q->finders)
                return error_nomem(q->err);
        for (size_t i = 0; i < q->count; i++) {
                const struct word *w = &q->terms[i].words[0];
                struct str literal = str_span(w->folded, w->n);
                finder_init(&q->finders[i], &literal, 1, true);
        }
        return 0;
}

int api_search_query_parse(struct api_search_query *q, struct str text)
{
        int rc = 0;
        for (size_t at = 0; rc == 0 && at < text.n;) {
                if (strchr(" \t\n", text.p[at]))
                        at++;
                else
                        rc = take_token(q, text, &at);
        }
        for (size_t i = 0; rc == 0 && i < q->count; i++) {
                const struct api_search_term *t = &q->terms[i];
                for (size_t k = 0; !t->without && k < t->count; k++) {
                        if (q->match.n)
                                buf_puts(&q->match, " AND ");
                        buf_putc(&q->match, '"');
                        buf_put(&q->match, t->words[k].folded, t->words[k].n);
                        buf_putc(&q->match, '"');
                        if (t->prefix && k + 1 == t->count)
                                buf_putc(&q->match, '*');
                }
        }
        if (rc == 0)
                rc = make_finders(q);
        if (rc == 0 && q->match.n) {
                q->ask.match = buf_cstr(&q->match);
                rc = q->ask.match ? 0 : error_nomem(q->err);
        }
        if (rc == 0 && !q->count && !q->expression && !q->ask.role && !q->ask.tool &&
            !q->ask.model && !q->ask.error && !q->only_outputs && !q->conversation &&
            q->ask.after == INT64_MIN && q->ask.before == INT64_MIN)
                rc = error_set(q->err, STENO_EINVAL, "there is no word in the query");
        return rc;
}

void api_search_query_release(struct api_search_query *q)
{
        buf_release(&q->match);
        grep_pcre2()->free(q->expression);
        free(q->finders);
        free(q->project);
        free(q->conversation);
        free(q->tool);
        free(q->model);
}
