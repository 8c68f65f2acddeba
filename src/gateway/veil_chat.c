/*
 * veil_chat.c - chat completions under the veil (veil.h).
 */
#include <stdio.h>

#include "base/limits.h"
#include "gateway/owncalls.h"
#include "gateway/veil_core.h"

/* ---- calls ---- */

static bool is_whole(const struct veil_slot *s)
{
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_unescape(buf_str(&s->arguments), &text, NULL);
        bool whole = s->is_done || (text.n && !text.failed && json_valid(text.p, text.n, NULL));
        buf_release(&text);
        return whole;
}

/* The call that a fragment is of; NULL: a new one. This follows assemble.c, so that the app and the
 * record see the same calls. */
static struct veil_slot *find_slot(struct veil *v, int64_t index, struct str id, struct str name)
{
        struct veil_slot *last = v->slot_count ? &v->slots[v->slot_count - 1] : NULL, *found = NULL;
        for (size_t i = v->slot_count; i > 0 && !found; i--) {
                struct veil_slot *s = &v->slots[i - 1];
                if (index >= 0 ? s->index == index : id.n && str_eq(buf_str(&s->id), id))
                        found = s;
        }
        if (index >= 0 && found && id.n && found->id.n && !str_eq(buf_str(&found->id), id))
                return NULL; /* another call under the same number */
        /* Some endpoints repeat the name while arguments come. */
        if (index < 0 && !id.n && last &&
            (!name.n ||
                (str_eq(buf_str(&last->name), name) && last->arguments.n && !is_whole(last))))
                found = last;
        return found && name.n && !id.n && is_whole(found) ? NULL : found;
}

static struct veil_slot *slot_of(struct veil *v, const struct json *j, json_ref entry, bool *fresh)
{
        struct str id = json_inner(j, json_get(j, entry, "id"));
        struct str name = json_inner(j, json_get(j, json_get(j, entry, "function"), "name"));
        int64_t index = -1;
        if (!json_i64(j, json_get(j, entry, "index"), &index) || index < 0)
                index = -1;
        struct veil_slot *s = find_slot(v, index, id, name);
        *fresh = s == NULL;
        if (!s) {
                /* Its number is taken, or it has none. */
                for (size_t i = 0; i < v->slot_count; i++)
                        if (v->slots[i].index == index)
                                v->slots[i].index = INT64_MIN;
                s = veil_slot(v, index, fresh);
        }
        if (s && s->id.n == 0)
                buf_put_str(&s->id, id);
        return s;
}

/* Keeps what the fragment says of name and arguments. Is the name over with it? */
static bool take_words(struct veil_slot *s, const struct json *j, json_ref entry)
{
        json_ref function = json_get(j, entry, "function");
        struct str name = json_inner(j, json_get(j, function, "name"));
        json_ref arguments = json_get(j, function, "arguments");
        enum json_type type = json_type(j, arguments);
        if (!str_eq(buf_str(&s->name), name)) /* some repeat it with every fragment */
                buf_put_str(&s->name, name);
        if (type == JSON_OBJECT || type == JSON_ARRAY)
                s->is_done = true;
        else
                buf_put_str(&s->arguments, json_inner(j, arguments));
        return s->is_done || s->arguments.n ||
               json_type(j, json_get(j, entry, "custom")) == JSON_OBJECT;
}

static void put_entry(struct buf *out, const struct json *j, json_ref entry, int64_t index)
{
        char number[24];
        if (out->n)
                buf_putc(out, ',');
        int n = snprintf(number, sizeof number, "%lld", (long long)index);
        struct veil_swap swap = {"index", str_span(number, (size_t)n)};
        if (json_get(j, entry, "index") == JSON_NONE) {
                buf_printf(out, "{\"index\":%s", number);
                for (json_ref k = json_child(j, entry); k != JSON_NONE;
                     k = json_next_key(j, entry, k)) {
                        struct jsonw w = jsonw_behind(out);
                        jsonw_copy_member(&w, j, k);
                }
                buf_putc(out, '}');
        } else {
                veil_put_object(out, j, entry, &swap, 1);
        }
}

