/*
 * agui_run.c - POST /api/agui: a run for AG-UI's own clients.
 *
 * The body is a RunAgentInput. The thread is the conversation, and the client's run id is the
 * run's, so a request that is sent again watches the run that it had started. Of the list of
 * messages, only those that are not stored yet are used; a user's message at its end begins the
 * turn. The tools of a run are Steno's: those that the client offers, its state and its context are
 * not used.
 */
#include "routes/handlers.h"

#include <string.h>

#include "base/error.h"
#include "http/server_core.h"
#include "routes/agui/agui.h"
#include "routes/dialog.h"

#define RUN_ID_MAX 63 /* of a run that a client names */

struct input {
        struct json body;
        struct steno_conv *conv;
        json_ref messages;
        const char *run;
        bool made; /* the conversation is new */
        struct buf prompt;
};

/* ---- messages, as openai has them ---- */

static void put_source(struct jsonw *w, const struct json *j, json_ref source)
{
        struct buf url;
        buf_init(&url, 0);
        if (json_is(j, json_get(j, source, "type"), "data")) {
                buf_puts(&url, "data:");
                json_string(j, json_get(j, source, "mimeType"), &url, NULL);
                buf_puts(&url, ";base64,");
        }
        json_string(j, json_get(j, source, "value"), &url, NULL);
        jsonw_key(w, "image_url");
        jsonw_object(w);
        jsonw_field_str(w, "url", buf_str(&url));
        jsonw_object_end(w);
        if (url.failed)
                w->b->failed = url.failed;
        buf_release(&url);
}

/* Parts that openai has no other word for are kept as they are. */
static void put_part(struct jsonw *w, const struct json *j, json_ref part)
{
        json_ref source = json_get(j, part, "source");
        if (json_is(j, json_get(j, part, "type"), "image") &&
            json_type(j, json_get(j, source, "value")) == JSON_STRING) {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "image_url");
                put_source(w, j, source);
                jsonw_object_end(w);
        } else {
                jsonw_raw(w, json_raw(j, part));
        }
}

static void put_content(struct jsonw *w, const struct json *j, json_ref content)
{
        jsonw_key(w, "content");
        if (json_type(j, content) != JSON_ARRAY) {
                jsonw_raw(w, content == JSON_NONE ? STR("null") : json_raw(j, content));
                return;
        }
        jsonw_array(w);
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p))
                put_part(w, j, p);
        jsonw_array_end(w);
}

static void put_message(struct buf *out, const struct json *j, json_ref m)
{
        static const struct {
                const char *key, *as;
        } MEMBERS[] = {{"id", "id"}, {"role", "role"}, {"name", "name"},
            {"toolCalls", "tool_calls"}, {"toolCallId", "tool_call_id"}};
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
                json_ref v = json_get(j, m, MEMBERS[i].key);
                if (v != JSON_NONE && json_type(j, v) != JSON_NULL)
                        jsonw_field_copy(&w, MEMBERS[i].as, j, v);
        }
        put_content(&w, j, json_get(j, m, "content"));
        jsonw_object_end(&w);
}

/* Messages that are about the page and not about the conversation. */
static bool is_spoken(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {"user", "assistant", "system", "developer", "tool"};
        for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
                if (json_is(j, json_get(j, m, "role"), ROLES[i]))
                        return true;
        return false;
}

/* ---- the list ---- */

static int append_one(struct input *in, json_ref m, struct steno_error *err)
{
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        struct buf text;
        buf_init(&text, 0);
        put_message(&text, &in->body, m);
        int rc = buf_check(&text, err);
        if (rc == 0)
                rc = steno_append(in->conv, text.p, text.n, &opt, NULL, err);
        buf_release(&text);
        return rc;
}

/* Stores what is new. A new message of the user at the end is left to the run. */
static int take_messages(struct request *r, struct input *in, struct steno_error *err)
{
        const struct json *j = &in->body;
        int rc = 0;
        for (json_ref m = json_child(j, in->messages), next; rc == 0 && m != JSON_NONE; m = next) {
                const char *id = request_member(r, j, m, "id");
                uint64_t seq = 0;
                next = json_next(j, in->messages, m);
                if (!is_spoken(j, m))
                        continue;
                if (id && !in->made)
                        rc = dialog_seq(in->conv, id, &seq, err);
                if (rc || seq)
                        continue;
                if (next == JSON_NONE && json_is(j, json_get(j, m, "role"), "user")) {
                        put_message(&in->prompt, j, m);
                        rc = buf_check(&in->prompt, err);
                } else {
                        rc = append_one(in, m, err);
                }
        }
        return rc;
}

/* ---- the route ---- */

static bool read_input(struct request *r, struct input *in)
{
        const struct json *j = &in->body;
        const char *thread = request_member(r, j, 0, "threadId");
        in->run = request_member(r, j, 0, "runId");
        in->messages = json_get(j, 0, "messages");
        if (!thread || !*thread)
                request_error(r, 400, "bad_request", "threadId must be a text");
        else if (!in->run || !*in->run || strlen(in->run) > RUN_ID_MAX)
                request_error(
                    r, 400, "bad_request", "runId must be a text of at most %d bytes", RUN_ID_MAX);
        else if (json_type(j, in->messages) != JSON_ARRAY)
                request_error(r, 400, "bad_request", "messages must be a list");
        else
                return dialog_open(r, thread, &in->conv, &in->made);
        return false;
}

static void start(struct request *r, struct input *in)
{
        struct steno_error err = {0};
        struct dialog_run newest;
        struct runner_turn turn = {
            .project = r->who.project, .conversation = steno_conv_id(in->conv), .run = in->run};
        int rc = dialog_newest_run(in->conv, &newest, &err);
        if (rc == 0 && strcmp(newest.id, in->run) == 0) {
                dialog_watch(r, in->run, &agui_projection);
                return;
        }
        if (rc == 0 && newest.live) {
                request_error(
                    r, 409, "conflict", "run %s of this thread is still active", newest.id);
                return;
        }
        if (rc == 0)
                rc = take_messages(r, in, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return;
        }
        if (in->prompt.n)
                turn.message_json = buf_cstr(&in->prompt);
        dialog_start(r, &turn, &agui_projection);
}

void agui_run(struct request *r)
{
        static const struct body_rule RULES[] = {
            {"threadId", BODY_NAME}, {"runId", BODY_NAME}, {"messages", BODY_LIST}, {0}};
        struct input in = {.messages = JSON_NONE};
        json_init(&in.body);
        buf_init(&in.prompt, 0);
        if (!r->server->chat)
                request_error(r, 501, "unsupported", "this server was started without a model");
        else if (request_json(r, &in.body, RULES) && read_input(r, &in))
                start(r, &in);
        steno_conv_close(in.conv);
        buf_release(&in.prompt);
        json_release(&in.body);
}
