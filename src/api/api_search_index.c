/*
 * api_search_index.c - updates the index of words from the files.
 *
 * The list of conversations (store/index) and the progress in the shards show what is missing. The
 * work is done in pieces, and the lock is held for one piece only, so that a purge never waits for
 * long.
 */
#include "api/api_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/words.h"
#include "format/format.h"
#include "model/token.h"
#include "store/backend.h"

#define PIECE_BYTES (2 * MIB)  /* of text in one transaction */
#define CALLS_BYTES (64 * KIB) /* of ids and names of calls that are remembered */

/* ---- the text of a record ---- */

static void put_line(struct buf *b, struct str s)
{
        if (!s.n)
                return;
        if (b->n)
                buf_putc(b, '\n');
        buf_put_str(b, s);
}

static void put_decoded(struct buf *b, struct str string, struct arena *arena)
{
        if (string.n)
                put_line(b, token_decode(string, arena, NULL));
}

static void put_parts(
    struct api_search_text *t, const struct part *list, size_t count, struct arena *arena);

static void learn_call(struct buf *calls, struct str id, struct str name)
{
        if (calls && id.n && name.n && !memchr(id.p, 0, id.n) && !memchr(name.p, 0, name.n)) {
                buf_put_str(calls, id);
                buf_putc(calls, '\0');
                buf_put_str(calls, name);
                buf_putc(calls, '\0');
        }
}

/* The name of the last call with this id, or "". */
static struct str call_name(const struct buf *calls, struct str id)
{
        struct str name = STR("");
        for (size_t at = 0; calls && at < calls->n;) {
                struct str one = str_of(calls->p + at), two = str_of(calls->p + at + one.n + 1);
                if (str_eq(one, id))
                        name = two;
                at += one.n + two.n + 2;
        }
        return name;
}

/* Adds a name to those of the message, once. What has no room is left out. */
static void add_tool(struct api_search_text *t, struct str name)
{
        size_t n = strlen(t->tools);
        if (!name.n || memchr(name.p, '\n', name.n) || n + name.n + 2 > sizeof t->tools ||
            api_search_has_tool(t->tools, name))
                return;
        snprintf(t->tools + n, sizeof t->tools - n, "%s%.*s", n ? "\n" : "", (int)name.n, name.p);
}

bool api_search_has_tool(const char *tools, struct str name)
{
        for (const char *p = tools; *p; p += *p == '\n') {
                size_t n = strcspn(p, "\n");
                if (n == name.n && memcmp(p, name.p, n) == 0)
                        return true;
                p += n;
        }
        return false;
}

/* The tool of a call or a result. */
static struct str tool_of(struct api_search_text *t, const struct part *p, struct arena *arena)
{
        struct str name = p->name.n ? token_decode(p->name, arena, NULL) : STR("");
        struct str id = p->id.n ? token_decode(p->id, arena, NULL) : STR("");
        if (p->kind == PART_CALL)
                learn_call(t->calls, id, name);
        if (p->kind == PART_RESULT && !name.n && id.n && t->calls) {
                name = call_name(t->calls, id);
                t->unnamed = t->unnamed || !name.n;
        }
        return name;
}

static void put_part(struct api_search_text *t, const struct part *p, struct arena *arena)
{
        bool tool = p->kind == PART_CALL || p->kind == PART_RESULT;
        struct str name = tool ? tool_of(t, p, arena) : STR("");
        size_t from = t->text.n;
        switch (p->kind) {
        case PART_CALL:
                put_line(&t->text, name);
                if (p->arguments_text)
                        put_decoded(&t->text, p->arguments, arena);
                else
                        put_line(&t->text, p->arguments);
                break;
        case PART_RESULT:
                t->error = t->error || p->error;
                if (p->ref.p) /* a stub: the output itself is indexed */
                        break;
                if (p->output_kind == OUTPUT_TEXT)
                        put_decoded(&t->text, p->output, arena);
                else if (p->output_kind == OUTPUT_DATA)
                        put_line(&t->text, p->output);
                put_parts(t, p->children, p->child_count, arena);
                break;
        case PART_TEXT:
        case PART_THINKING:
        case PART_REFUSAL:
                put_decoded(&t->text, p->text, arena);
                break;
        default:
                break;
        }
        add_tool(t, name);
        if (tool && t->want >= from && t->want < t->text.n)
                snprintf(t->here, sizeof t->here, "%.*s",
                    (int)(name.n < sizeof t->here ? name.n : sizeof t->here - 1), name.p);
}