/* What was held of a call whose name is known now. */
static void put_held(struct buf *out, struct veil_slot *s)
{
        struct json j;
        struct buf list;
        json_init(&j);
        buf_init(&list, 0);
        buf_putc(&list, '[');
        buf_put_str(&list, buf_str(&s->held));
        buf_putc(&list, ']');
        if (!list.failed && json_parse(&j, list.p, list.n, NULL, NULL) == 0)
                for (json_ref e = json_child(&j, 0); e != JSON_NONE; e = json_next(&j, 0, e))
                        put_entry(out, &j, e, s->to);
        buf_clear(&s->held);
        buf_release(&list);
        json_release(&j);
}

/* The call is Steno's or the app's, and the app gets what was held of its own. */
static void settle(struct veil *v, struct veil_slot *s, struct buf *out)
{
        s->known = true;
        s->hidden = owncalls_is_own(buf_str(&s->name));
        v->hidden += s->hidden;
        v->any_hidden = v->any_hidden || s->hidden;
        v->calls += !s->hidden;
        if (s->hidden) {
                buf_clear(&s->held);
                return;
        }
        s->to = v->calls_told++;
        put_held(out, s);
}

/* Nothing more comes of the names of these calls. */
static void settle_all(struct veil *v, size_t count, struct buf *out)
{
        for (size_t i = 0; i < count; i++)
                if (!v->slots[i].known && v->slots[i].name.n)
                        settle(v, &v->slots[i], out);
}

/* `touched` is set where the app gets something else than came. */
static void take_entry(
    struct veil *v, const struct json *j, json_ref entry, struct buf *out, bool *touched)
{
        bool fresh;
        struct veil_slot *s = slot_of(v, j, entry, &fresh);
        if (!s)
                return;
        size_t before = out->n;
        if (fresh)
                settle_all(v, v->slot_count - 1, out);
        *touched = *touched || out->n > before;
        if (s->known) {
                take_words(s, j, entry);
                *touched = *touched || s->hidden;
                if (!s->hidden)
                        put_entry(out, j, entry, s->to);
                return;
        }
        bool held = s->held.n;
        if (held)
                buf_putc(&s->held, ',');
        buf_put_str(&s->held, json_raw(j, entry));
        bool over = take_words(s, j, entry);
        if (over ? s->name.n || json_get(j, entry, "custom") != JSON_NONE
                 : s->name.n && !owncalls_may_become_own(buf_str(&s->name)))
                settle(v, s, out);
        *touched = *touched || held || !s->known || s->hidden;
}

/* ---- a chunk ---- */

struct chunk {
        struct buf calls; /* entries for the app */
        bool touched;     /* the app gets another one than came */
        bool any;         /* there is something in it for the app */
        struct buf delta, choice, choices, usage;
};

/* To an object that was written and has no such member; nothing where there is no value. */
static void add_member(struct buf *object, const char *key, struct str value)
{
        if (value.n == 0 || object->n < 2)
                return;
        object->n--;
        struct jsonw w = object->n > 1 ? jsonw_behind(object) : jsonw_to(object);
        jsonw_field_raw(&w, key, value);
        buf_putc(object, '}');
}

/* `end`: the round ends with it. */
static void look_at_delta(
    struct veil *v, const struct json *j, json_ref delta, bool end, struct chunk *c)
{
        struct veil_swap swaps[2];
        size_t n = 0;
        json_ref calls = json_get(j, delta, "tool_calls");
        for (json_ref k = json_child(j, delta); k != JSON_NONE; k = json_next_key(j, delta, k)) {
                struct str raw = json_raw(j, json_value(j, k));
                bool role = json_is(j, k, "role");
                if (!json_is(j, k, "tool_calls") && !str_is(raw, "null") && !str_is(raw, "\"\"") &&
                    (!role || v->rounds == 1))
                        c->any = true;
        }
        if (v->rounds > 1 && json_get(j, delta, "role") != JSON_NONE) {
                swaps[n++] = (struct veil_swap){"role", {0}};
                c->touched = true;
        }
        for (json_ref e = json_child(j, calls); e != JSON_NONE; e = json_next(j, calls, e))
                take_entry(v, j, e, &c->calls, &c->touched);
        size_t before = c->calls.n;
        if (end)
                settle_all(v, v->slot_count, &c->calls);
        c->touched = c->touched || c->calls.n > before;
        if (c->calls.n) {
                c->any = true;
                struct buf list;
                buf_init(&list, 0);
                buf_putc(&list, '[');
                buf_put_str(&list, buf_str(&c->calls));
                buf_putc(&list, ']');
                buf_clear(&c->calls);
                buf_put_str(&c->calls, buf_str(&list));
                buf_release(&list);
        }
        if (c->calls.n || json_type(j, calls) == JSON_ARRAY) {
                c->touched = c->touched || v->any_hidden;
                swaps[n++] = (struct veil_swap){"tool_calls", buf_str(&c->calls)};
        }
        veil_put_object(&c->delta, j, delta, swaps, n);
        if (calls == JSON_NONE)
                add_member(&c->delta, "tool_calls", buf_str(&c->calls));
}

