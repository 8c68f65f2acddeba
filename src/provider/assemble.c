/*
 * assemble.c - joins the deltas of a reply (assemble.h).
 */
#include "provider/assemble.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"

void assemble_init(struct assemble *a, const struct reply_hooks *hooks)
{
        *a = (struct assemble){.count = 0};
        provider_reader_init(&a->reader, hooks);
        accum_init(&a->message);
        buf_init(&a->role, 256);
        buf_init(&a->usage, 64 * KIB);
}

void assemble_release(struct assemble *a)
{
        for (size_t i = 0; i < a->count; i++) {
                accum_release(&a->calls[i].members);
                accum_release(&a->calls[i].function);
        }
        free(a->calls);
        accum_release(&a->message);
        buf_release(&a->role);
        buf_release(&a->usage);
        provider_reader_release(&a->reader);
}

/* ---- tool calls ---- */

static struct assemble_call *open_call(struct assemble *a, int64_t index)
{
        if (a->count == CALLS_MAX) {
                a->message.failed = STENO_ELIMIT;
                return NULL;
        }
        if (!grow_room(a->calls, a->count, a->cap)) {
                a->message.failed = STENO_ENOMEM;
                return NULL;
        }
        struct assemble_call *c = &a->calls[a->count++];
        *c = (struct assemble_call){.index = index};
        accum_init(&c->members);
        accum_init(&c->function);
        return c;
}

static bool same_id(const struct assemble_call *c, struct str id)
{
        struct accum_member *m = accum_find(&c->members, STR("id"));
        return m && m->kind == ACCUM_TEXT && str_eq(buf_str(&m->value), id);
}

static bool has_id(const struct assemble_call *c)
{
        struct accum_member *m = accum_find(&c->members, STR("id"));
        return m && m->kind == ACCUM_TEXT && m->value.n;
}

/* Are the arguments a whole value already? Then they cannot be continued. */
static bool args_complete(struct assemble *a, const struct assemble_call *c)
{
        struct accum_member *m = accum_find(&c->function, STR("arguments"));
        if (!m || m->kind != ACCUM_TEXT || m->value.n == 0)
                return false;
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_unescape(buf_str(&m->value), &text, NULL);
        bool whole = !text.failed && json_valid(text.p, text.n, NULL);
        if (text.failed)
                a->message.failed = text.failed;
        buf_release(&text);
        return whole;
}

/* Does a fragment with this name continue the call? Without index and id this is hard to decide,
 * because some endpoints repeat the name with every fragment. */
static bool continues(struct assemble *a, const struct assemble_call *c, struct str name)
{
        struct accum_member *old = accum_find(&c->function, STR("name"));
        struct accum_member *args = accum_find(&c->function, STR("arguments"));
        return old && str_eq(buf_str(&old->value), name) && args && args->value.n &&
               !args_complete(a, c);
}

/* Returns the call that a delta belongs to. Opens a new call if needed. */
static struct assemble_call *call_for(struct assemble *a, json_ref delta)
{
        const struct json *j = &a->reader.tape;
        int64_t index = -1;
        if (!json_i64(j, json_get(j, delta, "index"), &index))
                index = -1;
        struct str id = json_inner(j, json_get(j, delta, "id"));
        json_ref function = json_get(j, delta, "function");
        bool named = json_inner(j, json_get(j, function, "name")).n > 0;

        struct assemble_call *found = NULL;
        if (index >= 0) {
                for (size_t i = a->count; i > 0 && !found; i--)
                        if (a->calls[i - 1].index == index)
                                found = &a->calls[i - 1];
                if (found && id.n && has_id(found) && !same_id(found, id))
                        found = NULL;
        } else if (id.n) {
                for (size_t i = a->count; i > 0 && !found; i--)
                        if (same_id(&a->calls[i - 1], id))
                                found = &a->calls[i - 1];
        } else if (a->count) {
                struct assemble_call *last = &a->calls[a->count - 1];
                if (!named || continues(a, last, json_inner(j, json_get(j, function, "name"))))
                        found = last;
        }
        if (found && named && (a->reader.whole || (!id.n && args_complete(a, found))))
                found = NULL;
        return found ? found : open_call(a, index);
}

static void join_name(struct accum *function, struct str key, const struct json *j, json_ref value)
{
        struct accum_member *m = accum_find(function, key);
        if (m && m->kind == ACCUM_TEXT && str_eq(buf_str(&m->value), json_inner(j, value)))
                return; /* some endpoints repeat the name with every fragment */
        accum_join(function, key, j, value);
}

