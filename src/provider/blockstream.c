/*
 * blockstream.c - joins the content blocks of a reply (blockstream.h).
 */
#include "provider/blockstream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"

void blockstream_init(struct blockstream *b, const struct reply_hooks *hooks)
{
        *b = (struct blockstream){.count = 0};
        provider_reader_init(&b->reader, hooks);
        accum_init(&b->message);
        accum_init(&b->usage);
}

void blockstream_release(struct blockstream *b)
{
        for (size_t i = 0; i < b->count; i++) {
                accum_release(&b->list[i].members);
                buf_release(&b->list[i].input);
        }
        free(b->list);
        accum_release(&b->message);
        accum_release(&b->usage);
        provider_reader_release(&b->reader);
}

static int failure(const struct blockstream *b)
{
        if (b->message.failed)
                return b->message.failed;
        return b->usage.failed;
}

/* ---- blocks ---- */

static struct blockstream_block *open_block(struct blockstream *b, int64_t index)
{
        if (b->count == CALLS_MAX) {
                b->message.failed = STENO_ELIMIT;
                return NULL;
        }
        if (!grow_room(b->list, b->count, b->cap)) {
                b->message.failed = STENO_ENOMEM;
                return NULL;
        }
        struct blockstream_block *k = &b->list[b->count++];
        *k = (struct blockstream_block){.index = index};
        accum_init(&k->members);
        buf_init(&k->input, MESSAGE_MAX);
        return k;
}

/* Returns the block with this index. If an endpoint uses an index twice, returns the newest. NULL:
 * none. */
static struct blockstream_block *find_block(struct blockstream *b, int64_t index)
{
        for (size_t i = b->count; i > 0; i--)
                if (b->list[i - 1].index == index)
                        return &b->list[i - 1];
        return NULL;
}

static int64_t index_of(const struct blockstream *b, json_ref event)
{
        int64_t index = 0;
        return json_i64(&b->reader.tape, json_get(&b->reader.tape, event, "index"), &index)
                   ? index
                   : (int64_t)b->count - 1;
}

static int tell(struct blockstream *b, struct blockstream_block *k, const char *member)
{
        struct accum_member *m = accum_find(&k->members, str_of(member));
        enum reply_piece kind = strcmp(member, "text") == 0 ? REPLY_TEXT : REPLY_THINKING;
        if (m && m->kind == ACCUM_TEXT && m->value.n)
                b->reader.any = true;
        return accum_tell(m, &b->reader.hooks, kind);
}

static int tell_all(struct blockstream *b, struct blockstream_block *k)
{
        int rc = tell(b, k, "text");
        return rc ? rc : tell(b, k, "thinking");
}

static bool is_call(const struct blockstream_block *k)
{
        struct accum_member *type = accum_find(&k->members, STR("type"));
        return type && str_is(buf_str(&type->value), "tool_use");
}

static int take_block(struct blockstream *b, json_ref block, int64_t index)
{
        const struct json *j = &b->reader.tape;
        if (json_type(j, block) != JSON_OBJECT) {
                b->reader.skipped++;
                return 0;
        }
        struct blockstream_block *k = open_block(b, index);
        if (!k)
                return failure(b);
        for (json_ref key = json_child(j, block); key != JSON_NONE;
             key = json_next_key(j, block, key))
                accum_set(&k->members, json_inner(j, key), j, json_value(j, key));
        if (k->members.failed)
                return k->members.failed;
        struct accum_member *type = accum_find(&k->members, STR("type"));
        if (!type || !str_is(buf_str(&type->value), "text"))
                b->reader.any = true; /* only a text may be empty at its start */
        return tell_all(b, k);
}

/* Adds a citation of a text. It comes as an object and belongs into the list of citations. */
static void join_citation(struct blockstream_block *k, const struct json *j, json_ref citation)
{
        struct buf list;
        struct json one;
        buf_init(&list, MESSAGE_MAX);
        json_init(&one);
        buf_putc(&list, '[');
        buf_put_str(&list, json_raw(j, citation));
        buf_putc(&list, ']');
        if (list.failed || json_parse(&one, list.p, list.n, NULL, NULL) != 0)
                k->members.failed = STENO_ENOMEM;
        else
                accum_join(&k->members, STR("citations"), &one, 0);
        json_release(&one);
        buf_release(&list);
}