static void put_parts(
    struct api_search_text *t, const struct part *list, size_t count, struct arena *arena)
{
        for (size_t i = 0; i < count; i++)
                put_part(t, &list[i], arena);
}

static void put_string(struct buf *b, const struct json *j, json_ref v)
{
        if (json_type(j, v) != JSON_STRING || !json_inner(j, v).n)
                return;
        if (b->n)
                buf_putc(b, '\n');
        json_string(j, v, b, NULL);
}

/* A reply that failed, or a run that did: what went wrong stands beside the content. */
static void put_error(struct api_search_text *t, const struct json *j)
{
        json_ref error = json_get(j, 0, "error");
        put_string(&t->text, j, error);
        put_string(&t->text, j, json_get(j, error, "code"));
        put_string(&t->text, j, json_get(j, error, "message"));
}

static void read_message(struct api_search_text *t, const struct format *f, const struct json *j)
{
        static const char *const ROLES[] = {"", "system", "system", "user", "assistant", "tool"};
        struct arena arena;
        struct message m;
        arena_init(&arena);
        if (format_read_message(f, j, 0, 1, &arena, &m, NULL) == 0) {
                snprintf(t->role, sizeof t->role, "%s", ROLES[m.role]);
                put_parts(t, m.parts, m.count, &arena);
                t->message = true;
        }
        put_error(t, j);
        json_ref tool = json_get(j, 0, "toolName"), model = json_get(j, 0, "model");
        struct str name = json_inner(j, tool), by = json_inner(j, model);
        if (name.n && name.n < sizeof t->tools)
                snprintf(t->tools, sizeof t->tools, "%.*s", (int)name.n, name.p);
        if (by.n && by.n < sizeof t->model)
                snprintf(t->model, sizeof t->model, "%.*s", (int)by.n, by.p);
        arena_release(&arena);
}

int api_search_read(
    const struct steno_record *r, struct api_search_text *t, struct steno_error *err)
{
        const char *kind = steno_record_kind(r);
        char *text = NULL;
        size_t n = 0;
        struct json j;
        buf_clear(&t->text);
        t->role[0] = t->tools[0] = t->model[0] = t->here[0] = '\0';
        t->error = t->message = t->unnamed = false;
        if (strcmp(kind, "message") != 0 && strcmp(kind, "supersede") != 0)
                return 0;
        const struct format *f = format_find(steno_record_format(r));
        int rc = f ? steno_record_message(r, &text, &n, err) : 0;
        if (rc || !f)
                return rc == STENO_ENOMEM ? rc : 0;
        json_init(&j);
        if (json_parse(&j, text, n, NULL, NULL) == 0)
                read_message(t, f, &j);
        json_release(&j);
        steno_free(text);
        size_t about_n;
        const char *about = steno_record_about(r, &about_n);
        t->error = t->error || memmem(about, about_n, "\"error\":true", 12);
        return t->text.failed ? error_nomem(err) : 0;
}

