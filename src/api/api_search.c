/*
 * api_search.c - asking: holding what the index proposes against the files, and the answer.
 *
 * A candidate is a block of a message or of an output. Its text is read from there and split into
 * words again. Phrases, excluded words and expressions, which the index cannot know, are decided
 * here, and so are the place and the snippet.
 */
#include "api/api_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_search_query.h"
#include "api/api_search_source.h"
#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "output/lines.h"
#include "store/backend.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 200
#define CATCH_UP_MS 2000
#define EXPRESSION_MS 1500 /* that one page may take where every block has to be read */
#define SNIPPET 160        /* bytes around the first match */
#define ITEM_ROOM 512      /* that most hits need, written */

/* ---- hits ---- */

struct item {
        char *json;
        bool together;
        bool output;
        bool more; /* it is found again in the same message or output */
        size_t order;
};

struct answer {
        struct steno_store *store;
        struct api_search_query *q;
        struct api_search_split split;
        struct api_search_text text;
        struct api_search_source source; /* the conversation of the last hit */
        struct item *items;
        size_t count;
        uint32_t limit;
        uint64_t last_place;
        int64_t deadline;
        bool partial;
        bool full;
        /* what the last hit was about, so that overlapping blocks are one */
        char last_conv[ID_MAX + 2];
        uint64_t last_seq;
        char last_ref[48];
        uint64_t last_at;       /* where its block begins */
        uint64_t in_part;       /* outputs that are not indexed whole */
        uint64_t in_part_place; /* rows of them that were looked at */
        struct steno_error *err;
};

/* The record of a hit. */
struct looked {
        struct answer *a;
        char id[ID_MAX + 1];
        char at[TIME_TEXT];
        bool found;
};

static int look_at(void *ctx, const struct steno_record *r)
{
        struct looked *l = ctx;
        const char *target = steno_record_target(r);
        snprintf(l->id, sizeof l->id, "%s", *target ? target : steno_record_id(r));
        snprintf(l->at, sizeof l->at, "%s", steno_record_at(r));
        int rc = api_search_read(r, &l->a->text, l->a->err);
        l->found = l->a->text.message;
        return rc ? rc : 1;
}

/* The text that the block was made from. 1: it is in a->text.text; 0: it is no longer there. */
static int read_block(struct answer *a, const struct search_hit *h, struct looked *l)
{
        struct buf *b = &a->text.text;
        int rc = api_search_source_record(&a->source, h->seq, look_at, l, NULL);
        if (rc < 0)
                return rc == STENO_ENOMEM ? error_nomem(a->err) : 0;
        if (!l->found || api_search_source_hides(&a->source, l->id, h->seq))
                return 0;
        if (!*h->ref) {
                if (h->at >= b->n)
                        return h->len == 0;
                buf_drop_front(b, (size_t)h->at);
                b->n = b->n < h->len ? b->n : (size_t)h->len;
                return 1;
        }
        if (api_search_source_output(&a->source, h->ref))
                return 0;
        buf_clear(b);
        char *p = buf_reserve(b, (size_t)h->len + 1);
        ssize_t got =
            p ? backend_reader_read(a->source.reader, h->at, p, (size_t)h->len, NULL) : -1;
        if (got <= 0)
                return 0;
        b->n = (size_t)got;
        return 1;
}

/* The line, from 1, of byte `at` of what the hit is about. */
static uint64_t line_of(struct answer *a, const struct search_hit *h, size_t in_block)
{
        uint64_t before = 0;
        if (*h->ref && h->at)
                before = api_search_source_feeds(&a->source, h->at);
        else if (h->at) { /* a long message: read it again */
                struct api_search_text block = a->text;
                struct looked l = {.a = a};
                buf_init(&a->text.text, 0);
                api_search_source_record(&a->source, h->seq, look_at, &l, NULL);
                size_t n = a->text.text.n < h->at ? a->text.text.n : (size_t)h->at;
                before = lines_count(a->text.text.p, n);
                buf_release(&a->text.text);
                a->text = block;
        }
        return 1 + before + lines_count(a->text.text.p, in_block);
}

