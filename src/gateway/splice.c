/*
 * splice.c - see splice.h
 */
#include "gateway/splice.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "gateway/owncalls.h"

void splice_init(struct splice *p)
{
        *p = (struct splice){0};
        buf_init(&p->body, 0);
}

void splice_release(struct splice *p)
{
        buf_release(&p->body);
        steno_stubs_free(p->stubs);
}

/* A request while its edits are collected. */
struct making {
        struct splice *p;
        const struct splice_options *opt;
        struct json j;
        json_ref list; /* of messages; JSON_NONE: not an array */
        struct json_edits edits;
        struct arena arena; /* of what is put in */
};

static void add_edit(struct making *m, size_t off, size_t len, struct str with)
{
        struct str copy = arena_dup(&m->arena, with);
        if (!copy.p && with.n)
                m->edits.failed = STENO_ENOMEM;
        json_edit_span(&m->edits, off, len, copy);
}

static size_t offset_of(const struct making *m, struct str span)
{
        return (size_t)(span.p - m->j.text);
}

/* Before the closing bracket of an array. */
static void add_elements(struct making *m, json_ref array, struct str elements)
{
        struct str raw = json_raw(&m->j, array);
        struct buf b;
        buf_init(&b, 0);
        if (json_count(&m->j, array))
                buf_putc(&b, ',');
        buf_put_str(&b, elements);
        if (b.failed)
                m->edits.failed = b.failed;
        add_edit(m, offset_of(m, raw) + raw.n - 1, 0, buf_str(&b));
        buf_release(&b);
}

/* ---- stubs ---- */

struct placing {
        struct making *m;
        size_t from; /* where the list begins */
};

static int put_stub(void *ctx, size_t at, size_t n, const char *with, size_t with_n)
{
        struct placing *p = ctx;
        add_edit(p->m, p->from + at, n, str_span(with, with_n));
        return p->m->edits.failed;
}

static int make_stubs(struct making *m, struct steno_error *err)
{
        struct str list = json_raw(&m->j, m->list);
        struct placing at = {m, offset_of(m, list)};
        struct steno_stubs_options opt = {.size = sizeof opt,
            .max_inline_chars = m->opt->max_chars,
            .max_inline_bytes = m->opt->max_bytes,
            .context_tools = m->p->offered};
        return steno_stubs_new(
            m->opt->wire->format, list.p, list.n, &opt, put_stub, &at, &m->p->stubs, err);
}

/* ---- the tools ---- */

static bool is_wire(const struct making *m, const char *name)
{
        return strcmp(m->opt->wire->name, name) == 0;
}

/* "auto", or nothing is said. */
static bool may_choose(const struct making *m)
{
        const struct json *j = &m->j;
        json_ref choice = json_get(j, 0, "tool_choice");
        if (is_wire(m, "gemini")) {
                json_ref config = json_get(j, 0, "toolConfig");
                config = json_get(j, config, "functionCallingConfig");
                json_ref mode = json_get(j, config, "mode");
                return json_type(j, mode) != JSON_STRING || json_is(j, mode, "AUTO") ||
                       json_is(j, mode, "VALIDATED") || json_is(j, mode, "MODE_UNSPECIFIED");
        }
        if (json_type(j, choice) == JSON_OBJECT && is_wire(m, "anthropic"))
                return json_is(j, json_get(j, choice, "type"), "auto");
        return json_type(j, choice) == JSON_NOTHING || json_type(j, choice) == JSON_NULL ||
               json_is(j, choice, "auto");
}

static bool wants_several(const struct making *m)
{
        int64_t n = 1;
        json_i64(&m->j, json_get(&m->j, 0, "n"), &n);
        json_ref config = json_get(&m->j, 0, "generationConfig");
        json_i64(&m->j, json_get(&m->j, config, "candidateCount"), &n);
        return n > 1;
}

/* Is one of our names in the list of tools, at any depth that tools have? */
static bool is_taken(const struct json *j, json_ref tools)
{
        for (json_ref t = json_child(j, tools); t != JSON_NONE; t = json_next(j, tools, t)) {
                if (owncalls_is_name(j, json_get(j, t, "name")) ||
                    owncalls_is_name(j, json_get(j, json_get(j, t, "function"), "name")) ||
                    owncalls_is_name(j, json_get(j, json_get(j, t, "custom"), "name")) ||
                    is_taken(j, json_get(j, t, "functionDeclarations")) ||
                    (json_type(j, json_get(j, t, "tools")) == JSON_ARRAY &&
                        is_taken(j, json_get(j, t, "tools"))))
                        return true;
        }
        return false;
}