int api_search_each_ref(
    const struct steno_record *r, int (*each)(void *ctx, struct str ref), void *ctx)
{
        struct arena arena;
        struct about about;
        size_t n;
        const char *x = steno_record_about(r, &n);
        int rc = 0;
        arena_init(&arena);
        if (memmem(x, n, "\"ref\":", 6) || memmem(x, n, "\"refs\":", 7)) {
                rc = about_read(str_span(x, n), &arena, &about, NULL);
                for (size_t i = 0; rc == 0 && i < about_ref_slots(&about); i++)
                        if (about_ref_at(&about, i).n)
                                rc = each(ctx, about_ref_at(&about, i));
        }
        arena_release(&arena);
        return rc;
}

/* ---- blocks ---- */

struct indexing {
        struct steno_store *store;
        struct steno_conv *conv;
        struct api_search_text text;
        struct buf words;
        struct buf calls; /* those of the last records */
        bool looked_back; /* for those of records before this piece */
        char model[128];  /* of the conversation */
        uint64_t bytes;   /* in this transaction */
        uint64_t seq;     /* last one that was added */
        int64_t deadline;
        struct search_block block;
        struct steno_error *err;
};

/* The words of a text, each once in a block, with spaces between them. */
static void fold_words(struct buf *out, struct str text)
{
        struct words w = words_of(text);
        struct word word;
        buf_clear(out);
        while (words_next(&w, &word)) {
                if (!word.n)
                        continue;
                buf_put(out, word.folded, word.n);
                buf_putc(out, ' ');
        }
}

/* Where a block that may go up to `n` ends: behind a line, else behind a word, if one ends near. */
static size_t cut_at(struct str text, size_t n)
{
        if (n == text.n)
                return n;
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = n; i > n - SEARCH_OVERLAP; i--)
                        if (text.p[i - 1] == '\n' || (pass && text.p[i - 1] == ' '))
                                return i;
        return n;
}

/* Where the next one begins: some bytes before, behind a line or a word. */
static size_t begin_at(struct str text, size_t end)
{
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = end - SEARCH_OVERLAP; i < end; i++)
                        if (text.p[i - 1] == '\n' || (pass && text.p[i - 1] == ' '))
                                return i;
        return end - SEARCH_OVERLAP;
}

/* A failure without text is indexed as well, so that is:error finds it. */
static int add_silent(struct indexing *x)
{
        x->block.at = x->block.len = 0;
        x->block.words = STR("");
        return backend_search_add(x->store->backend, &x->block, x->err);
}

static int add_blocks(struct indexing *x, struct str text, uint64_t base)
{
        int rc = 0;
        for (size_t at = 0; rc == 0 && at < text.n;) {
                struct str rest = str_span(text.p + at, text.n - at);
                size_t n = cut_at(rest, rest.n < SEARCH_BLOCK ? rest.n : SEARCH_BLOCK);
                fold_words(&x->words, str_span(text.p + at, n));
                if (x->words.failed)
                        return error_nomem(x->err);
                x->block.at = base + at;
                x->block.len = n;
                x->block.words = buf_str(&x->words);
                if (x->words.n)
                        rc = backend_search_add(x->store->backend, &x->block, x->err);
                x->bytes += n;
                if (at + n == text.n)
                        break;
                at += begin_at(rest, n);
        }
        return rc;
}

/* Bytes [from, to) of an output. */
static int add_range(struct indexing *x, struct backend_reader *reader, uint64_t from, uint64_t to)
{
        struct buf b;
        int rc = 0;
        buf_init(&b, 0);
        while (rc == 0 && from < to) {
                size_t want =
                    to - from < 16 * SEARCH_BLOCK ? (size_t)(to - from) : 16 * SEARCH_BLOCK;
                buf_clear(&b);
                char *p = buf_reserve(&b, want);
                ssize_t got = p ? backend_reader_read(reader, from, p, want, NULL) : -1;
                if (got <= 0)
                        break;
                rc = add_blocks(x, str_span(p, (size_t)got), from);
                if (from + (uint64_t)got >= to)
                        break;
                from += (uint64_t)got > SEARCH_OVERLAP
                            ? begin_at(str_span(p, (size_t)got), (size_t)got)
                            : (uint64_t)got;
        }
        buf_release(&b);
        return rc;
}

