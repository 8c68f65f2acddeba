/* format.c - the table of formats, and whole histories; see format.h */
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "format/arrange.h"
#include "format/fit.h"
#include "format/rules.h"
#include "format/spelling.h"
#include "model/token.h"

static const struct format *const table[] = {
    &format_openai,
    &format_responses,
    &format_anthropic,
    &format_gemini,
    &format_acontext,
    &format_toolmessage2,
    &format_toolmessage,
    &format_chat,
    &format_legacy,
    &format_uimessage,
    &format_modelmessage,
    &format_langchain,
};

const struct format *format_find(const char *name)
{
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
                if (name && strcmp(table[i]->name, name) == 0)
                        return table[i];
        return NULL;
}

const struct format *format_named(struct str name)
{
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
                if (str_is(name, table[i]->name))
                        return table[i];
        return NULL;
}

const struct format *format_at(size_t i)
{
        return i < sizeof table / sizeof *table ? table[i] : NULL;
}

#define DETECT_MESSAGES 64 /* enough to find a tool call in most histories */

const struct format *format_detect(const struct json *j, json_ref list)
{
        const struct format *best = NULL;
        long best_score = 0;
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                long score = 0;
                uint32_t n = 0;
                if (json_type(j, list) == JSON_ARRAY) {
                        for (json_ref e = json_child(j, list);
                             e != JSON_NONE && n < DETECT_MESSAGES;
                             e = json_next(j, list, e), n++) {
                                int one = table[i]->detect(j, e);
                                /* One message that cannot be of this format counts more than many
                                 * that can. */
                                score += one ? one : -1000;
                        }
                } else {
                        score = table[i]->detect(j, list);
                }
                if (score > best_score) {
                        best_score = score;
                        best = table[i];
                }
        }
        if (!best && json_type(j, list) == JSON_ARRAY && json_count(j, list) == 0)
                return &format_openai;
        return best;
}

