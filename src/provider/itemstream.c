/*
 * itemstream.c - collects the items of a reply (itemstream.h).
 */
#include "provider/itemstream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"

/* ---- items ---- */

static int keep_call(struct itemstream *s, struct str raw)
{
        if (s->count == CALLS_MAX)
                return STENO_ELIMIT;
        if (!grow_room(s->calls, s->count, s->cap))
                return STENO_ENOMEM;
        struct itemstream_call *c = &s->calls[s->count++];
        buf_init(&c->raw, MESSAGE_MAX);
        buf_put_str(&c->raw, raw);
        return c->raw.failed;
}

/* Writes the texts in the parts of a message or a summary. */
static void put_texts(struct buf *out, const struct json *j, json_ref parts)
{
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                json_ref text = json_get(j, p, "text");
                if (text == JSON_NONE)
                        text = json_get(j, p, "refusal");
                buf_put_str(out, json_inner(j, text));
        }
}

static void keep_item(struct itemstream *s, struct str raw)
{
        if (s->items.n)
                buf_putc(&s->items, ',');
        buf_put_str(&s->items, raw);
}

static int take_item(struct itemstream *s, json_ref item)
{
        const struct json *j = &s->reader.tape;
        json_ref type = json_get(j, item, "type");
        if (json_type(j, item) != JSON_OBJECT)
                return 0;
        s->reader.any = true;
        if (json_is(j, type, "function_call"))
                return keep_call(s, json_raw(j, item));
        if (json_is(j, type, "message")) {
                put_texts(&s->text, j, json_get(j, item, "content"));
                return s->text.failed;
        }
        if (json_is(j, type, "reasoning")) {
                put_texts(&s->summary, j, json_get(j, item, "summary"));
                /* Without encrypted content, the endpoint would have to look up the item, which it
                 * does not keep. */
                if (json_inner(j, json_get(j, item, "encrypted_content")).n == 0)
                        return s->summary.failed;
        }
        keep_item(s, json_raw(j, item));
        return s->items.failed ? s->items.failed : s->summary.failed;
}

/* ---- events ---- */

static int tell(struct itemstream *s, const char *member, enum reply_piece kind)
{
        const struct json *j = &s->reader.tape;
        json_ref delta = json_get(j, 0, "delta");
        if (json_inner(j, delta).n == 0)
                return 0;
        s->reader.any = true;
        struct accum_member *m = accum_join(&s->shown, str_of(member), j, delta);
        return m ? accum_tell(m, &s->reader.hooks, kind) : s->shown.failed;
}

static int take_end(struct itemstream *s, json_ref response)
{
        const struct json *j = &s->reader.tape;
        json_ref usage = json_get(j, response, "usage"), status = json_get(j, response, "status");
        json_ref details = json_get(j, response, "incomplete_details");
        json_ref reason = json_get(j, details, "reason");
        if (json_type(j, usage) == JSON_OBJECT) {
                buf_clear(&s->usage);
                buf_put_str(&s->usage, json_raw(j, usage));
        }
        if (json_is(j, status, "failed") || json_is(j, status, "cancelled")) {
                struct str why = json_raw(j, response);
                if (!reply_fault_json(&s->reader.fault, 0, why))
                        reply_fault_set(
                            &s->reader.fault, "LLM_BAD_REPLY", true, "the response failed");
        }
        provider_reader_finish(&s->reader, json_type(j, reason) == JSON_STRING ? reason : status);
        s->reader.done = true;
        return s->usage.failed;
}