/* The tool that the match is about: the only one of the message, or that in whose call it stands.
 */
static void tool_at(struct answer *a, const struct search_hit *h, const char *tools,
    size_t in_block, char out[sizeof a->text.tools])
{
        bool several = strchr(tools, '\n');
        snprintf(out, sizeof a->text.tools, "%s", several ? "" : tools);
        if (!several || *h->ref)
                return;
        struct api_search_text block = a->text;
        struct looked l = {.a = a};
        buf_init(&a->text.text, 0);
        a->text.want = (size_t)h->at + in_block;
        api_search_source_record(&a->source, h->seq, look_at, &l, NULL);
        snprintf(out, sizeof a->text.tools, "%s", a->text.here);
        buf_release(&a->text.text);
        a->text = block;
}

/* All of them, where there are several. */
static void put_tools(struct jsonw *w, const char *tools)
{
        if (!strchr(tools, '\n'))
                return;
        jsonw_key(w, "tools");
        jsonw_array(w);
        for (const char *p = tools; *p; p += *p == '\n') {
                size_t n = strcspn(p, "\n");
                jsonw_str(w, str_span(p, n));
                p += n;
        }
        jsonw_array_end(w);
}

/* Around the first match: within its line where that is short, never in the middle of a character.
 */
static struct api_search_span snippet_of(struct str text, const struct api_search_matched *m)
{
        size_t first = m->count ? m->spans[0].from : 0;
        size_t last = m->count ? m->spans[0].end : 0;
        size_t from = first, end = last;
        while (from > 0 && text.p[from - 1] != '\n' && first - from < SNIPPET / 3)
                from--;
        while (end < text.n && text.p[end] != '\n' && end - from < SNIPPET)
                end++;
        while (from < first && ((unsigned char)text.p[from] & 0xC0) == 0x80)
                from++;
        while (end > last && end < text.n && ((unsigned char)text.p[end] & 0xC0) == 0x80)
                end--;
        return (struct api_search_span){from, end};
}

static bool on_one_line(struct str text, const struct api_search_matched *m)
{
        if (!m->count)
                return true;
        size_t from = m->spans[0].from, end = m->spans[0].end;
        while (from > 0 && text.p[from - 1] != '\n')
                from--;
        while (end < text.n && text.p[end] != '\n')
                end++;
        for (size_t i = 1; i < m->count; i++)
                if (m->spans[i].from < from || m->spans[i].end > end)
                        return false;
        return true;
}

/* How many matches make a hit: one of each term, and of the expression. */
static size_t needed(const struct api_search_query *q)
{
        size_t n = q->expression ? 1 : 0;
        for (size_t i = 0; i < q->count; i++)
                n += !q->terms[i].without;
        return n;
}

/* At most SNIPPET bytes of a line, in whole characters. */
static struct str beginning(struct str line)
{
        size_t n = line.n < SNIPPET ? line.n : text_floor(line.p, line.n, SNIPPET);
        return str_span(line.p, n);
}

/* The line that the block's byte `at` stands in, as far as the block has it. */
static struct api_search_span line_around(struct str text, size_t at)
{
        const char *nl = memrchr(text.p, '\n', at);
        const char *end = memchr(text.p + at, '\n', text.n - at);
        return (struct api_search_span){
            nl ? (size_t)(nl - text.p) + 1 : 0, end ? (size_t)(end - text.p) : text.n};
}

/* Where in the output a line of a block begins: a block may begin in the middle of one. */
static bool begin_of_line(struct answer *a, const struct search_hit *h, struct api_search_span here,
    uint64_t line, uint64_t *begin)
{
        *begin = h->at + here.from;
        return here.from || !h->at || api_search_source_line(&a->source, line, begin);
}