/* Where the context tools go; JSON_NONE: they are left out. */
static json_ref find_tools(const struct making *m)
{
        const struct json *j = &m->j;
        json_ref tools = json_get(j, 0, "tools"), last = JSON_NONE;
        if (json_type(j, tools) != JSON_ARRAY || json_count(j, tools) == 0 || !may_choose(m) ||
            wants_several(m) || is_taken(j, tools))
                return JSON_NONE;
        if (!is_wire(m, "gemini"))
                return tools;
        for (json_ref t = json_child(j, tools); t != JSON_NONE; t = json_next(j, tools, t)) {
                json_ref own = json_get(j, t, "functionDeclarations");
                if (json_type(j, own) == JSON_ARRAY && json_count(j, own))
                        last = own;
        }
        return last;
}

/* One tool from its definition for chat completions. */
static void put_tool(const struct making *m, struct buf *out, const struct json *j, json_ref tool)
{
        json_ref f = json_get(j, tool, "function");
        bool gemini = is_wire(m, "gemini"), blocks = is_wire(m, "anthropic");
        if (is_wire(m, "chat")) {
                buf_put_str(out, json_raw(j, tool));
                return;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (!gemini && !blocks)
                jsonw_field_cstr(&w, "type", "function");
        jsonw_field_copy(&w, "name", j, json_get(j, f, "name"));
        jsonw_field_copy(&w, "description", j, json_get(j, f, "description"));
        jsonw_field_copy(&w,
            gemini   ? "parametersJsonSchema"
            : blocks ? "input_schema"
                     : "parameters",
            j, json_get(j, f, "parameters"));
        if (!gemini && !blocks)
                jsonw_field_bool(&w, "strict", false); /* not every member is required */
        jsonw_object_end(&w);
}

static int offer_tools(struct making *m, struct steno_error *err)
{
        struct json j;
        struct buf text;
        char *json = NULL;
        json_ref at = find_tools(m);
        if (at == JSON_NONE)
                return 0;
        json_init(&j);
        buf_init(&text, 0);
        int rc = steno_context_tools("openai", &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        for (json_ref t = rc ? JSON_NONE : json_child(&j, 0); t != JSON_NONE;
             t = json_next(&j, 0, t)) {
                if (text.n)
                        buf_putc(&text, ',');
                put_tool(m, &text, &j, t);
        }
        if (rc == 0)
                rc = buf_check(&text, err);
        if (rc == 0) {
                add_elements(m, at, buf_str(&text));
                m->p->offered = true;
        }
        buf_release(&text);
        json_release(&j);
        steno_free(json);
        return rc;
}

/* ---- seams ---- */

/* Puts elements at the beginning of the array in which a message holds its results. */
static bool put_lead(struct making *m, json_ref message, struct str lead)
{
        const struct json *j = &m->j;
        json_ref array = json_get(j, message, is_wire(m, "gemini") ? "parts" : "content");
        if (message == JSON_NONE || json_type(j, array) != JSON_ARRAY || !json_count(j, array))
                return false;
        struct buf b;
        buf_init(&b, 0);
        buf_put_str(&b, lead);
        buf_putc(&b, ',');
        if (b.failed)
                m->edits.failed = b.failed;
        add_edit(m, offset_of(m, json_raw(j, array)) + 1, 0, buf_str(&b));
        buf_release(&b);
        return true;
}

/* Edits that lie inside of what is replaced as a whole are not made. */
static void drop_edits(struct making *m, size_t off, size_t len)
{
        size_t n = 0;
        for (size_t i = 0; i < m->edits.count; i++) {
                const struct json_edit *e = &m->edits.list[i];
                if (e->off < off || e->off >= off + len)
                        m->edits.list[n++] = *e;
        }
        m->edits.count = n;
}

struct place {
        json_ref message;
        size_t at;
};

/* The messages from `first` to `last` are a reply as the client saw it: puts the original reply in
 * their place. */
static void put_seam(
    struct making *m, json_ref first, json_ref last, json_ref next, const struct seam *seam)
{
        struct str a = json_raw(&m->j, first), b = json_raw(&m->j, last);
        size_t off = offset_of(m, a), len = offset_of(m, b) + b.n - off;
        if (seam->lead.n && !put_lead(m, next, buf_str(&seam->lead)))
                return; /* its results have no place any more */
        drop_edits(m, off, len);
        add_edit(m, off, len, buf_str(&seam->messages));
}

/* A reply of the history for which there may be a seam. */
struct wanted {
        struct str chain;
        size_t at; /* which message */
        struct seam seam;
        bool there;
};

struct search {
        struct wanted *list; /* by their chains */
        size_t count;
};

static int compare_wanted(const void *a, const void *b)
{
        const struct wanted *x = a, *y = b;
        size_t n = x->chain.n < y->chain.n ? x->chain.n : y->chain.n;
        int d = n ? memcmp(x->chain.p, y->chain.p, n) : 0;
        return d ? d : (x->chain.n > y->chain.n) - (x->chain.n < y->chain.n);
}

static void take_seam(
    void *ctx, struct str after, struct str before, struct str messages, struct str lead)
{
        struct search *s = ctx;
        struct wanted key = {.chain = after};
        struct wanted *w = bsearch(&key, s->list, s->count, sizeof key, compare_wanted);
        if (!w)
                return;
        buf_clear(&w->seam.messages);
        buf_clear(&w->seam.lead);
        snprintf(w->seam.before, sizeof w->seam.before, "%.*s", (int)before.n, before.p);
        buf_put_str(&w->seam.messages, messages);
        buf_put_str(&w->seam.lead, lead);
        w->there = !w->seam.messages.failed && !w->seam.lead.failed;
}

static int by_place(const void *a, const void *b)
{
        const struct wanted *x = a, *y = b;
        return (x->at > y->at) - (x->at < y->at);
}

/* Asks for all replies at once; the list is in their order then. */
static int find_seams(
    struct making *m, const struct elements_link *links, size_t n, struct search *out)
{
        struct str *chains = calloc(n + 1, sizeof *chains);
        out->list = calloc(n + 1, sizeof *out->list);
        if (!chains || !out->list) {
                free(chains);
                return STENO_ENOMEM;
        }
        for (size_t i = 0; i < n; i++) {
                if (!links[i].assistant || strcmp(i ? links[i - 1].chain : "", links[i].chain) == 0)
                        continue;
                struct wanted *w = &out->list[out->count++];
                w->chain = str_of(links[i].chain);
                w->at = i;
                seam_init(&w->seam);
        }
        qsort(out->list, out->count, sizeof *out->list, compare_wanted);
        for (size_t i = 0; i < out->count; i++)
                chains[i] = out->list[i].chain;
        seams_find_all(m->opt->seams, m->opt->owner, chains, out->count, take_seam, out);
        qsort(out->list, out->count, sizeof *out->list, by_place);
        free(chains);
        return 0;
}

static void search_release(struct search *s)
{
        for (size_t i = 0; s->list && i < s->count; i++)
                seam_release(&s->list[i].seam);
        free(s->list);
}

/* The reply that ends with message w->at, in the place that it had then. */
static void place_seam(struct making *m, const struct elements_link *links, const json_ref *refs,
    size_t n, const struct wanted *w)
{
        size_t from = 0;
        while (from < w->at && (links[from].system ||
                                   strcmp(from ? links[from - 1].chain : "", w->seam.before) != 0))
                from++;
        if (strcmp(from ? links[from - 1].chain : "", w->seam.before) == 0)
                put_seam(m, refs[from], refs[w->at], w->at + 1 < n ? refs[w->at + 1] : JSON_NONE,
                    &w->seam);
}

static int put_seams(struct making *m, struct steno_error *err)
{
        const struct json *j = &m->j;
        char system[ELEMENTS_CHAIN];
        struct json list;
        struct search found = {0};
        struct elements_link *links = NULL;
        json_ref *refs = NULL;
        json_init(&list);
        size_t count = json_count(j, m->list), n = 0;
        struct str raw = json_raw(j, m->list);
        int rc = json_parse(&list, raw.p, raw.n, NULL, err);
        if (rc == 0) {
                links = elements_of(m->opt->wire, &list, (struct str){0}, "", NULL, NULL, system);
                refs = calloc(count + 1, sizeof *refs);
                rc = links && refs ? 0 : error_nomem(err);
        }
        for (json_ref e = rc ? JSON_NONE : json_child(j, m->list); e != JSON_NONE;
             e = json_next(j, m->list, e))
                refs[n++] = e;
        if (rc == 0 && find_seams(m, links, n, &found))
                rc = error_nomem(err);
        for (size_t i = 0; rc == 0 && i < found.count; i++)
                if (found.list[i].there)
                        place_seam(m, links, refs, n, &found.list[i]);
        if (rc == 0 && n)
                memcpy(m->p->chain, links[n - 1].chain, sizeof m->p->chain);
        search_release(&found);
        free(links);
        free(refs);
        json_release(&list);
        return rc;
}

/* The endpoint knows the last answer of a turn under another id than the client. */
static void follow_id(struct making *m)
{
        json_ref id = json_get(&m->j, 0, "previous_response_id");
        struct seam seam;
        struct buf token;
        if (json_type(&m->j, id) != JSON_STRING)
                return;
        seam_init(&seam);
        buf_init(&token, 0);
        if (seams_find(m->opt->seams, m->opt->owner, json_inner(&m->j, id), &seam)) {
                struct str raw = json_raw(&m->j, id), list = json_raw(&m->j, m->list);
                json_put_string(&token, buf_str(&seam.messages));
                add_edit(m, offset_of(m, raw), raw.n, buf_str(&token));
                if (seam.lead.n && json_count(&m->j, m->list))
                        buf_putc(&seam.lead, ',');
                if (seam.lead.n)
                        add_edit(m, offset_of(m, list) + 1, 0, buf_str(&seam.lead));
        }
        buf_release(&token);
        seam_release(&seam);
}

/* ---- all of it ---- */

/* Finds the list again in what is sent. */
static int find_end(struct splice *p, const struct wire *wire, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, p->body.p, p->body.n, NULL, err);
        if (rc == 0) {
                json_ref list = json_get(&j, 0, wire->list);
                struct str raw = json_raw(&j, list);
                p->end = (size_t)(raw.p - j.text) + raw.n - 1;
                p->empty = json_count(&j, list) == 0;
        }
        json_release(&j);
        return rc;
}

/* A text instead of a list: one message of the user's. */
static void list_string(struct making *m, json_ref text)
{
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "[{\"role\":\"user\",\"content\":");
        buf_put_str(&b, json_raw(&m->j, text));
        buf_puts(&b, "}]");
        if (b.failed)
                m->edits.failed = b.failed;
        struct str raw = json_raw(&m->j, text);
        add_edit(m, offset_of(m, raw), raw.n, buf_str(&b));
        buf_release(&b);
}