static int read_event(struct provider_reader *reader, struct str name, struct str data)
{
        struct itemstream *s = (struct itemstream *)reader;
        const struct json *j = &reader->tape;
        int rc;
        (void)name;
        data = str_trim(data);
        if (reader->fault.code || reader->done || data.n == 0 || str_is(data, "[DONE]"))
                return 0;
        if (!provider_reader_parse(reader, data, &rc))
                return rc;
        json_ref type = json_get(j, 0, "type");
        if (json_is(j, type, "response.output_item.done"))
                return take_item(s, json_get(j, 0, "item"));
        if (json_is(j, type, "response.output_text.delta") ||
            json_is(j, type, "response.refusal.delta"))
                return tell(s, "text", REPLY_TEXT);
        if (json_is(j, type, "response.reasoning_summary_text.delta") ||
            json_is(j, type, "response.reasoning_text.delta"))
                return tell(s, "thinking", REPLY_THINKING);
        if (json_is(j, type, "response.completed") || json_is(j, type, "response.incomplete") ||
            json_is(j, type, "response.failed"))
                return take_end(s, json_get(j, 0, "response"));
        if (json_is(j, type, "error")) {
                char *words = json_dup_string(j, json_get(j, 0, "message"));
                reply_fault_set(&reader->fault, "LLM_SERVER", true, "%.300s", words ? words : "");
                free(words);
        }
        return 0;
}

/* Passes on the text of a whole answer, as a stream would have done. */
static int tell_whole(struct itemstream *s)
{
        struct buf text;
        int rc = 0;
        buf_init(&text, MESSAGE_MAX);
        json_unescape(buf_str(&s->summary), &text, NULL);
        if (text.n && s->reader.hooks.piece)
                rc = s->reader.hooks.piece(s->reader.hooks.ctx, REPLY_THINKING, buf_str(&text));
        buf_clear(&text);
        json_unescape(buf_str(&s->text), &text, NULL);
        if (rc == 0 && text.n && s->reader.hooks.piece)
                rc = s->reader.hooks.piece(s->reader.hooks.ctx, REPLY_TEXT, buf_str(&text));
        buf_release(&text);
        return rc;
}

static int read_body(struct provider_reader *reader, struct str body)
{
        struct itemstream *s = (struct itemstream *)reader;
        int rc;
        reader->whole = true;
        if (!provider_reader_parse(reader, str_trim(body), &rc))
                return rc;
        json_ref output = json_get(&reader->tape, 0, "output");
        if (json_type(&reader->tape, output) != JSON_ARRAY) {
                reply_fault_set(
                    &reader->fault, "LLM_BAD_REPLY", true, "the endpoint's answer has no output");
                return 0;
        }
        for (json_ref i = json_child(&reader->tape, output); i != JSON_NONE && rc == 0;
             i = json_next(&reader->tape, output, i))
                rc = take_item(s, i);
        if (rc == 0)
                rc = take_end(s, 0);
        return rc ? rc : tell_whole(s);
}

/* ---- the end ---- */

static const struct provider_finish FINISHES[] = {
    {"completed", FINISH_STOP},
    {"max_output_tokens", FINISH_LENGTH},
    {"content_filter", FINISH_FILTER},
    {NULL, FINISH_NONE},
};

static int finish_call(
    struct itemstream *s, const struct buf *raw, struct reply *r, struct jsonw *w)
{
        struct json j;
        struct buf args;
        json_init(&j);
        buf_init(&args, MESSAGE_MAX);
        int rc = json_parse(&j, raw->p, raw->n, NULL, NULL);
        char *id = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "call_id"));
        char *name = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "name"));
        json_ref arguments = rc ? JSON_NONE : json_get(&j, 0, "arguments");
        json_string(&j, arguments, &args, NULL);
        const char *used = rc || args.failed ? NULL
                                             : reply_add_call(r, &s->reader.hooks, id ? id : "",
                                                   name ? name : "", buf_str(&args));
        if (used) {
                jsonw_object(w);
                jsonw_field_cstr(w, "id", used);
                jsonw_field_cstr(w, "type", "function");
                jsonw_key(w, "function");
                jsonw_object(w);
                jsonw_field_cstr(w, "name", name ? name : "");
                jsonw_field_raw(w, "arguments",
                    json_type(&j, arguments) == JSON_STRING ? json_raw(&j, arguments)
                                                            : STR("\"\""));
                jsonw_object_end(w);
                jsonw_object_end(w);
                /* A completed item says itself that it is whole. */
                if (raw == &s->calls[s->count - 1].raw &&
                    !json_is(&j, json_get(&j, 0, "status"), "completed"))
                        reply_doubt_last(r);
        }
        free(id);
        free(name);
        buf_release(&args);
        json_release(&j);
        return used ? 0 : STENO_ENOMEM;
}