static int take_delta(struct blockstream *b, struct blockstream_block *k, json_ref delta)
{
        const struct json *j = &b->reader.tape;
        for (json_ref key = json_child(j, delta); key != JSON_NONE;
             key = json_next_key(j, delta, key)) {
                json_ref v = json_value(j, key);
                struct str name = json_inner(j, key);
                if (str_is(name, "type") || !accum_is_last(j, delta, key))
                        continue;
                if (str_is(name, "partial_json")) {
                        buf_put_str(&k->input, json_inner(j, v));
                        k->streamed = true;
                } else if (str_is(name, "citation")) {
                        join_citation(k, j, v);
                } else {
                        accum_join(&k->members, name, j, v);
                }
        }
        if (k->members.failed || k->input.failed)
                return k->members.failed ? k->members.failed : k->input.failed;
        return tell_all(b, k);
}

/* ---- the message ---- */

bool blockstream_is_of_answer(struct str key)
{
        static const char *const names[] = {"id", "type", "role", "model", "content", "stop_reason",
            "stop_sequence", "stop_details", "usage", "container"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (str_is(key, names[i]))
                        return true;
        return false;
}

static void take_usage(struct blockstream *b, json_ref usage)
{
        const struct json *j = &b->reader.tape;
        if (json_type(j, usage) != JSON_OBJECT)
                return;
        for (json_ref k = json_child(j, usage); k != JSON_NONE; k = json_next_key(j, usage, k))
                accum_set(&b->usage, json_inner(j, k), j, json_value(j, k));
}

static int take_message(struct blockstream *b, json_ref message)
{
        const struct json *j = &b->reader.tape;
        int rc = 0;
        for (json_ref k = json_child(j, message); k != JSON_NONE; k = json_next_key(j, message, k))
                if (!blockstream_is_of_answer(json_inner(j, k)))
                        accum_set(&b->message, json_inner(j, k), j, json_value(j, k));
        take_usage(b, json_get(j, message, "usage"));
        provider_reader_finish(&b->reader, json_get(j, message, "stop_reason"));
        json_ref content = json_get(j, message, "content");
        for (json_ref c = json_child(j, content); c != JSON_NONE && rc == 0;
             c = json_next(j, content, c))
                rc = take_block(b, c, (int64_t)b->count);
        return rc ? rc : failure(b);
}

/* ---- events ---- */

int blockstream_event(struct blockstream *b, struct str data)
{
        const struct json *j = &b->reader.tape;
        int rc;
        data = str_trim(data);
        if (provider_reader_is_over(&b->reader) || data.n == 0)
                return 0;
        if (!provider_reader_parse(&b->reader, data, &rc))
                return rc;
        json_ref type = json_get(j, 0, "type");
        if (json_is(j, type, "message_start"))
                return take_message(b, json_get(j, 0, "message"));
        if (json_is(j, type, "content_block_start"))
                return take_block(b, json_get(j, 0, "content_block"), index_of(b, 0));
        if (json_is(j, type, "content_block_delta")) {
                struct blockstream_block *k = find_block(b, index_of(b, 0));
                b->reader.skipped += k == NULL;
                return k ? take_delta(b, k, json_get(j, 0, "delta")) : 0;
        }
        if (json_is(j, type, "message_delta")) {
                provider_reader_finish(
                    &b->reader, json_get(j, json_get(j, 0, "delta"), "stop_reason"));
                take_usage(b, json_get(j, 0, "usage"));
                return failure(b);
        }
        if (json_is(j, type, "message_stop"))
                b->reader.done = true;
        return 0;
}

int blockstream_body(struct blockstream *b, struct str text)
{
        int rc;
        b->reader.whole = true;
        if (!provider_reader_parse(&b->reader, str_trim(text), &rc))
                return rc;
        if (json_type(&b->reader.tape, json_get(&b->reader.tape, 0, "content")) != JSON_ARRAY) {
                if (!b->reader.fault.code)
                        reply_fault_set(&b->reader.fault, "LLM_BAD_REPLY", true,
                            "the endpoint's answer has no content");
                return 0;
        }
        return take_message(b, 0);
}

/* ---- the end ---- */

static const struct provider_finish FINISHES[] = {
    {"end_turn", FINISH_STOP},
    {"stop_sequence", FINISH_STOP},
    {"tool_use", FINISH_TOOLS},
    {"max_tokens", FINISH_LENGTH},
    {"model_context_window_exceeded", FINISH_LENGTH},
    {"refusal", FINISH_FILTER},
    {NULL, FINISH_NONE},
};

/* Replaces a member by JSON text. */
static void set_json(struct accum *a, struct str key, struct str json)
{
        struct json j;
        json_init(&j);
        if (json_parse(&j, json.p, json.n, NULL, NULL) != 0)
                a->failed = STENO_ENOMEM; /* the JSON is known to be valid */
        else
                accum_set(a, key, &j, 0);
        json_release(&j);
}

/* If the input of a block came in fragments, makes it a member of the block. `args` gets the text
 * that the model wrote. */
static void settle_input(struct blockstream_block *k, struct buf *args)
{
        struct accum_member *m = accum_find(&k->members, STR("input"));
        if (!k->streamed || k->input.n == 0) {
                if (m)
                        accum_put_value(m, args);
                return;
        }
        json_unescape(buf_str(&k->input), args, NULL);
        struct str text = str_trim(buf_str(args));
        if (args->failed)
                return;
        if (json_valid(text.p, text.n, NULL))
                set_json(&k->members, STR("input"), text);
        else
                accum_set_text(&k->members, STR("input"), buf_str(args));
}

static int finish_block(struct blockstream *b, struct blockstream_block *k, struct reply *r)
{
        struct buf args;
        buf_init(&args, MESSAGE_MAX);
        settle_input(k, &args);
        const char *used = "";
        if (is_call(k) && !args.failed) {
                char *id = accum_dup(&k->members, "id");
                char *name = accum_dup(&k->members, "name");
                used = id && name ? reply_add_call(r, &b->reader.hooks, id, name, buf_str(&args))
                                  : NULL;
                if (used && strcmp(used, id) != 0 && !b->reader.verbatim)
                        accum_set_text(&k->members, STR("id"), str_of(used));
                free(id);
                free(name);
        }
        bool kept = used && !args.failed && !k->members.failed;
        buf_release(&args);
        return kept ? 0 : STENO_ENOMEM;
}

static void put_message(const struct blockstream *b, struct buf *out)
{
        buf_puts(out, "{\"role\":\"assistant\"");
        accum_put_members(&b->message, out, true);
        buf_puts(out, ",\"content\":[");
        for (size_t i = 0; i < b->count; i++) {
                buf_puts(out, i ? ",{" : "{");
                accum_put_members(&b->list[i].members, out, false);
                buf_putc(out, '}');
        }
        buf_puts(out, "]}");
}

static void put_decoded(const struct blockstream *b, const char *member, struct buf *out)
{
        for (size_t i = 0; i < b->count; i++) {
                struct accum_member *m = accum_find(&b->list[i].members, str_of(member));
                if (m && m->kind == ACCUM_TEXT)
                        json_unescape(buf_str(&m->value), out, NULL);
        }
}

static void read_usage(const struct blockstream *b, struct reply *r)
{
        static const char *const parts[] = {"input_tokens", "cache_creation_input_tokens",
            "cache_read_input_tokens", "output_tokens"};
        if (b->usage.count == 0)
                return;
        buf_putc(&r->usage, '{');
        accum_put_members(&b->usage, &r->usage, false);
        buf_putc(&r->usage, '}');
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                struct accum_member *m = accum_find(&b->usage, str_of(parts[i]));
                if (m && m->kind == ACCUM_RAW && buf_cstr(&m->value))
                        r->total_tokens += strtoull(m->value.p, NULL, 10);
        }
}