static int edit_request(struct making *m, struct steno_error *err)
{
        json_ref list = json_get(&m->j, 0, m->opt->wire->list);
        bool array = json_type(&m->j, list) == JSON_ARRAY;
        int rc = 0;
        m->list = array ? list : JSON_NONE;
        if (!array && json_type(&m->j, list) != JSON_STRING)
                return 0;
        if (m->opt->tools)
                rc = offer_tools(m, err);
        if (rc == 0 && array)
                rc = make_stubs(m, err);
        else if (rc == 0)
                rc = steno_stubs_new(
                    m->opt->wire->format, "[]", 2, NULL, put_stub, NULL, &m->p->stubs, err);
        if (rc || !m->p->offered)
                return rc;
        if (!array) {
                list_string(m, list);
                return 0;
        }
        rc = put_seams(m, err);
        if (rc == 0 && is_wire(m, "responses"))
                follow_id(m);
        return rc;
}

/* The chain of a request whose history is one text. */
static int chain_string(struct making *m, struct steno_error *err)
{
        struct json j;
        struct buf text;
        char system[ELEMENTS_CHAIN];
        struct elements_link *links = NULL;
        json_init(&j);
        buf_init(&text, 0);
        wire_messages(m->opt->wire, &m->j, &text);
        int rc = buf_check(&text, err);
        if (rc == 0)
                rc = json_parse(&j, text.p, text.n, NULL, err);
        if (rc == 0)
                links = elements_of(m->opt->wire, &j, (struct str){0}, "", NULL, NULL, system);
        if (links)
                memcpy(m->p->chain, links[0].chain, sizeof m->p->chain);
        else if (rc == 0)
                rc = error_nomem(err);
        free(links);
        buf_release(&text);
        json_release(&j);
        return rc;
}