static int put_message(struct itemstream *s, struct reply *r)
{
        int rc = 0;
        struct jsonw w = jsonw_to(&r->message);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_key(&w, "content");
        if (s->text.n) {
                struct buf *b = jsonw_value(&w);
                buf_putc(b, '"');
                buf_put_str(b, buf_str(&s->text));
                buf_putc(b, '"');
        } else {
                jsonw_null(&w);
        }
        if (s->summary.n) {
                jsonw_key(&w, "reasoning_content");
                struct buf *b = jsonw_value(&w);
                buf_putc(b, '"');
                buf_put_str(b, buf_str(&s->summary));
                buf_putc(b, '"');
        }
        if (s->items.n) {
                jsonw_key(&w, "response_items");
                struct buf *b = jsonw_value(&w);
                buf_putc(b, '[');
                buf_put_str(b, buf_str(&s->items));
                buf_putc(b, ']');
        }
        if (s->count) {
                jsonw_key(&w, "tool_calls");
                jsonw_array(&w);
                for (size_t i = 0; i < s->count && rc == 0; i++)
                        rc = finish_call(s, &s->calls[i].raw, r, &w);
                jsonw_array_end(&w);
        }
        jsonw_object_end(&w);
        return rc;
}

/* If the reply was cut off, takes the text of its deltas. */
static void take_shown(struct itemstream *s)
{
        struct accum_member *text = accum_find(&s->shown, STR("text"));
        struct accum_member *thinking = accum_find(&s->shown, STR("thinking"));
        if (s->text.n == 0 && text && text->kind == ACCUM_TEXT)
                buf_put_str(&s->text, buf_str(&text->value));
        if (s->summary.n == 0 && thinking && thinking->kind == ACCUM_TEXT)
                buf_put_str(&s->summary, buf_str(&thinking->value));
}

static int finish(struct provider_reader *reader, struct reply *r, struct steno_error *err)
{
        struct itemstream *s = (struct itemstream *)reader;
        struct json j;
        r->finish = provider_reader_finish_of(reader, FINISHES);
        if (r->finish == FINISH_STOP && s->count)
                r->finish = FINISH_TOOLS;
        take_shown(s);
        if (put_message(s, r) != 0)
                return error_nomem(err);
        json_unescape(buf_str(&s->text), &r->text, NULL);
        json_unescape(buf_str(&s->summary), &r->thinking, NULL);
        buf_put_str(&r->usage, buf_str(&s->usage));
        json_init(&j);
        if (s->usage.n && json_parse(&j, s->usage.p, s->usage.n, NULL, NULL) == 0)
                json_u64(&j, json_get(&j, 0, "total_tokens"), &r->total_tokens);
        json_release(&j);
        bool any = s->text.n || s->count || s->items.n || s->summary.n;
        reply_judge(r, &reader->fault, reader->whole || reader->done, any);
        const struct buf *const made[] = {&r->message, &r->text, &r->thinking, &r->usage};
        for (size_t i = 0; i < sizeof made / sizeof *made; i++)
                if (made[i]->failed)
                        return buf_check(made[i], err);
        return 0;
}

/* ---- on the heap ---- */

static void reader_free(struct provider_reader *reader)
{
        struct itemstream *s = (struct itemstream *)reader;
        for (size_t i = 0; i < s->count; i++)
                buf_release(&s->calls[i].raw);
        free(s->calls);
        accum_release(&s->shown);
        buf_release(&s->text);
        buf_release(&s->summary);
        buf_release(&s->items);
        buf_release(&s->usage);
        provider_reader_release(reader);
        free(s);
}

struct provider_reader *itemstream_reader(const struct reply_hooks *hooks)
{
        static const struct provider_reader_ops ops = {read_event, read_body, finish, reader_free};
        struct itemstream *s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        provider_reader_init(&s->reader, hooks);
        s->reader.ops = &ops;
        accum_init(&s->shown);
        buf_init(&s->text, MESSAGE_MAX);
        buf_init(&s->summary, MESSAGE_MAX);
        buf_init(&s->items, MESSAGE_MAX);
        buf_init(&s->usage, 64 * KIB);
        return &s->reader;
}