static int add_output(void *ctx, struct str ref)
{
        struct indexing *x = ctx;
        struct artifact_info info;
        uint64_t size;
        struct backend_reader *reader;
        if (backend_artifact_find(x->conv->backend, ref, &info, NULL) ||
            info.state != ARTIFACT_CLOSED ||
            strcmp(info.name + (strlen(info.name) > 4 ? strlen(info.name) - 4 : 0), ".bin") == 0 ||
            backend_artifact_open(x->conv->backend, &info, &reader, &size, NULL))
                return 0;
        x->block.ref = ref;
        uint64_t head = size < API_SEARCH_OUTPUT_MAX ? size : API_SEARCH_OUTPUT_MAX;
        uint64_t tail = size > 2 * API_SEARCH_OUTPUT_MAX ? size - API_SEARCH_OUTPUT_MAX : head;
        int rc = add_range(x, reader, 0, head);
        if (rc == 0)
                rc = add_range(x, reader, tail, size);
        if (rc == 0 && tail > head) {
                x->block.at = x->block.len = 0;
                x->block.words = STR(API_SEARCH_IN_PART);
                rc = backend_search_add(x->store->backend, &x->block, x->err);
        }
        backend_reader_close(reader);
        x->block.ref = STR("");
        return rc;
}

static int role_number(const char *role)
{
        return strcmp(role, "user") == 0        ? SEARCH_USER
               : strcmp(role, "assistant") == 0 ? SEARCH_ASSISTANT
               : strcmp(role, "tool") == 0      ? SEARCH_TOOL
                                                : SEARCH_SYSTEM;
}

/* Learns the calls of a record that is indexed already. */
static int learn_record(void *ctx, const struct steno_record *r)
{
        struct indexing *x = ctx;
        size_t n;
        const char *about = steno_record_about(r, &n);
        if (!memmem(about, n, "\"calls\":", 8))
                return 0;
        struct api_search_text text = {.calls = &x->calls};
        buf_init(&text.text, 0);
        int rc = api_search_read(r, &text, x->err);
        buf_release(&text.text);
        return rc;
}

/* The text of a record. Where it has a result whose call stands before this piece, that is looked
 * for, once: a reply has at most 1,024 calls, and mostly few. */
static int read_record(struct indexing *x, const struct steno_record *r)
{
        if (x->calls.n > CALLS_BYTES)
                buf_clear(&x->calls);
        x->text.calls = &x->calls;
        int rc = api_search_read(r, &x->text, x->err);
        uint64_t before = steno_record_seq(r) - 1;
        for (uint64_t back = 64; rc == 0 && x->text.unnamed && !x->looked_back; back *= 32) {
                uint64_t n = before < back ? before : back;
                rc = n ? steno_read(x->conv, before - n, n, learn_record, x, x->err) : 0;
                if (rc == 0)
                        rc = api_search_read(r, &x->text, x->err);
                x->looked_back = !x->text.unnamed || n == before || back > 1024;
        }
        return rc;
}

static int add_record(void *ctx, const struct steno_record *r)
{
        struct indexing *x = ctx;
        const char *at = steno_record_at(r);
        int rc = read_record(x, r);
        int64_t ms = 0;
        if (rc)
                return rc;
        if (x->text.message) {
                time_parse(at, strlen(at), &ms);
                x->block = (struct search_block){.seq = steno_record_seq(r),
                    .role = role_number(x->text.role),
                    .error = x->text.error,
                    .tools = str_of(x->text.tools),
                    .model = str_of(x->text.model[0] ? x->text.model : x->model),
                    .time = ms};
                rc = x->text.error && !x->text.text.n ? add_silent(x)
                                                      : add_blocks(x, buf_str(&x->text.text), 0);
                if (rc == 0)
                        rc = api_search_each_ref(r, add_output, x);
        }
        x->seq = steno_record_seq(r);
        if (rc)
                return rc;
        return x->bytes >= PIECE_BYTES ? 1 : 0; /* enough for one transaction */
}