int splice_make(
    struct splice *p, const struct splice_options *opt, struct str request, struct steno_error *err)
{
        struct making m = {.p = p, .opt = opt, .list = JSON_NONE};
        json_init(&m.j);
        json_edits_init(&m.edits);
        arena_init(&m.arena);
        int rc = json_parse(&m.j, request.p, request.n, NULL, NULL);
        if (rc == 0) {
                rc = edit_request(&m, err);
                if (rc == 0 && p->offered && m.list == JSON_NONE)
                        rc = chain_string(&m, err);
                if (rc == 0 && (rc = json_edits_apply(&m.edits, &m.j, 0, &p->body)) != 0)
                        error_set(err, rc, "the request could not be edited");
                if (rc == 0 && p->offered)
                        rc = find_end(p, opt->wire, err);
        } else { /* nothing that is understood */
                buf_put_str(&p->body, request);
                rc = buf_check(&p->body, err);
        }
        arena_release(&m.arena);
        json_edits_release(&m.edits);
        json_release(&m.j);
        return rc;
}

int splice_go_on(struct splice *p, struct str messages, struct steno_error *err)
{
        struct buf next;
        buf_init(&next, 0);
        buf_put(&next, p->body.p, p->end);
        if (!p->empty)
                buf_putc(&next, ',');
        buf_put_str(&next, messages);
        size_t end = next.n;
        buf_put(&next, p->body.p + p->end, p->body.n - p->end);
        int rc = buf_check(&next, err);
        if (rc) {
                buf_release(&next);
                return rc;
        }
        buf_release(&p->body);
        p->body = next;
        p->end = end;
        p->empty = false;
        return 0;
}