static void join_function(struct assemble_call *c, const struct json *j, json_ref function)
{
        for (json_ref k = json_child(j, function); k != JSON_NONE;
             k = json_next_key(j, function, k)) {
                json_ref v = json_value(j, k);
                struct str key = json_inner(j, k);
                enum json_type type = json_type(j, v);
                if (!accum_is_last(j, function, k))
                        continue;
                if (str_is(key, "name"))
                        join_name(&c->function, key, j, v);
                else if (!str_is(key, "arguments"))
                        accum_set(&c->function, key, j, v);
                else if (type == JSON_OBJECT || type == JSON_ARRAY)
                        accum_set_text(&c->function, key, json_raw(j, v));
                else
                        accum_join(&c->function, key, j, v);
        }
}

static void join_call(struct assemble *a, json_ref delta)
{
        const struct json *j = &a->reader.tape;
        if (json_type(j, delta) != JSON_OBJECT) {
                a->reader.skipped++;
                return;
        }
        struct assemble_call *c = call_for(a, delta);
        if (!c)
                return;
        for (json_ref k = json_child(j, delta); k != JSON_NONE; k = json_next_key(j, delta, k)) {
                json_ref v = json_value(j, k);
                struct str key = json_inner(j, k);
                if (str_is(key, "index"))
                        continue;
                if (str_is(key, "function"))
                        join_function(c, j, v);
                else if (str_is(key, "custom"))
                        accum_join(&c->members, key, j, v);
                else if (!str_is(key, "id") || json_inner(j, v).n)
                        accum_set(&c->members, key, j, v);
        }
        if (c->members.failed || c->function.failed)
                a->message.failed = c->members.failed ? c->members.failed : c->function.failed;
}

/* Joins the older form: {"function_call":{"name","arguments"}}, at most one. */
static void join_function_call(struct assemble *a, json_ref function)
{
        if (json_type(&a->reader.tape, function) != JSON_OBJECT)
                return;
        struct assemble_call *c = a->count ? &a->calls[a->count - 1] : open_call(a, -1);
        if (!c)
                return;
        c->legacy = a->reader.verbatim && !has_id(c);
        join_function(c, &a->reader.tape, function);
}

/* ---- text ---- */

/* Collects the text and the thinking of parts that came in a list. Thinking is a text or a list of
 * texts. */
static void put_parts(const struct json *j, json_ref list, struct buf *text, struct buf *thinking)
{
        for (json_ref p = json_child(j, list); p != JSON_NONE; p = json_next(j, list, p)) {
                json_ref thought = json_get(j, p, "thinking");
                if (text)
                        json_string(j, json_get(j, p, "text"), text, NULL);
                if (!thinking || json_string(j, thought, thinking, NULL))
                        continue;
                put_parts(j, thought, thinking, NULL);
        }
}

static int put_parts_text(const struct accum_member *m, struct buf *text, struct buf *thinking)
{
        struct buf list;
        struct json j;
        buf_init(&list, MESSAGE_MAX);
        json_init(&j);
        accum_put_value(m, &list);
        int rc = list.failed ? list.failed : json_parse(&j, list.p, list.n, NULL, NULL);
        if (rc == 0)
                put_parts(&j, 0, text, thinking);
        json_release(&j);
        buf_release(&list);
        return rc;
}

/* Passes on what this piece adds, if the content so far is not only text. */
static int tell_parts(struct assemble *a, json_ref value)
{
        const struct json *j = &a->reader.tape;
        const struct reply_hooks *hooks = &a->reader.hooks;
        struct buf text, thinking;
        if (!hooks->piece)
                return 0;
        buf_init(&text, MESSAGE_MAX);
        buf_init(&thinking, MESSAGE_MAX);
        if (!json_string(j, value, &text, NULL))
                put_parts(j, value, &text, &thinking);
        int rc = text.failed ? text.failed : thinking.failed;
        if (rc == 0 && thinking.n)
                rc = hooks->piece(hooks->ctx, REPLY_THINKING, buf_str(&thinking));
        if (rc == 0 && text.n)
                rc = hooks->piece(hooks->ctx, REPLY_TEXT, buf_str(&text));
        buf_release(&text);
        buf_release(&thinking);
        return rc;
}