/* Does a member with this name hold parts, in some format? Other members of a client do not. */
static bool holds_parts(const struct json *j, json_ref key)
{
        struct str plain = json_is_escaped(j, key) ? (struct str){0} : json_inner(j, key);
        if (plain.n && !memchr("cpost", plain.p[0], 5))
                return false; /* no such member begins with another letter */
        static const char *const NAMES[] = {"content", "parts", "output", "summary", "tool_calls",
            "toolCalls", "tool_invocations", "toolInvocations"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (json_is(j, key, NAMES[i]))
                        return true;
        return false;
}

/* Counts the parts of a list. Parts that hold other parts (results, thinking, items of a carrier)
 * have them in members with these names in every format. */
static size_t count_parts(const struct json *j, json_ref list)
{
        static const char *const INNER[] = {"content", "parts", "output", "summary"};
        size_t n = json_type(j, list) == JSON_ARRAY ? json_count(j, list) : 0;
        for (json_ref e = n && n <= PARTS_MAX ? json_child(j, list) : JSON_NONE; e != JSON_NONE;
             e = json_next(j, list, e)) {
                for (size_t i = 0; i < sizeof INNER / sizeof *INNER; i++)
                        n += json_count(j, json_get(j, e, INNER[i]));
        }
        return n;
}

/* Counts the parts of a message, including calls and the parts inside of results. */
static size_t parts_of(const struct json *j, json_ref msg)
{
        size_t parts = 0;
        if (json_type(j, msg) != JSON_OBJECT)
                return 0;
        for (json_ref key = json_child(j, msg); key != JSON_NONE; key = json_next_key(j, msg, key))
                if (holds_parts(j, key))
                        parts += count_parts(j, json_value(j, key));
        return parts;
}

static int charge(struct format_charge *c, size_t parts, size_t bytes)
{
        c->parts += parts;
        c->bytes += bytes;
        return c->parts > VIEW_PARTS_FREE &&
                       c->parts - VIEW_PARTS_FREE > c->bytes * VIEW_PARTS_SHARE / VIEW_PART_BYTES
                   ? STENO_ELIMIT
                   : 0;
}

int format_charge(struct format_charge *c, const struct json *j, json_ref msg)
{
        return charge(c, parts_of(j, msg), json_raw(j, msg).n);
}

static int measure(const struct json *j, json_ref msg, size_t parts, struct steno_error *err)
{
        size_t values = msg < j->count ? j->nodes[msg].next - msg : 0;
        if (values > MESSAGE_VALUES_MAX)
                return error_set(err, STENO_ELIMIT,
                    "a message has %zu JSON values, at most %d are allowed", values,
                    MESSAGE_VALUES_MAX);
        return parts > PARTS_MAX
                   ? error_set(err, STENO_ELIMIT, "a message has %zu parts, at most %d are allowed",
                         parts, PARTS_MAX)
                   : 0;
}

int format_measure(const struct json *j, json_ref msg, struct steno_error *err)
{
        return measure(j, msg, parts_of(j, msg), err);
}

/* A run's reply has the shape of its provider, with Steno's own members beside it. */
static void describe_own(const struct json *j, json_ref msg, struct arena *arena, struct about *a)
{
        a->mode = token_text(j, json_get(j, msg, "mode"), arena);
        a->run = token_text(j, json_get(j, msg, "runId"), arena);
        a->off_context =
            a->off_context || json_type(j, json_get(j, msg, "includeInContext")) == JSON_FALSE;
        a->error = a->error || json_is(j, json_get(j, msg, "partType"), "error");
}

int format_describe(const struct format *f, const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        struct spelling s;
        if (spelling_of(j, msg, arena, &s))
                return error_nomem(err);
        int rc = f->describe(s.j, s.msg, arena, out, err);
        if (rc || (f->flags & FORMAT_MEMBERS))
                return rc;
        describe_own(j, msg, arena, out);
        return arena->failed ? error_nomem(err) : 0;
}

/* The memory for describing a message is freed before the message is read, so that a history in
 * memory stays small. */
static int check_and_read(const struct format *f, const struct json *j, json_ref msg,
    struct arena *arena, struct message *out, struct steno_error *err)
{
        struct about about;
        struct arena_mark mark = arena_mark(arena);
        int rc = f->describe(j, msg, arena, &about, err);
        if (rc)
                return rc;
        arena_rewind(arena, mark);
        return f->read(j, msg, arena, out) ? error_nomem(err) : 0;
}

static int read_measured(const struct format *f, const struct json *j, json_ref msg, uint64_t seq,
    struct arena *arena, struct message *out, struct steno_error *err)
{
        struct spelling s;
        if (spelling_of(j, msg, arena, &s))
                return error_nomem(err);
        *out = (struct message){.origin = f, .seq = seq, .raw = json_raw(s.j, s.msg)};
        int rc = f->check_and_read ? f->check_and_read(s.j, s.msg, arena, out, err)
                                   : check_and_read(f, s.j, s.msg, arena, out, err);
        if (rc)
                return rc;
        spelling_restore(&s, out);
        /* A conversion cannot lose what an importer keeps beside a message. */
        for (struct extra *x = out->extras; x; x = x->next)
                x->idle = x->idle || str_is(x->key, "\"entry\"");
        return 0;
}

int format_read_message(const struct format *f, const struct json *j, json_ref msg, uint64_t seq,
    struct arena *arena, struct message *out, struct steno_error *err)
{
        int rc = format_measure(j, msg, err);
        return rc ? rc : read_measured(f, j, msg, seq, arena, out, err);
}

int format_read_history(const struct format *f, const struct json *j, json_ref list,
    struct arena *arena, struct history *out, struct steno_error *err)
{
        bool many = json_type(j, list) == JSON_ARRAY;
        size_t count = many ? json_count(j, list) : 1;
        struct history h = {.list = arena_alloc(arena, (count + 1) * sizeof *h.list)};
        if (!h.list)
                return error_nomem(err);
        struct format_charge sum = {0};
        json_ref e = many ? json_child(j, list) : list;
        for (; e != JSON_NONE; e = many ? json_next(j, list, e) : JSON_NONE) {
                size_t parts = parts_of(j, e);
                if (charge(&sum, parts, json_raw(j, e).n))
                        return error_set(err, STENO_ELIMIT,
                            "the first %zu messages have %zu parts in %zu bytes, which is too much "
                            "to hold at once; take fewer messages at a time",
                            h.count + 1, sum.parts, sum.bytes);
                int rc = measure(j, e, parts, err);
                if (rc == 0)
                        rc = read_measured(f, j, e, h.count + 1, arena, &h.list[h.count], err);
                if (rc)
                        return error_prefix(err, rc, "message %zu", h.count + 1);
                h.count++;
        }
        *out = h;
        return 0;
}

struct strict {
        struct writer *w;
        size_t message;
};

static void lose_strict(void *ctx, const char *path)
{
        struct strict *s = ctx;
        char field[240];
        int n = snprintf(field, sizeof field, "messages[%zu].%s", s->message, path);
        if (s->w->on_loss)
                s->w->on_loss(s->w->loss_ctx, 0, str_span(field, (size_t)n),
                    "not in the provider's table, so the strict view leaves it out");
}

/* Writes a copy of the output with only the members that the provider's table has. */
static int write_strict(struct writer *w, const struct buf *whole)
{
        const struct rules *rules = rules_find(w->format->name);
        struct strict s = {.w = w};
        struct spelling plain;
        struct json j;
        json_init(&j);
        int rc = buf_check(whole, w->err);
        if (!rc)
                rc = json_parse(&j, whole->p, whole->n, NULL, w->err);
        if (!rc && spelling_of(&j, 0, w->arena, &plain))
                rc = error_nomem(w->err);
        buf_putc(w->out, '[');
        for (json_ref m = rc ? JSON_NONE : json_child(plain.j, 0); m != JSON_NONE;
             m = json_next(plain.j, 0, m), s.message++) {
                if (s.message)
                        buf_putc(w->out, ',');
                rules_prune(rules, rules->message, plain.j, m, w->out, lose_strict, &s);
        }
        buf_putc(w->out, ']');
        json_release(&j);
        return rc;
}

int format_write_history(
    const struct format *f, struct writer *w, const struct history *h, struct steno_error *err)
{
        struct history arranged;
        w->format = f;
        w->seen = (struct writer_seen){0};
        w->err = err;
        w->names = NULL;
        struct history fitted;
        if (fit_history(w, h, &fitted) ||
            arrange_history(w, &fitted, fitted.list != h->list, &arranged))
                return error_nomem(err);
        struct buf *out = w->out, whole;
        bool strict = w->strict && w->valid && rules_find(f->name);
        buf_init(&whole, 0);
        if (strict)
                w->out = &whole;
        w->json = jsonw_to(w->out);
        jsonw_array(&w->json);
        int rc = f->write(w, &arranged);
        jsonw_array_end(&w->json);
        w->out = out;
        if (!rc && strict)
                rc = write_strict(w, &whole);
        buf_release(&whole);
        if (rc)
                return rc;
        if (w->arena->failed)
                return error_nomem(err);
        return buf_check(w->out, err);
}