static bool is_normal(const struct json *j, json_ref reason)
{
        return json_is(j, reason, "tool_calls") || json_is(j, reason, "stop") ||
               json_is(j, reason, "function_call");
}

static void look_at_choice(struct veil *v, const struct json *j, json_ref choice, struct chunk *c)
{
        json_ref delta = json_get(j, choice, "delta"),
                 reason = json_get(j, choice, "finish_reason");
        struct veil_swap swaps[2];
        size_t n = 0;
        bool end = json_type(j, reason) == JSON_STRING;
        if (end || json_type(j, delta) == JSON_OBJECT) {
                look_at_delta(v, j, delta, end, c);
                swaps[n++] = (struct veil_swap){"delta", buf_str(&c->delta)};
        }
        if (end) {
                veil_ended(v, is_normal(j, reason));
                c->any = c->any || !veil_goes_on(v);
                if (veil_goes_on(v))
                        swaps[n++] = (struct veil_swap){"finish_reason", STR("null")};
                else if (v->hidden && !v->calls && is_normal(j, reason))
                        swaps[n++] = (struct veil_swap){"finish_reason", STR("\"stop\"")};
                c->touched = c->touched || v->any_hidden;
        }
        veil_put_object(&c->choice, j, choice, swaps, n);
        if (delta == JSON_NONE && c->calls.n)
                add_member(&c->choice, "delta", buf_str(&c->delta));
        buf_putc(&c->choices, '[');
        buf_put_str(&c->choices, buf_str(&c->choice));
        buf_putc(&c->choices, ']');
}

static void chunk_init(struct chunk *c)
{
        *c = (struct chunk){0};
        buf_init(&c->calls, 0);
        buf_init(&c->delta, 0);
        buf_init(&c->choice, 0);
        buf_init(&c->choices, 0);
        buf_init(&c->usage, 0);
}

static void chunk_release(struct chunk *c)
{
        buf_release(&c->calls);
        buf_release(&c->delta);
        buf_release(&c->choice);
        buf_release(&c->choices);
        buf_release(&c->usage);
}

/* What goes to the app in a round that goes on: words, and nothing of its end. */
static void emit_words(struct veil *v, struct str data)
{
        bool ended = v->ended;
        v->ended = false;
        veil_emit(v, (struct str){0}, data);
        v->ended = ended;
}

static void chat_event(struct veil *v, struct str name, struct str data, bool is_json)
{
        const struct json *j = &v->j;
        struct chunk c;
        struct veil_swap swaps[VEIL_FIRST + 2];
        struct buf out;
        if (!is_json || json_get(j, 0, "error") != JSON_NONE) {
                veil_emit(v, name, data); /* [DONE] */
                return;
        }
        chunk_init(&c);
        buf_init(&out, 0);
        veil_keep_first(v, j, 0);
        bool was_over = v->ended;
        size_t n = veil_first(v, swaps);
        json_ref choice = json_child(j, json_get(j, 0, "choices"));
        if (choice != JSON_NONE) {
                look_at_choice(v, j, choice, &c);
                swaps[n++] = (struct veil_swap){"choices", buf_str(&c.choices)};
        }
        json_ref usage = json_get(j, 0, "usage");
        if (json_type(j, usage) == JSON_OBJECT) {
                veil_keep_usage(v, j, usage);
                if (v->rounds > 1)
                        swaps[n++] = (struct veil_swap){"usage", veil_usage(v, &c.usage)};
                if (veil_goes_on(v))
                        swaps[n++] = (struct veil_swap){"usage", STR("null")};
                else
                        c.any = true;
        }
        veil_put_object(&out, j, 0, swaps, n);
        if (v->rounds == 1 && !c.touched)
                veil_emit(v, name, data);
        else if (veil_goes_on(v) && !was_over && c.any)
                emit_words(v, buf_str(&out));
        else if (c.any || choice == JSON_NONE)
                veil_emit(v, name, buf_str(&out));
        if (out.failed || c.delta.failed)
                v->failed = STENO_ENOMEM;
        buf_release(&out);
        chunk_release(&c);
}