static bool is_thinking(struct str key)
{
        return str_is(key, "reasoning_content") || str_is(key, "reasoning") ||
               str_is(key, "thinking");
}

static bool is_dropped(struct str key)
{
        return str_is(key, "id") || str_is(key, "index");
}

static int join_delta(struct assemble *a, json_ref delta)
{
        const struct json *j = &a->reader.tape;
        int rc = 0;
        for (json_ref k = json_child(j, delta); k != JSON_NONE && rc == 0;
             k = json_next_key(j, delta, k)) {
                json_ref v = json_value(j, k);
                struct str key = json_inner(j, k);
                if (!accum_is_last(j, delta, k))
                        continue;
                if (str_is(key, "role")) {
                        if (a->role.n == 0)
                                buf_put_str(&a->role, json_inner(j, v));
                } else if (str_is(key, "tool_calls")) {
                        for (json_ref c = json_child(j, v); c != JSON_NONE; c = json_next(j, v, c))
                                join_call(a, c);
                } else if (str_is(key, "function_call")) {
                        join_function_call(a, v);
                } else if (!is_dropped(key)) {
                        struct accum_member *m = accum_join(&a->message, key, j, v);
                        if (str_is(key, "content") && m && m->kind == ACCUM_LIST)
                                rc = tell_parts(a, v);
                        else if (str_is(key, "content"))
                                rc = accum_tell(m, &a->reader.hooks, REPLY_TEXT);
                        else if (is_thinking(key))
                                rc = accum_tell(m, &a->reader.hooks, REPLY_THINKING);
                }
                if (json_type(j, v) != JSON_NULL && !str_is(key, "role") && json_raw(j, v).n > 2)
                        a->reader.any = true;
        }
        if (a->role.failed == STENO_ENOMEM)
                return STENO_ENOMEM;
        return rc ? rc : a->message.failed;
}

/* ---- chunks ---- */

static void take_usage(struct assemble *a, json_ref usage)
{
        if (json_type(&a->reader.tape, usage) != JSON_OBJECT)
                return;
        buf_clear(&a->usage);
        buf_put_str(&a->usage, json_raw(&a->reader.tape, usage));
}

static bool is_chosen(const struct assemble *a, json_ref choice)
{
        const struct json *j = &a->reader.tape;
        int64_t index = 0;
        json_i64(j, json_get(j, choice, "index"), &index);
        return index == a->reader.choice;
}

static json_ref find_choice(struct assemble *a)
{
        const struct json *j = &a->reader.tape;
        json_ref choices = json_get(j, 0, "choices"), found = JSON_NONE;
        if (a->reader.verbatim && a->reader.whole)
                return json_at(j, choices, (uint32_t)a->reader.choice);
        for (json_ref c = json_child(j, choices); c != JSON_NONE; c = json_next(j, choices, c)) {
                if (!is_chosen(a, c))
                        continue;
                if (found == JSON_NONE)
                        found = c;
                else
                        a->reader.skipped++;
        }
        return found;
}

static int take(struct assemble *a, struct str data, const char *member)
{
        struct json *j = &a->reader.tape;
        int rc;
        if (!provider_reader_parse(&a->reader, data, &rc))
                return rc;
        take_usage(a, json_get(j, 0, "usage"));
        if (a->usage.failed == STENO_ENOMEM)
                return STENO_ENOMEM;
        json_ref choice = find_choice(a);
        if (choice == JSON_NONE)
                return 0;
        json_ref delta = json_get(j, choice, member);
        if (json_type(j, delta) != JSON_OBJECT && json_raw(j, delta).n > 2)
                a->reader.skipped += json_type(j, delta) != JSON_NULL;
        rc = json_type(j, delta) == JSON_OBJECT ? join_delta(a, delta) : 0;
        provider_reader_finish(&a->reader, json_get(j, choice, "finish_reason"));
        return rc;
}

int assemble_chunk(struct assemble *a, struct str data)
{
        data = str_trim(data);
        if (provider_reader_is_over(&a->reader) || data.n == 0)
                return 0;
        if (str_is(data, "[DONE]")) {
                a->reader.done = true;
                return 0;
        }
        return take(a, data, "delta");
}

