/*
 * acp_calls.c - tool calls, from their beginning to the result. See acp_record.h
 *
 * An agent sends a call in pieces: an announcement, then updates that each have some members. A
 * call is written into a message as late as possible, so that its arguments are known, and its
 * result when it is over.
 */
#include "acp/acp_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* ---- members ---- */

void acp_members_free(struct acp_member *m)
{
        while (m) {
                struct acp_member *next = m->next;
                free(m->key);
                free(m->json);
                free(m);
                m = next;
        }
}

void acp_call_free(struct acp_call *c)
{
        if (!c)
                return;
        acp_members_free(c->members);
        acp_terminal_free(c->terminal);
        free(c->id);
        free(c);
}

const char *acp_call_get(const struct acp_call *c, const char *key)
{
        for (const struct acp_member *m = c->members; m; m = m->next)
                if (strcmp(m->key, key) == 0)
                        return m->json;
        return NULL;
}

bool acp_call_is(const struct acp_call *c, const char *key, const char *value)
{
        const char *json = acp_call_get(c, key);
        size_t n = strlen(value);
        return json && json[0] == '"' && strncmp(json + 1, value, n) == 0 && json[n + 1] == '"';
}

static void set(struct acp_call *c, struct str key, struct str json)
{
        struct acp_member **at = &c->members;
        while (*at && !str_is(key, (*at)->key))
                at = &(*at)->next;
        char *copy = strndup(json.p, json.n);
        if (*at && copy) {
                free((*at)->json);
                (*at)->json = copy;
                return;
        }
        struct acp_member *m = copy ? calloc(1, sizeof *m) : NULL;
        if (!m || !(m->key = strndup(key.p, key.n))) {
                free(copy);
                free(m);
                return;
        }
        m->json = copy;
        *at = m;
}

struct acp_call *acp_call_find(struct acp_record *r, const char *id)
{
        const struct acp_node *node = acp_index_first(&r->calls_by_id, id, strlen(id));
        return node ? node->value : NULL;
}

static struct acp_call *add(struct acp_record *r, const char *id)
{
        struct acp_call *c = calloc(1, sizeof *c);
        if (!c || !(c->id = strdup(id))) {
                free(c);
                return NULL;
        }
        c->began = r->now;
        c->prev = r->last_call;
        *(r->last_call ? &r->last_call->next : &r->calls) = c;
        r->last_call = c;
        if (!r->unwritten)
                r->unwritten = c;
        r->unwritten_count++;
        acp_index_add(&r->calls_by_id, &c->by_id, c->id, c);
        return c;
}

/* Removes a call from the list. The caller then owns it. */
static void take_out(struct acp_record *r, struct acp_call *c)
{
        *(c->prev ? &c->prev->next : &r->calls) = c->next;
        *(c->next ? &c->next->prev : &r->last_call) = c->prev;
        if (r->unwritten == c)
                r->unwritten = c->next;
        r->unwritten_count -= !c->written;
        acp_index_remove(&r->calls_by_id, &c->by_id);
        c->next = c->prev = NULL;
}

/* ---- the description of a call ---- */

/* Returns the name of the agent's own tool, if the agent gives it. */
static char *own_name(const char *meta)
{
        struct json j;
        char *name = NULL;
        json_init(&j);
        if (meta && json_parse(&j, meta, strlen(meta), NULL, NULL) == 0) {
                name = json_dup_string(&j, json_get(&j, 0, "toolName"));
                for (json_ref k = json_child(&j, 0); k != JSON_NONE && !name;
                     k = json_next_key(&j, 0, k))
                        name = json_dup_string(&j, json_get(&j, json_value(&j, k), "toolName"));
        }
        json_release(&j);
        return name;
}

static char *string_of(const char *json)
{
        struct json j;
        char *z = NULL;
        json_init(&j);
        if (json && json_parse(&j, json, strlen(json), NULL, NULL) == 0)
                z = json_dup_string(&j, 0);
        json_release(&j);
        return z;
}