int blockstream_finish(struct blockstream *b, struct reply *r, struct steno_error *err)
{
        r->finish = provider_reader_finish_of(&b->reader, FINISHES);
        size_t before = 0; /* number of calls before the last block */
        for (size_t i = 0; i < b->count; i++) {
                before = r->count;
                if (finish_block(b, &b->list[i], r) != 0)
                        return error_nomem(err);
        }
        if (r->count > before)
                reply_doubt_last(r);
        put_message(b, &r->message);
        put_decoded(b, "text", &r->text);
        put_decoded(b, "thinking", &r->thinking);
        read_usage(b, r);
        reply_judge(r, &b->reader.fault, b->reader.whole || b->reader.done, b->reader.any);
        const struct buf *const made[] = {&r->message, &r->text, &r->thinking, &r->usage};
        for (size_t i = 0; i < sizeof made / sizeof *made; i++)
                if (made[i]->failed)
                        return buf_check(made[i], err);
        return 0;
}

/* ---- on the heap ---- */

static int read_event(struct provider_reader *reader, struct str name, struct str data)
{
        (void)name;
        return blockstream_event((struct blockstream *)reader, data);
}

static int read_body(struct provider_reader *reader, struct str json)
{
        return blockstream_body((struct blockstream *)reader, json);
}

static int finish(struct provider_reader *reader, struct reply *out, struct steno_error *err)
{
        return blockstream_finish((struct blockstream *)reader, out, err);
}

static void reader_free(struct provider_reader *reader)
{
        struct blockstream *b = (struct blockstream *)reader;
        blockstream_release(b);
        free(b);
}

struct provider_reader *blockstream_reader(const struct reply_hooks *hooks)
{
        static const struct provider_reader_ops ops = {read_event, read_body, finish, reader_free};
        struct blockstream *b = malloc(sizeof *b);
        if (!b)
                return NULL;
        blockstream_init(b, hooks);
        b->reader.ops = &ops;
        return &b->reader;
}