int assemble_body(struct assemble *a, struct str text)
{
        a->reader.whole = true;
        int rc = take(a, str_trim(text), "message");
        if (rc == 0 && !a->reader.fault.code &&
            json_type(&a->reader.tape, json_get(&a->reader.tape, 0, "choices")) != JSON_ARRAY)
                reply_fault_set(&a->reader.fault, "LLM_BAD_REPLY", true,
                    "the endpoint's answer has no choices");
        return rc;
}

/* ---- the end ---- */

static const struct provider_finish FINISHES[] = {
    {"stop", FINISH_STOP},
    {"tool_calls", FINISH_TOOLS},
    {"function_call", FINISH_TOOLS},
    {"length", FINISH_LENGTH},
    {"max_tokens", FINISH_LENGTH},
    {"content_filter", FINISH_FILTER},
    {NULL, FINISH_NONE},
};

/* Reads the call of a custom tool, which has a name and a text of its own. False: it is another
 * kind of call. */
static bool is_custom(const struct assemble_call *c)
{
        const struct accum_member *m = accum_find(&c->members, STR("custom"));
        return m && c->function.count == 0 &&
               (m->kind == ACCUM_OBJECT ||
                   (m->kind == ACCUM_RAW && str_starts(buf_str(&m->value), "{")));
}

static int finish_custom(struct assemble *a, struct assemble_call *c, struct reply *r)
{
        struct buf value, args;
        struct json j;
        buf_init(&value, MESSAGE_MAX);
        buf_init(&args, MESSAGE_MAX);
        json_init(&j);
        accum_put_value(accum_find(&c->members, STR("custom")), &value);
        int rc = value.failed ? value.failed : json_parse(&j, value.p, value.n, NULL, NULL);
        char *id = accum_dup(&c->members, "id");
        char *name = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "name"));
        json_string(&j, json_get(&j, 0, "input"), &args, NULL);
        const char *used = NULL;
        if (rc == 0 && id && !args.failed)
                used = reply_add_call(r, &a->reader.hooks, id, name ? name : "", buf_str(&args));
        if (used && strcmp(used, id) != 0 && !a->reader.verbatim)
                accum_set_text(&c->members, STR("id"), str_of(used));
        free(id);
        free(name);
        json_release(&j);
        buf_release(&args);
        buf_release(&value);
        return used && !c->members.failed ? 0 : STENO_ENOMEM;
}

static int finish_call(struct assemble *a, struct assemble_call *c, struct reply *r)
{
        struct buf args;
        if (is_custom(c))
                return finish_custom(a, c, r);
        buf_init(&args, MESSAGE_MAX);
        char *id = accum_dup(&c->members, "id");
        char *name = accum_dup(&c->function, "name");
        struct accum_member *told = accum_find(&c->function, STR("arguments"));
        if (told && told->kind == ACCUM_TEXT)
                json_unescape(buf_str(&told->value), &args, NULL);
        else if (!told && !a->reader.verbatim)
                accum_set_text(&c->function, STR("arguments"), STR(""));
        const char *used = NULL;
        if (id && name && !args.failed)
                used = reply_add_call(r, &a->reader.hooks, id, name, buf_str(&args));
        if (used && strcmp(used, id) != 0 && !a->reader.verbatim)
                accum_set_text(&c->members, STR("id"), str_of(used));
        free(id);
        free(name);
        buf_release(&args);
        return used && !c->members.failed && !c->function.failed ? 0 : STENO_ENOMEM;
}

static void put_function(const struct assemble_call *c, struct buf *out)
{
        buf_putc(out, '{');
        accum_put_members(&c->function, out, false);
        buf_putc(out, '}');
}

static void put_call(const struct assemble *a, const struct assemble_call *c, struct buf *out)
{
        buf_putc(out, '{');
        accum_put_members(&c->members, out, false);
        if (!a->reader.verbatim && !is_custom(c) && !accum_find(&c->members, STR("type")))
                buf_puts(out, ",\"type\":\"function\"");
        if (c->function.count || (!a->reader.verbatim && !is_custom(c))) {
                buf_puts(out, c->members.count ? ",\"function\":" : "\"function\":");
                put_function(c, out);
        }
        buf_putc(out, '}');
}