char *acp_call_name(const struct acp_call *c)
{
        char *name = string_of(acp_call_get(c, "name"));
        if (!name || !*name) {
                free(name);
                name = own_name(acp_call_get(c, "_meta"));
        }
        if (!name || !*name) {
                free(name);
                name = string_of(acp_call_get(c, "kind"));
        }
        if (name && *name)
                return name;
        free(name);
        return strdup("tool");
}

void acp_call_put(const struct acp_call *c, struct jsonw *w)
{
        const char *input = acp_call_get(c, "rawInput");
        char *name = acp_call_name(c);
        struct buf args;
        buf_init(&args, MESSAGE_MAX);
        if (input && input[0] == '{') {
                buf_puts(&args, input);
        } else {
                struct jsonw a = jsonw_to(&args);
                jsonw_object(&a);
                if (input)
                        jsonw_field_raw(&a, "input", str_of(input));
                jsonw_object_end(&a);
        }
        jsonw_object(w);
        jsonw_field_cstr(w, "id", c->id);
        jsonw_field_cstr(w, "type", "function");
        jsonw_key(w, "function");
        jsonw_object(w);
        jsonw_field_cstr(w, "name", name ? name : "tool");
        jsonw_field_str(w, "arguments", buf_str(&args));
        jsonw_object_end(w);
        jsonw_object_end(w);
        buf_release(&args);
        free(name);
}

/* Does the output contain all of this content? */
static bool is_said(const char *content, struct str output)
{
        struct json j;
        struct buf text, bare, all;
        bool other = false;
        json_init(&j);
        buf_init(&text, MESSAGE_MAX);
        buf_init(&bare, MESSAGE_MAX);
        buf_init(&all, 0);
        if (json_parse(&j, content, strlen(content), NULL, NULL) != 0)
                other = true;
        for (json_ref b = json_child(&j, 0); b != JSON_NONE && !other; b = json_next(&j, 0, b)) {
                if (json_is(&j, json_get(&j, b, "type"), "content"))
                        acp_put_block_text(&j, json_get(&j, b, "content"), &text, &other);
                else
                        other = !json_is(&j, json_get(&j, b, "type"), "terminal");
        }
        struct str s = str_trim(buf_str(&text));
        if (s.n >= 3 && memcmp(s.p, "```", 3) == 0) { /* a block of Markdown */
                const char *nl = memchr(s.p, '\n', s.n);
                s = nl ? str_span(nl, (size_t)(s.p + s.n - nl)) : s;
                while (s.n && s.p[s.n - 1] == '`')
                        s.n--;
        }
        acp_put_bare(s, &bare);
        acp_put_bare(output, &all);
        bool said = !other && (bare.n == 0 || (all.n && memmem(all.p, all.n, bare.p, bare.n)));
        json_release(&j);
        buf_release(&text);
        buf_release(&bare);
        buf_release(&all);
        return said;
}

static bool is_left_out(const struct acp_member *m, bool result, struct str output)
{
        static const char *const by_others[] = {"sessionUpdate", "rawInput", NULL};
        for (const char *const *z = by_others; *z; z++)
                if (strcmp(m->key, *z) == 0)
                        return true;
        if (strcmp(m->key, "content") == 0)
                return !result || is_said(m->json, output);
        if (strcmp(m->key, "rawOutput") == 0)
                return !result;
        return false;
}

