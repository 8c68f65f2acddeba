/*
 * wire_reply.c - the messages of an answer: what a provider's own reader makes of it, the message
 * as it came, and further choices (wire_core.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/limits.h"
#include "gateway/wire_core.h"
#include "net/sse.h"

void wire_put_with_role(const struct json *j, json_ref message, const char *role, struct buf *out)
{
        if (json_is(j, json_get(j, message, "role"), role)) {
                buf_put_str(out, json_raw(j, message));
                return;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", role);
        for (json_ref k = json_child(j, message); k != JSON_NONE; k = json_next_key(j, message, k))
                if (!json_is(j, k, "role"))
                        jsonw_copy_member(&w, j, k);
        jsonw_object_end(&w);
}

/* What a provider's reader made of an answer. */
static int take_reply(struct reply *r, struct wire_answer *out)
{
        out->complete = !r->fault.code || strcmp(r->fault.code, "LLM_EMPTY") == 0;
        if (r->fault.code && !out->complete)
                buf_puts(&out->problem, r->fault.message);
        if (r->text.n || r->thinking.n || r->count || out->complete) {
                buf_putc(&out->messages, '[');
                buf_put_str(&out->messages, buf_str(&r->message));
                buf_putc(&out->messages, ']');
                out->count = 1;
        }
        buf_put_str(&out->text, buf_str(&r->text));
        buf_put_str(&out->usage, buf_str(&r->usage));
        return out->messages.failed;
}

int wire_take_verbatim(struct wire_answer *out, const struct buf *message)
{
        if (out->count == 0 || message->n == 0)
                return message->failed;
        buf_clear(&out->messages);
        buf_putc(&out->messages, '[');
        buf_put_str(&out->messages, buf_str(message));
        buf_putc(&out->messages, ']');
        return out->messages.failed;
}

void wire_refuse_nothing(struct wire_answer *out, const char *what)
{
        buf_clear(&out->messages);
        out->count = 0;
        out->complete = false;
        if (out->problem.n == 0 && out->odd.n == 0)
                buf_printf(&out->problem, "the endpoint's answer has no %s", what);
}

/* ---- a provider's reader ---- */

static void make_id(void *ctx, char out[64])
{
        (void)ctx;
        id_make(env_real(), "call_", out);
}

/* An answer of an API that a provider speaks is read by that provider's own reader. */
static int feed_event(void *ctx, struct str name, struct str data)
{
        struct provider_reader *reader = ctx;
        return reader->ops->event(reader, name, data);
}

static int feed(struct provider_reader *reader, struct str body, bool stream)
{
        struct sse s;
        if (!stream)
                return reader->ops->body(reader, body);
        sse_init(&s, MESSAGE_MAX, feed_event, reader);
        int rc = sse_feed(&s, body.p, body.n);
        if (rc == 0)
                rc = sse_finish(&s);
        sse_release(&s);
        return rc;
}

int wire_read_as(const struct provider *provider, struct str body, bool stream, int64_t choice,
    struct wire_answer *out, char finish[40])
{
        struct reply_hooks hooks = {make_id, NULL, NULL};
        struct reply r;
        struct provider_reader *reader = provider->wire->reader_new(&hooks);
        if (!reader)
                return STENO_ENOMEM;
        reader->verbatim = !out->answered;
        reader->choice = choice;
        reply_init(&r);
        int rc = feed(reader, body, stream);
        if (rc == 0)
                rc = reader->ops->finish(reader, &r, NULL);
        if (rc == 0)
                rc = take_reply(&r, out);
        if (reader->skipped)
                wire_note_odd(out, "the answer has pieces that belong to no part of a reply");
        if (finish)
                snprintf(finish, 40, "%s", reader->finish);
        reply_release(&r);
        reader->ops->free(reader);
        return rc;
}

/* ---- several choices ---- */

static void add_choice(struct wire_choices *all, int64_t index, struct wire_answer *out)
{
        size_t at = 0;
        while (at < all->count && all->index[at] < index)
                at++;
        if (at < all->count && all->index[at] == index)
                return;
        if (all->count == WIRE_CHOICES_MAX) {
                wire_note_odd(out, "the answer has more than %d choices", WIRE_CHOICES_MAX);
                return;
        }
        memmove(&all->index[at + 1], &all->index[at], (all->count - at) * sizeof *all->index);
        all->index[at] = index;
        all->count++;
}

void wire_add_other(struct wire_answer *out, struct str choice)
{
        if (out->other_count++)
                buf_putc(&out->others, ',');
        buf_put_str(&out->others, choice);
}

void wire_note_choices(struct wire_walk *w, const struct json *j, json_ref list)
{
        struct wire_choices *all = w->own;
        size_t n = 0;
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c), n++) {
                int64_t index = 0;
                json_i64(j, json_get(j, c, "index"), &index);
                w->any = w->any || json_type(j, c) == JSON_OBJECT;
                if (w->stream)
                        add_choice(all, index, w->out);
                else if (n)
                        wire_add_other(w->out, json_raw(j, c));
        }
}
