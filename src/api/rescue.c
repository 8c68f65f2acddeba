/* rescue.c - see rescue.h */
#include "api/rescue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/event.h"

#define SAYS                                                                                       \
        "the program ended while this reply was arriving; the text is the part that had arrived"

/* Escapes make a text longer, and the message must stay within its limit. What does not fit stays
 * in the journal. */
#define RESCUE_MAX (MESSAGE_MAX / 8)

void rescue_init(struct rescue *r)
{
        *r = (struct rescue){.message_id = ""};
        buf_init(&r->text, RESCUE_MAX);
        buf_init(&r->thinking, RESCUE_MAX);
}

void rescue_release(struct rescue *r)
{
        buf_release(&r->text);
        buf_release(&r->thinking);
}

/* ---- reading ---- */

static void start_message(struct rescue *r, const char *id)
{
        if (strcmp(r->message_id, id) == 0)
                return;
        snprintf(r->message_id, sizeof r->message_id, "%s", id);
        r->after = 0;
        buf_clear(&r->text);
        buf_clear(&r->thinking);
}

static int take_event(void *ctx, const struct run_event *e)
{
        struct rescue *r = ctx;
        bool text = event_is(e->type, STENO_EVENT_MESSAGE);
        bool thinking = event_is(e->type, STENO_EVENT_THINKING);
        bool asked = event_is(e->type, STENO_EVENT_REQUEST);
        bool dropped = event_is(e->type, STENO_EVENT_MESSAGE_DROPPED);
        struct json j;
        if (!text && !thinking && !asked && !dropped)
                return 0;
        json_init(&j);
        if (json_parse(&j, e->data.p, e->data.n, NULL, NULL) == 0) {
                char *id = json_dup_string(&j, json_get(&j, 0, "messageId"));
                start_message(r, dropped || !id ? "" : id);
                free(id);
                if (asked)
                        json_u64(&j, json_get(&j, 0, "after"), &r->after);
                else if (!dropped)
                        json_string(
                            &j, json_get(&j, 0, "text"), text ? &r->text : &r->thinking, NULL);
        }
        json_release(&j);
        return 0;
}

int rescue_read(
    struct rescue *r, struct backend_conv *conv, const char *name, struct steno_error *err)
{
        return backend_run_read(conv, name, 0, take_event, r, err);
}

/* ---- storing ---- */

static void put_message(const struct rescue *r, struct steno_conv *conv, const char *run_id,
    const char *mode, struct buf *out)
{
        char at[TIME_TEXT];
        const struct env *env = conv->store->env;
        struct jsonw w = jsonw_to(out);
        time_format(env->now(env), at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", r->message_id);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_str(&w, "content", buf_str(&r->text));
        if (r->thinking.n)
                jsonw_field_str(&w, "reasoning_content", buf_str(&r->thinking));
        jsonw_field_cstr(&w, "createdAt", at);
        jsonw_field_cstr(&w, "partType", "error");
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", "RUN_DIED");
        jsonw_field_cstr(&w, "message", SAYS);
        jsonw_field_bool(&w, "retryable", true);
        jsonw_object_end(&w);
        if (r->text.n == 0) /* an empty assistant message is refused by providers */
                jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_cstr(&w, "mode", mode);
        jsonw_field_cstr(&w, "runId", run_id);
        jsonw_object_end(&w);
}

/* A message of that id that is in the log. */
struct stored {
        bool there;
        bool recovered;
        uint64_t seq;
};

static int look_at_stored(void *ctx, const struct backend_record *r)
{
        struct stored *s = ctx;
        struct arena arena;
        struct about about;
        arena_init(&arena);
        s->there = true;
        s->seq = r->rec.seq;
        s->recovered = about_read(r->rec.x, &arena, &about, NULL) == 0 && about.recovered;
        arena_release(&arena);
        return 0;
}

int rescue_place(
    struct steno_conv *conv, const char *message_id, uint64_t after, struct steno_error *err)
{
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECOVERED};
        char key[96], json[48];
        snprintf(key, sizeof key, "place/%.64s", message_id);
        int n = snprintf(json, sizeof json, "{\"after\":%llu}", (unsigned long long)after);
        opt.idempotency_key = key;
        int rc = steno_amend(conv, "meta", message_id, json, (size_t)n, &opt, NULL, err);
        /* It was deleted meanwhile, or somebody else was as quick. */
        return rc == STENO_ENOTFOUND || rc == STENO_ECONFLICT ? 0 : rc;
}

int rescue_store(const struct rescue *r, struct steno_conv *conv, const char *run_id,
    const char *mode, struct steno_error *err)
{
        struct steno_append_options opt = {
            .size = sizeof opt, .flags = STENO_RECOVERED, .after_seq = r->after};
        struct steno_receipt *receipt = NULL;
        struct stored stored = {.there = false};
        struct buf json;
        if (!r->message_id[0] || (!r->text.n && !r->thinking.n))
                return 0;
        int rc =
            backend_read_id(conv->backend, str_of(r->message_id), look_at_stored, &stored, err);
        if (rc && rc != STENO_ENOTFOUND)
                return rc;
        if (stored.there) /* by somebody who may have died before it had its place */
                return stored.recovered && r->after && stored.seq > r->after + 1
                           ? rescue_place(conv, r->message_id, r->after, err)
                           : 0;
        buf_init(&json, MESSAGE_MAX);
        put_message(r, conv, run_id, mode, &json);
        rc = buf_check(&json, err);
        if (rc == 0)
                rc = steno_append(conv, json.p, json.n, &opt, &receipt, err);
        if (rc == 0 && r->after && steno_receipt_first_seq(receipt) > r->after + 1)
                rc = rescue_place(conv, r->message_id, r->after, err);
        steno_receipt_free(receipt);
        buf_release(&json);
        return rc == STENO_ECONFLICT ? 0 : rc; /* someone else was as quick */
}