/* Where in its line of an output a match is, in bytes from 1, and the lines above and below it. */
static void put_place(struct jsonw *w, struct answer *a, const struct search_hit *h,
    struct str text, size_t first, uint64_t line)
{
        struct api_search_span here = line_around(text, first);
        uint64_t begin;
        if (begin_of_line(a, h, here, line, &begin))
                jsonw_field_u64(w, "column", h->at + first - begin + 1);
        if (here.from) {
                struct api_search_span above = line_around(text, here.from - 1);
                if (begin_of_line(a, h, above, line - 1, &begin) && begin == h->at + above.from)
                        jsonw_field_str(w, "before",
                            beginning(str_span(text.p + above.from, above.end - above.from)));
        }
        if (here.end + 1 < text.n) {
                struct api_search_span below = line_around(text, here.end + 1);
                jsonw_field_str(
                    w, "after", beginning(str_span(text.p + below.from, below.end - below.from)));
        }
}

static int put_item(struct answer *a, const struct search_hit *h, const struct looked *l,
    const struct api_search_matched *m)
{
        struct str text = buf_str(&a->text.text);
        struct api_search_span s = snippet_of(text, m);
        struct buf b;
        char role[16], tools[sizeof a->text.tools], tool[sizeof a->text.tools];
        size_t first = m->count ? m->spans[0].from : 0;
        snprintf(role, sizeof role, "%s", a->text.role);
        snprintf(tools, sizeof tools, "%s", *h->tools ? h->tools : a->text.tools);
        tool_at(a, h, tools, first, tool);
        uint64_t line = line_of(a, h, first);
        text = buf_str(&a->text.text);
        buf_init(&b, 0);
        buf_reserve(&b, ITEM_ROOM);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", h->project);
        jsonw_field_cstr(&w, "conversation", h->id);
        jsonw_field_u64(&w, "seq", h->seq);
        jsonw_field_cstr(&w, "id", l->id);
        jsonw_field_cstr(&w, "role", role);
        jsonw_field_cstr(&w, "at", l->at);
        if (tool[0])
                jsonw_field_cstr(&w, "tool", tool);
        put_tools(&w, tools);
        if (h->error)
                jsonw_field_bool(&w, "error", true);
        jsonw_field_u64(&w, "line", line);
        if (*h->ref) {
                jsonw_field_cstr(&w, "ref", h->ref);
                put_place(&w, a, h, text, first, line);
        }
        jsonw_field_u64(&w, "offset", h->at + first);
        jsonw_field_str(&w, "snippet", str_span(text.p + s.from, s.end - s.from));
        jsonw_key(&w, "matches");
        jsonw_array(&w);
        for (size_t i = 0; i < m->count; i++) {
                if (m->spans[i].from < s.from || m->spans[i].end > s.end)
                        continue;
                jsonw_array(&w);
                jsonw_u64(&w, m->spans[i].from - s.from);
                jsonw_u64(&w, m->spans[i].end - s.from);
                jsonw_array_end(&w);
        }
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        char *json = buf_take(&b, NULL);
        buf_release(&b);
        if (!json)
                return error_nomem(a->err);
        a->items[a->count] = (struct item){
            json, on_one_line(text, m), *h->ref != '\0', m->count > needed(a->q), a->count};
        a->count++;
        return 0;
}

/* Reads the block of a hit and matches it. 1: it has what the query asks for; 0: it has not, or
 * cannot be read any more. */
static int match_block(
    struct answer *a, const struct search_hit *h, struct looked *l, struct api_search_matched *m)
{
        if (api_search_source_open(&a->source, h->project, h->id))
                return 0;
        int rc = read_block(a, h, l);
        if (rc == 1)
                rc = api_search_match(a->q, &a->split, buf_str(&a->text.text), m);
        return rc == STENO_ENOMEM ? error_nomem(a->err) : rc;
}

/* A further block of what the last hit is about. Blocks overlap, so that only a match before that
 * block is another one. */
static int look_for_more(struct answer *a, const struct search_hit *h)
{
        struct item *last = &a->items[a->count - 1];
        struct looked l = {.a = a};
        struct api_search_matched m;
        if (last->more || h->at >= a->last_at)
                return 0;
        int rc = match_block(a, h, &l, &m);
        last->more = rc == 1 && (!m.count || h->at + m.spans[0].from < a->last_at);
        return rc < 0 ? rc : 0;
}