/* ---- conversations ---- */

static void learn_model(struct indexing *x)
{
        char *meta = NULL;
        struct json j;
        x->model[0] = '\0';
        if (steno_conv_meta(x->conv, &meta, NULL))
                return;
        json_init(&j);
        if (json_parse(&j, meta, strlen(meta), NULL, NULL) == 0) {
                struct str m = json_inner(&j, json_get(&j, json_get(&j, 0, "import"), "model"));
                if (m.n < sizeof x->model)
                        snprintf(x->model, sizeof x->model, "%.*s", (int)m.n, m.p ? m.p : "");
        }
        json_release(&j);
        steno_free(meta);
}

/* One transaction. 1: there is more; 0: it is done; or an error. */
static int index_piece(struct indexing *x)
{
        struct backend_store *backend = x->store->backend;
        struct backend_conv *conv = x->conv->backend;
        uint64_t last = 0, seq = 0;
        int rc = backend_search_lock(backend, false, x->err);
        if (rc)
                return rc;
        uint64_t generation = backend_generation(conv);
        rc = steno_conv_last_seq(x->conv, &last, x->err);
        if (rc == 0)
                rc = backend_search_progress(conv, generation, &seq, x->err);
        if (rc == 0 && seq < last) {
                x->bytes = 0;
                x->seq = seq;
                x->looked_back = false;
                buf_clear(&x->calls);
                rc = backend_search_begin(conv, generation, x->err);
                if (rc == 0)
                        rc = steno_read(x->conv, seq, 0, add_record, x, x->err);
                bool more = rc == 1;
                if (rc == 0)
                        x->seq = last > x->seq ? last : x->seq;
                if (rc >= 0)
                        rc = backend_search_commit(backend, x->seq, x->err);
                if (rc == 0)
                        rc = more;
        }
        backend_search_unlock(backend);
        return rc;
}

struct behind {
        char *project;
        char *id;
};

struct survey {
        struct steno_store *store;
        struct behind *list;
        size_t count;
        size_t cap;
        /* what is indexed: an open table by hash of the name */
        struct seen {
                uint64_t name;
                uint64_t last;
        } * seen;
        size_t seen_count;
        size_t seen_cap;
        size_t rows;
        bool denied; /* the index can be looked at, and not changed */
        struct steno_error *err;
};

static uint64_t name_hash(const char *project, const char *id)
{
        return (hash_64(project, strlen(project)) * 31 + hash_64(id, strlen(id))) | 1;
}

static struct seen *seen_slot(struct survey *v, uint64_t name)
{
        size_t i = (size_t)(name >> 7) & (v->seen_cap - 1);
        while (v->seen[i].name && v->seen[i].name != name)
                i = (i + 1) & (v->seen_cap - 1);
        return &v->seen[i];
}

static int note_seen(
    void *ctx, const char *project, const char *id, uint64_t generation, uint64_t last)
{
        struct survey *v = ctx;
        (void)generation;
        if (v->seen_count * 2 >= v->seen_cap) {
                struct survey old = *v;
                v->seen_cap = old.seen_cap ? old.seen_cap * 2 : 1024;
                v->seen = calloc(v->seen_cap, sizeof *v->seen);
                if (!v->seen) {
                        *v = old;
                        return error_nomem(v->err);
                }
                for (size_t i = 0; i < old.seen_cap; i++)
                        if (old.seen[i].name)
                                *seen_slot(v, old.seen[i].name) = old.seen[i];
                free(old.seen);
        }
        uint64_t name = name_hash(project, id);
        struct seen *s = seen_slot(v, name);
        v->seen_count += !s->name;
        if (!s->name || last > s->last)
                *s = (struct seen){name, last};
        return 0;
}