/* Writes rawOutput without the text that is the output. */
static void put_raw_output(struct jsonw *w, const char *raw, struct str output)
{
        struct json j;
        struct json_edits edits;
        struct buf text, rest;
        json_init(&j);
        json_edits_init(&edits);
        buf_init(&text, 0);
        buf_init(&rest, 0);
        if (json_parse(&j, raw, strlen(raw), NULL, NULL) == 0) {
                for (json_ref k = json_child(&j, 0);
                     k != JSON_NONE && json_type(&j, 0) == JSON_OBJECT && output.n;
                     k = json_next_key(&j, 0, k)) {
                        buf_clear(&text);
                        if (json_string(&j, json_value(&j, k), &text, NULL) &&
                            str_eq(buf_str(&text), output))
                                json_edit_replace(&edits, &j, json_value(&j, k), STR("null"));
                }
                buf_clear(&text);
                bool all = json_string(&j, 0, &text, NULL) && str_eq(buf_str(&text), output);
                if (!all && json_edits_apply(&edits, &j, 0, &rest) == 0 && !rest.failed)
                        jsonw_field_raw(w, "rawOutput", buf_str(&rest));
        }
        json_release(&j);
        json_edits_release(&edits);
        buf_release(&text);
        buf_release(&rest);
}

void acp_call_put_about(const struct acp_call *c, bool result, struct str output, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (const struct acp_member *m = c->members; m; m = m->next) {
                if (is_left_out(m, result, output))
                        continue;
                if (strcmp(m->key, "rawOutput") == 0) {
                        put_raw_output(&w, m->json, output);
                        continue;
                }
                jsonw_key_str(&w, str_of(m->key));
                jsonw_raw(&w, str_of(m->json));
        }
        jsonw_object_end(&w);
}

/* ---- updates ---- */

static void attach_terminals(
    struct acp_record *r, const struct acp_call *c, const struct json *j, json_ref content)
{
        struct buf id;
        buf_init(&id, 64 * KIB);
        for (json_ref b = json_child(j, content); b != JSON_NONE; b = json_next(j, content, b)) {
                buf_clear(&id);
                if (json_is(j, json_get(j, b, "type"), "terminal") &&
                    json_string(j, json_get(j, b, "terminalId"), &id, NULL))
                        acp_terminal_attach(r, buf_str(&id), c);
        }
        buf_release(&id);
}

/* Sets _meta without the pieces of terminals, which may be many and are kept elsewhere. */
static void set_meta(struct acp_call *c, const struct json *j, json_ref meta)
{
        static const char *const pieces[] = {
            "terminal_output", "terminal_output_delta", "terminal_info", "terminal_exit", NULL};
        struct json_edits edits;
        struct buf out;
        json_edits_init(&edits);
        buf_init(&out, MESSAGE_MAX);
        json_edit_remove_members(&edits, j, meta, pieces);
        bool any = false;
        for (json_ref k = json_child(j, meta); k != JSON_NONE; k = json_next_key(j, meta, k)) {
                bool piece = false;
                for (const char *const *z = pieces; *z; z++)
                        piece = piece || json_is(j, k, *z);
                any = any || !piece;
        }
        if (any && json_edits_apply(&edits, j, meta, &out) == 0 && !out.failed)
                set(c, STR("_meta"), buf_str(&out));
        json_edits_release(&edits);
        buf_release(&out);
}

static void merge(struct acp_record *r, struct acp_call *c, const struct json *j, json_ref update)
{
        for (json_ref k = json_child(j, update); k != JSON_NONE; k = json_next_key(j, update, k)) {
                json_ref v = json_value(j, k);
                if (json_type(j, v) == JSON_NULL || json_is(j, k, "toolCallId"))
                        continue;
                if (json_is(j, k, "_meta") && json_type(j, v) == JSON_OBJECT)
                        set_meta(c, j, v);
                else
                        set(c, json_inner(j, k), json_raw(j, v));
                if (json_is(j, k, "content"))
                        attach_terminals(r, c, j, v);
        }
}