static int take_hit(void *ctx, const struct search_hit *h)
{
        struct answer *a = ctx;
        struct looked l = {.a = a};
        struct api_search_matched m;
        if (a->count && a->last_seq == h->seq && strcmp(a->last_conv, h->id) == 0 &&
            strcmp(a->last_ref, h->ref) == 0) {
                a->last_place = h->place;
                return look_for_more(a, h);
        }
        if (a->count == a->limit) {
                a->full = true;
                return 1;
        }
        if (!a->q->ask.match && time_monotonic_ms() > a->deadline) {
                a->partial = a->full = true;
                return 1;
        }
        a->last_place = h->place;
        int rc = match_block(a, h, &l, &m);
        if (rc != 1)
                return rc < 0 ? rc : 0;
        a->last_seq = h->seq;
        a->last_at = h->at;
        snprintf(a->last_conv, sizeof a->last_conv, "%s", h->id);
        snprintf(a->last_ref, sizeof a->last_ref, "%s", h->ref);
        return put_item(a, h, &l, &m);
}

/* ---- the answer ---- */

static int by_rank(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        if (x->together != y->together)
                return x->together ? -1 : 1;
        if (x->output != y->output)
                return x->output ? 1 : -1;
        return x->order < y->order ? -1 : x->order > y->order;
}

/* A cursor is "m" or "o" (messages, outputs) and the place in hex. */
static int read_cursor(const char *cursor, bool *outputs, uint64_t *below, struct steno_error *err)
{
        char *end;
        *below = UINT64_MAX;
        if (!cursor || !*cursor)
                return 0;
        *outputs = cursor[0] == 'o';
        *below = strtoull(cursor + 1, &end, 16);
        if ((cursor[0] != 'm' && cursor[0] != 'o') || !cursor[1] || *end)
                return error_set(err, STENO_EINVAL, "this is not a cursor of a search");
        return 0;
}

static int ask_all(struct answer *a, bool *outputs, uint64_t below)
{
        struct api_search_query *q = a->q;
        int rc = 0;
        *outputs = *outputs || q->only_outputs;
        for (;;) {
                q->ask.outputs = *outputs;
                q->ask.below = below;
                rc = backend_search_each(a->store->backend, &q->ask, take_hit, a, a->err);
                if (rc || *outputs)
                        break;
                *outputs = true;
                below = UINT64_MAX;
        }
        return rc == 1 ? 0 : rc;
}

/* Whether there is more is known only when the item is written. */
static void put_answer_item(struct jsonw *w, const struct item *i)
{
        if (i->more)
                i->json[strlen(i->json) - 1] = '\0';
        jsonw_raw(w, str_of(i->json));
        if (i->more)
                buf_puts(w->b, ",\"more\":true}");
}

/* ---- what is not indexed whole ---- */

#define IN_PART_LOOKS 1000

static int count_in_part(void *ctx, const struct search_hit *h)
{
        struct answer *a = ctx;
        if (a->in_part_place++ == IN_PART_LOOKS)
                return 1;
        bool same = strcmp(a->last_conv, h->id) == 0 && strcmp(a->last_ref, h->ref) == 0;
        if (same || api_search_source_open(&a->source, h->project, h->id) ||
            api_search_source_output(&a->source, h->ref))
                return 0;
        a->in_part++;
        snprintf(a->last_conv, sizeof a->last_conv, "%s", h->id);
        snprintf(a->last_ref, sizeof a->last_ref, "%s", h->ref);
        return 0;
}

/* Counts the outputs that the question is about and of which the middle was not looked at. */
static int ask_in_part(struct answer *a)
{
        struct search_ask ask = a->q->ask;
        ask.match = "\"" API_SEARCH_IN_PART "\"";
        ask.outputs = true;
        ask.below = UINT64_MAX;
        a->last_conv[0] = a->last_ref[0] = '\0';
        int rc = backend_search_each(a->store->backend, &ask, count_in_part, a, a->err);
        return rc < 0 ? rc : 0;
}

/* ---- all of it ---- */