/* ---- the last round ---- */

static bool is_own_tool(const struct json *j, json_ref tool)
{
        return owncalls_is_name(j, json_get(j, tool, "name")) ||
               owncalls_is_name(j, json_get(j, json_get(j, tool, "function"), "name"));
}

/* Our tools come after the client's, which has at least one: everything from the first of ours to
 * the bracket is removed, with the comma before it. */
static void remove_own(const struct json *j, json_ref tools, struct json_edits *edits)
{
        struct str all = json_raw(j, tools), before = {0};
        for (json_ref t = json_child(j, tools); t != JSON_NONE; t = json_next(j, tools, t)) {
                if (before.n && is_own_tool(j, t)) {
                        size_t from = (size_t)(before.p + before.n - j->text);
                        size_t to = (size_t)(all.p + all.n - 1 - j->text);
                        json_edit_span(edits, from, to - from, STR(""));
                        return;
                }
                before = json_raw(j, t);
        }
}

int splice_withdraw(struct splice *p, const struct wire *wire, struct steno_error *err)
{
        struct json j;
        struct json_edits edits;
        struct buf next;
        json_init(&j);
        json_edits_init(&edits);
        buf_init(&next, 0);
        int rc = json_parse(&j, p->body.p, p->body.n, NULL, err);
        json_ref tools = rc ? JSON_NONE : json_get(&j, 0, "tools");
        if (rc == 0)
                remove_own(&j, tools, &edits);
        for (json_ref t = rc ? JSON_NONE : json_child(&j, tools); t != JSON_NONE;
             t = json_next(&j, tools, t))
                remove_own(&j, json_get(&j, t, "functionDeclarations"), &edits);
        if (rc == 0 && (rc = json_edits_apply(&edits, &j, 0, &next)) != 0)
                error_set(err, rc, "the request could not be edited");
        json_edits_release(&edits);
        json_release(&j);
        if (rc) {
                buf_release(&next);
                return rc;
        }
        buf_release(&p->body);
        p->body = next;
        return find_end(p, wire, err);
}
