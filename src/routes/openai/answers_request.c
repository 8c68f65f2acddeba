/*
 * answers_request.c - what the model is asked: the conversation in which a response continues, its
 * history and the input (answers_core.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "http/server_core.h"
#include "routes/openai/answers_core.h"
#include "routes/openai/items.h"

/* ---- which conversation ---- */

static bool create_conv(struct answer *a)
{
        struct steno_error err = {0};
        char id[64];
        id_make(env_real(), "conv_", id);
        int rc =
            steno_conv_create(a->store, a->project, id, "{\"title\":\"Response\"}", &a->conv, &err);
        if (rc)
                request_failed(a->r, rc, &err);
        return rc == 0;
}

/* Goes on behind a response: where it ended, or in a fork from there. */
static bool follow_previous(struct answer *a, const char *previous)
{
        struct steno_error err = {0};
        struct answer_facts f;
        uint64_t now = 0;
        struct steno_conv *conv = answers_find(a->r, previous);
        if (!conv)
                return false;
        answers_facts_init(&f, -1);
        int rc = answers_facts_read(a->store, a->project, previous, &f, &err);
        if (rc == 0)
                rc = steno_conv_last_seq(conv, &now, &err);
        if (rc == 0 && !f.stored)
                rc = error_set(&err, STENO_EINVAL, "response %.80s was not completed", previous);
        if (rc == 0 && now != f.stored) {
                struct steno_fork_options opt = {.size = sizeof opt, .at_seq = f.stored};
                rc = steno_fork(conv, &opt, &a->conv, &err);
                steno_conv_close(conv);
        } else if (rc == 0) {
                a->conv = conv;
        } else {
                steno_conv_close(conv);
        }
        answers_facts_release(&f);
        if (rc)
                request_failed(a->r, rc, &err);
        snprintf(a->previous, sizeof a->previous, "%s", previous);
        return rc == 0;
}

bool answers_find_conv(struct answer *a)
{
        struct request *r = a->r;
        json_ref named = json_get(&a->body, 0, "conversation");
        if (json_type(&a->body, named) == JSON_OBJECT)
                named = json_get(&a->body, named, "id");
        char *name = json_dup_string(&a->body, named);
        char *previous = json_dup_string(&a->body, json_get(&a->body, 0, "previous_response_id"));
        bool found = false;
        if (name && previous) {
                request_error(r, 400, "mutually_exclusive_parameters",
                    "conversation and previous_response_id cannot be used together");
        } else if (name) {
                a->conv = request_conv(r, name);
                found = a->named = a->conv != NULL;
        } else if (previous) {
                found = follow_previous(a, previous);
        } else {
                found = create_conv(a);
        }
        free(name);
        free(previous);
        return found;
}

/* ---- the request to the upstream ---- */

bool answers_take_input(struct answer *a)
{
        const struct json *j = &a->body;
        json_ref input = json_get(j, 0, "input");
        struct json one;
        struct buf *text = &a->given;
        size_t n = 0;
        const char *why = "it must be a string or a list of items";
        json_init(&one);
        if (json_type(j, input) == JSON_STRING) {
                buf_puts(text, "[{\"role\":\"user\",\"content\":");
                buf_put_str(text, json_raw(j, input));
                buf_puts(text, "}]");
        } else if (json_type(j, input) == JSON_ARRAY) {
                buf_put_str(text, json_raw(j, input));
        }
        bool good = !text->failed && text->n && json_parse(&one, text->p, text->n, NULL, NULL) == 0;
        buf_putc(&a->input, '[');
        for (json_ref e = good ? json_child(&one, 0) : JSON_NONE; good && e != JSON_NONE;
             e = json_next(&one, 0, e)) {
                if (n)
                        buf_putc(&a->input, ',');
                good = items_normalise(&one, e, str_of(NULL), n++, &a->input, &why);
        }
        buf_putc(&a->input, ']');
        if (!good)
                request_error_in(a->r, "input", 400, "invalid_input", "input: %s", why);
        json_release(&one);
        return good && !a->input.failed;
}

static int put_bytes(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* Is this an output of a call that the input answers? */
static bool is_answered(const struct json *view, json_ref item, const struct json *given)
{
        struct str call = json_inner(view, json_get(view, item, "call_id"));
        json_ref output = json_get(view, item, "output");
        for (json_ref g = call.n && output != JSON_NONE ? json_child(given, 0) : JSON_NONE;
             g != JSON_NONE; g = json_next(given, 0, g))
                if (json_get(given, g, "output") != JSON_NONE &&
                    str_eq(json_inner(given, json_get(given, g, "call_id")), call))
                        return true;
        return false;
}

/* The view of the conversation, and the input. In a view, an unanswered call has a made result; the
 * result of the input replaces it. */
static int put_history(struct answer *a, struct buf *out, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "responses", .no_ids = true, .strict = true};
        struct buf text;
        struct json view, given;
        buf_init(&text, 0);
        json_init(&view);
        json_init(&given);
        int rc = steno_view(a->conv, &opt, put_bytes, &text, NULL, err);
        if (rc == 0)
                rc = json_parse(&view, text.p, text.n, NULL, err);
        if (rc == 0)
                rc = json_parse(&given, a->given.p, a->given.n, NULL, err);
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        for (json_ref i = rc ? JSON_NONE : json_child(&view, 0); i != JSON_NONE;
             i = json_next(&view, 0, i))
                if (!is_answered(&view, i, &given))
                        jsonw_raw(&w, json_raw(&view, i));
        for (json_ref i = rc ? JSON_NONE : json_child(&given, 0); i != JSON_NONE;
             i = json_next(&given, 0, i))
                jsonw_raw(&w, json_raw(&given, i));
        jsonw_array_end(&w);
        json_release(&view);
        json_release(&given);
        buf_release(&text);
        return rc ? rc : buf_check(out, err);
}

int answers_put_request(struct answer *a, struct buf *out, struct steno_error *err)
{
        static const char *const ours[] = {"conversation", "previous_response_id", "background",
            "store", "input", "stream", "metadata"};
        struct buf history;
        buf_init(&history, 0);
        int rc = put_history(a, &history, err);
        if (rc == 0 && a->chat) {
                rc = chatwire_put_request(&a->body, buf_str(&history), out, err);
                buf_release(&history);
                return rc;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(&a->body, 0); k != JSON_NONE;
             k = json_next_key(&a->body, 0, k)) {
                bool own = false;
                for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
                        own = own || json_is(&a->body, k, ours[i]);
                if (!own)
                        jsonw_copy_member(&w, &a->body, k);
        }
        jsonw_field_raw(&w, "input", buf_str(&history));
        jsonw_field_bool(&w, "stream", true);
        jsonw_field_bool(&w, "store", false); /* the state is here */
        jsonw_object_end(&w);
        buf_release(&history);
        return rc ? rc : buf_check(out, err);
}