/* ---- a whole answer ---- */

/* A text, or the texts of a list of parts, as some endpoints say it. */
static void keep_words(struct veil *v, const struct json *j, json_ref content)
{
        buf_put_str(&v->words, json_inner(j, content));
        if (json_type(j, content) != JSON_ARRAY)
                return;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p))
                buf_put_str(&v->words, json_inner(j, json_get(j, p, "text")));
}

static void look_at_body(struct veil *v)
{
        const struct json *j = &v->j;
        json_ref choice = json_child(j, json_get(j, 0, "choices"));
        json_ref message = json_get(j, choice, "message");
        json_ref calls = json_get(j, message, "tool_calls");
        veil_keep_first(v, j, 0);
        veil_keep_usage(v, j, json_get(j, 0, "usage"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c)) {
                bool own = owncalls_is_name(j, json_get(j, json_get(j, c, "function"), "name"));
                v->hidden += own;
                v->calls += !own;
                if (!own)
                        veil_see(v, json_raw(j, c));
        }
        v->any_hidden = v->any_hidden || v->hidden;
        /* An answer that is not a stream is over, whether it says why or not. */
        json_ref reason = json_get(j, choice, "finish_reason");
        if (message != JSON_NONE)
                veil_ended(v, json_type(j, reason) != JSON_STRING || is_normal(j, reason));
        keep_words(v, j, json_get(j, message, "content"));
}

static void put_body(struct veil *v, struct buf *out)
{
        const struct json *j = &v->j;
        json_ref choice = json_child(j, json_get(j, 0, "choices"));
        json_ref message = json_get(j, choice, "message");
        struct buf calls, content, text, usage;
        struct chunk c;
        struct veil_swap swaps[VEIL_FIRST + 2];
        chunk_init(&c);
        buf_init(&calls, 0);
        buf_init(&content, 0);
        buf_init(&text, 0);
        buf_init(&usage, 0);
        if (v->seen.n)
                buf_printf(&calls, "[%.*s]", (int)v->seen.n, v->seen.p);
        buf_putc(&content, '"');
        buf_put_str(&content, buf_str(&v->words));
        buf_putc(&content, '"');
        struct veil_swap own[] = {{"tool_calls", buf_str(&calls)},
            {"content", v->words.n ? buf_str(&content) : STR("null")}};
        veil_put_object(&text, j, message, own, 2);
        struct veil_swap outer[] = {
            {"message", buf_str(&text)}, {"finish_reason", STR("\"stop\"")}};
        veil_put_object(&c.choice, j, choice, outer, v->calls || !v->whole ? 1 : 2);
        buf_putc(&c.choices, '[');
        buf_put_str(&c.choices, buf_str(&c.choice));
        buf_putc(&c.choices, ']');
        size_t n = veil_first(v, swaps);
        if (choice != JSON_NONE)
                swaps[n++] = (struct veil_swap){"choices", buf_str(&c.choices)};
        if (v->usage.n)
                swaps[n++] = (struct veil_swap){"usage", veil_usage(v, &usage)};
        veil_put_object(out, j, 0, swaps, n);
        buf_release(&usage);
        buf_release(&text);
        buf_release(&content);
        buf_release(&calls);
        chunk_release(&c);
}

const struct veil_spelling veil_chat = {
    "chat", {"id", "created", "model"}, chat_event, look_at_body, put_body};