void acp_call_take(struct acp_record *r, const struct json *j, json_ref update)
{
        char *id = json_dup_string(j, json_get(j, update, "toolCallId"));
        struct acp_call *c = id ? acp_call_find(r, id) : NULL;
        if (!id || !*id || strlen(id) > CALL_ID_MAX) {
                free(id);
                return;
        }
        /* A call belongs to the message with the text before it. A new message begins if the user
         * spoke since, or if the message has the maximum number of calls. */
        if (!c && (r->open == ACP_SAID_USER || r->unwritten_count == CALLS_MAX))
                acp_record_flush(r);
        if (!c)
                c = add(r, id);
        if (c) {
                merge(r, c, j, update);
                acp_terminal_take_meta(r, id, j, json_get(j, update, "_meta"));
                c->over =
                    acp_call_is(c, "status", "completed") || acp_call_is(c, "status", "failed");
                if (c->over && !c->written)
                        acp_record_flush(r);
                acp_call_settle(r, id);
        }
        free(id);
}

void acp_call_add_content(struct acp_record *r, const struct json *j, json_ref update)
{
        char *id = json_dup_string(j, json_get(j, update, "toolCallId"));
        struct acp_call *c = id ? acp_call_find(r, id) : NULL;
        const char *old = c ? acp_call_get(c, "content") : NULL;
        json_ref content = json_get(j, update, "content");
        struct buf list, one;
        struct json again;
        buf_init(&list, MESSAGE_MAX);
        buf_init(&one, MESSAGE_MAX);
        json_init(&again);
        if (c && content != JSON_NONE) {
                size_t n = old ? strlen(old) : 0;
                bool some = n > 2 && old[0] == '[';
                buf_putc(&list, '[');
                if (some)
                        buf_put(&list, old + 1, n - 2);
                buf_puts(&list, some ? "," : "");
                buf_put_str(&list, json_raw(j, content));
                buf_putc(&list, ']');
                if (!list.failed)
                        set(c, STR("content"), buf_str(&list));
                buf_putc(&one, '[');
                buf_put_str(&one, json_raw(j, content));
                buf_putc(&one, ']');
                if (!one.failed && json_parse(&again, one.p, one.n, NULL, NULL) == 0)
                        attach_terminals(r, c, &again, 0);
        }
        json_release(&again);
        buf_release(&list);
        buf_release(&one);
        free(id);
}

/* ---- ends ---- */

static void close_call(struct acp_record *r, struct acp_call *c)
{
        if (!c->written)
                acp_record_flush(r);
        take_out(r, c);
        c->terminal = acp_terminal_of_call(r, c);
        if (c->terminal)
                acp_terminal_take(r, c->terminal);
        struct acp_item *item = acp_item_new(ACP_SAID_RESULT);
        if (item) {
                item->call = c;
                buf_puts(&item->text, c->id);
        } else {
                acp_call_free(c);
        }
        acp_record_emit(r, item);
}

void acp_call_settle(struct acp_record *r, const char *id)
{
        struct acp_call *c = acp_call_find(r, id);
        if (c && c->over && !acp_terminals_open(r, c))
                close_call(r, c);
        acp_terminals_settle_of(r, id);
}

void acp_calls_settle(struct acp_record *r)
{
        struct acp_call *c = r->calls;
        while (c) {
                struct acp_call *next = c->next;
                if (c->over && !acp_terminals_open(r, c))
                        close_call(r, c);
                c = next;
        }
        acp_terminals_settle(r, false);
}

void acp_calls_cancel(struct acp_record *r)
{
        for (struct acp_call *c = r->calls; c; c = c->next)
                if (!c->over)
                        c->over = c->cancelled = true;
}

/* A call without any output gets no result. */
void acp_calls_finish(struct acp_record *r)
{
        while (r->calls) {
                struct acp_call *c = r->calls;
                if (c->over || acp_call_get(c, "content") || acp_call_get(c, "rawOutput") ||
                    acp_terminal_of_call(r, c)) {
                        c->unfinished = !c->over;
                        close_call(r, c);
                } else {
                        take_out(r, c);
                        acp_call_free(c);
                }
        }
}