static int write_answer(struct answer *a, bool outputs, uint64_t missing, char **json)
{
        struct buf b;
        buf_init(&b, 0);
        if (a->count)
                qsort(a->items, a->count, sizeof *a->items, by_rank);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        for (size_t i = 0; i < a->count; i++)
                put_answer_item(&w, &a->items[i]);
        jsonw_array_end(&w);
        if (a->full) {
                char cursor[24];
                snprintf(cursor, sizeof cursor, "%c%llx", outputs ? 'o' : 'm',
                    (unsigned long long)a->last_place);
                jsonw_field_cstr(&w, "next_cursor", cursor);
        }
        if (a->partial)
                jsonw_field_bool(&w, "partial", true);
        else if (a->in_part)
                jsonw_field_u64(&w, "partial", a->in_part);
        jsonw_field_u64(&w, "missing", missing);
        if (missing && __atomic_load_n(&a->store->index_denied, __ATOMIC_RELAXED))
                jsonw_field_bool(&w, "denied", true);
        jsonw_object_end(&w);
        *json = buf_take(&b, NULL);
        buf_release(&b);
        return *json ? 0 : error_nomem(a->err);
}

static void release(struct answer *a)
{
        for (size_t i = 0; i < a->count; i++)
                free(a->items[i].json);
        free(a->items);
        free(a->split.list);
        buf_release(&a->text.text);
        api_search_source_release(&a->source);
}

int steno_search(struct steno_store *store, const struct steno_search_options *opt, char **json,
    struct steno_error *err)
{
        struct steno_error why = {0};
        struct api_search_query q = {.err = &why, .ask = {.after = INT64_MIN, .before = INT64_MIN}};
        struct answer a = {.store = store, .q = &q, .source.store = store, .err = &why};
        uint64_t below = UINT64_MAX, missing = __atomic_load_n(&store->unindexed, __ATOMIC_RELAXED);
        bool outputs = false;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        const char *text = OPTION(opt, struct steno_search_options, query, NULL);
        const char *cursor = OPTION(opt, struct steno_search_options, cursor, NULL);
        const char *conversation = OPTION(opt, struct steno_search_options, conversation, NULL);
        int ms = OPTION(opt, struct steno_search_options, catch_up_ms, 0);
        q.ask.project = OPTION(opt, struct steno_search_options, project, NULL);
        a.limit = OPTION(opt, struct steno_search_options, limit, 0);
        a.limit = a.limit == 0 ? LIMIT_DEFAULT : a.limit > LIMIT_MAX ? LIMIT_MAX : a.limit;
        const char *project = q.ask.project;
        buf_init(&q.match, 0);
        buf_init(&a.text.text, 0);
        a.items = calloc(a.limit, sizeof *a.items);
        rc = a.items ? api_search_query_parse(&q, str_of(text ? text : "")) : error_nomem(&why);
        if (rc == 0 && project && q.project && strcmp(project, q.project) != 0)
                rc = error_set(&why, STENO_EINVAL, "project: names another project than this one");
        if (rc == 0 && conversation && q.conversation && strcmp(conversation, q.conversation) != 0)
                rc = error_set(
                    &why, STENO_EINVAL, "conversation: names another conversation than this one");
        if (conversation)
                q.ask.conversation = conversation;
        if (rc == 0)
                rc = read_cursor(cursor, &outputs, &below, &why);
        /* Before the first catch-up of this handle it is not known how many conversations are not
         * indexed. */
        if (rc == 0 && ms < 0 && !__atomic_load_n(&store->surveyed, __ATOMIC_RELAXED))
                rc = steno_search_index(store, 0, &missing, &why);
        if (rc == 0 && ms >= 0)
                rc = steno_search_index(store, ms ? ms : CATCH_UP_MS, &missing, &why);
        a.deadline = time_monotonic_ms() + EXPRESSION_MS;
        if (rc == 0)
                rc = ask_all(&a, &outputs, below);
        if (rc == 0)
                rc = ask_in_part(&a);
        if (rc == 0)
                rc = write_answer(&a, outputs, missing, json);
        release(&a);
        api_search_query_release(&q);
        if (rc && err)
                *err = why;
        return rc;
}