/* Writes all calls except one in the older form, which is a member of its own. */
static void put_calls(const struct assemble *a, struct buf *out)
{
        size_t n = 0;
        for (size_t i = 0; i < a->count; i++) {
                if (a->calls[i].legacy)
                        continue;
                buf_puts(out, n++ ? "," : ",\"tool_calls\":[");
                put_call(a, &a->calls[i], out);
        }
        if (n)
                buf_putc(out, ']');
        for (size_t i = 0; i < a->count; i++)
                if (a->calls[i].legacy) {
                        buf_puts(out, ",\"function_call\":");
                        put_function(&a->calls[i], out);
                }
}

static void put_message(const struct assemble *a, struct buf *out)
{
        buf_puts(out, "{\"role\":\"assistant\"");
        accum_put_members(&a->message, out, true);
        if (!accum_find(&a->message, STR("content")))
                buf_puts(out, a->count ? ",\"content\":null" : ",\"content\":\"\"");
        put_calls(a, out);
        buf_putc(out, '}');
}

static int put_text(const struct assemble *a, struct buf *out)
{
        struct accum_member *m = accum_find(&a->message, STR("content"));
        if (m && m->kind == ACCUM_TEXT)
                json_unescape(buf_str(&m->value), out, NULL);
        else if (m && m->kind == ACCUM_LIST)
                return put_parts_text(m, out, NULL);
        return 0;
}

static int put_thinking(const struct assemble *a, struct buf *out)
{
        const struct accum_member *content = accum_find(&a->message, STR("content"));
        for (size_t i = 0; i < a->message.count; i++) {
                const struct accum_member *m = &a->message.list[i];
                if (m->kind == ACCUM_TEXT && is_thinking(buf_str(&m->key)))
                        json_unescape(buf_str(&m->value), out, NULL);
        }
        return content && content->kind == ACCUM_LIST ? put_parts_text(content, NULL, out) : 0;
}

static int read_usage(struct assemble *a, struct reply *r)
{
        buf_put_str(&r->usage, buf_str(&a->usage));
        if (r->usage.failed == STENO_ENOMEM)
                return STENO_ENOMEM;
        if (a->usage.n == 0)
                return 0;
        int rc = json_parse(&a->reader.tape, a->usage.p, a->usage.n, NULL, NULL);
        if (rc == STENO_ENOMEM)
                return rc;
        uint64_t in = 0, out = 0;
        json_u64(&a->reader.tape, json_get(&a->reader.tape, 0, "prompt_tokens"), &in);
        json_u64(&a->reader.tape, json_get(&a->reader.tape, 0, "completion_tokens"), &out);
        if (!json_u64(
                &a->reader.tape, json_get(&a->reader.tape, 0, "total_tokens"), &r->total_tokens))
                r->total_tokens = in + out;
        return 0;
}

int assemble_finish(struct assemble *a, struct reply *r, struct steno_error *err)
{
        r->finish = provider_reader_finish_of(&a->reader, FINISHES);
        for (size_t i = 0; i < a->count; i++)
                if (finish_call(a, &a->calls[i], r) != 0)
                        return error_nomem(err);
        reply_doubt_last(r);
        a->reader.skipped += a->message.replaced;
        put_message(a, &r->message);
        if (put_text(a, &r->text) != 0 || read_usage(a, r) != 0)
                return error_nomem(err);
        if (put_thinking(a, &r->thinking) != 0)
                return error_nomem(err);
        reply_judge(r, &a->reader.fault, a->reader.whole || a->reader.done, a->reader.any);
        int rc = buf_check(&r->message, err);
        if (rc == 0)
                rc = buf_check(&r->thinking, err);
        return rc ? rc : buf_check(&r->text, err);
}

/* ---- on the heap ---- */

static int read_event(struct provider_reader *reader, struct str name, struct str data)
{
        (void)name;
        return assemble_chunk((struct assemble *)reader, data);
}

static int read_body(struct provider_reader *reader, struct str json)
{
        return assemble_body((struct assemble *)reader, json);
}

static int finish(struct provider_reader *reader, struct reply *out, struct steno_error *err)
{
        return assemble_finish((struct assemble *)reader, out, err);
}

static void reader_free(struct provider_reader *reader)
{
        struct assemble *a = (struct assemble *)reader;
        assemble_release(a);
        free(a);
}

struct provider_reader *assemble_reader(const struct reply_hooks *hooks)
{
        static const struct provider_reader_ops ops = {read_event, read_body, finish, reader_free};
        struct assemble *a = malloc(sizeof *a);
        if (!a)
                return NULL;
        assemble_init(a, hooks);
        a->reader.ops = &ops;
        return &a->reader;
}