static int note_behind(void *ctx, const struct backend_listed *row)
{
        struct survey *v = ctx;
        uint64_t name = name_hash(row->project, row->id);
        struct seen *s = v->seen_cap ? seen_slot(v, name) : NULL;
        if (!row->last_seq || (s && s->name && s->last >= row->last_seq))
                return 0;
        if (!grow_room(v->list, v->count, v->cap))
                return error_nomem(v->err);
        struct behind b = {strdup(row->project), strdup(row->id)};
        v->list[v->count++] = b;
        return b.project && b.id ? 0 : error_nomem(v->err);
}

static void survey_release(struct survey *v)
{
        for (size_t i = 0; i < v->count; i++) {
                free(v->list[i].project);
                free(v->list[i].id);
        }
        free(v->list);
        free(v->seen);
}

static int survey(struct survey *v)
{
        struct backend_store *backend = v->store->backend;
        int rc = api_store_catch_up(v->store, v->err);
        if (rc == 0)
                rc = backend_search_lock(backend, false, v->err);
        /* A process that cannot change the index, or waits for another one, counts what the index
         * lacks. */
        bool locked = rc == 0;
        v->denied = rc == STENO_EDENIED;
        if (rc && !v->denied && rc != STENO_ETIMEOUT)
                return rc;
        rc = backend_search_each_conv(backend, note_seen, v, v->err);
        if (locked)
                backend_search_unlock(backend);
        return rc ? rc : backend_list_each(backend, note_behind, v, v->err);
}

static int index_conv(struct indexing *x, const struct behind *b)
{
        struct backend_conv *backend;
        int rc =
            backend_conv_open(x->store->backend, str_of(b->project), str_of(b->id), &backend, NULL);
        if (rc)
                return 0; /* it is gone, or cannot be read: nothing to find there */
        rc = api_conv_wrap(x->store, backend, &x->conv, x->err);
        if (rc)
                return rc;
        learn_model(x);
        do
                rc = index_piece(x);
        while (rc == 1 && time_monotonic_ms() < x->deadline);
        steno_conv_close(x->conv);
        x->conv = NULL;
        return rc;
}

int steno_search_index(struct steno_store *store, int ms, uint64_t *left, struct steno_error *err)
{
        struct steno_error why = {0};
        struct survey v = {.store = store, .err = &why};
        struct indexing x = {.store = store, .err = &why};
        uint64_t remain = 0;
        x.deadline = time_monotonic_ms() + (ms > 0 ? ms : 0);
        buf_init(&x.text.text, 0);
        buf_init(&x.words, 0);
        buf_init(&x.calls, 0);
        int rc = survey(&v);
        for (size_t i = 0; i < v.count; i++) {
                bool now = rc == 0 && !v.denied && time_monotonic_ms() < x.deadline;
                int done = now ? index_conv(&x, &v.list[i]) : 1;
                remain += done != 0;
                if (done < 0)
                        rc = done;
        }
        buf_release(&x.text.text);
        buf_release(&x.words);
        buf_release(&x.calls);
        survey_release(&v);
        /* Another process updates the index, it may not be written here, or the disk is full: the
         * search uses the index as it is. */
        if (rc == STENO_ETIMEOUT || rc == STENO_EDENIED || rc == STENO_EFULL)
                rc = 0;
        if (rc == STENO_ECORRUPT)
                rc = backend_search_discard(store->backend, &why);
        if (rc && err)
                *err = why;
        if (rc == 0) {
                __atomic_store_n(&store->unindexed, remain, __ATOMIC_RELAXED);
                __atomic_store_n(&store->index_denied, v.denied, __ATOMIC_RELAXED);
                __atomic_store_n(&store->surveyed, true, __ATOMIC_RELAXED);
        }
        if (rc == 0 && left)
                *left = remain;
        return rc;
}
