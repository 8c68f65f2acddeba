/*
 * vercel_stream.c - the events of a run as the UI message stream of the AI SDK.
 *
 * One run is one UI message, whose id is that of the first reply, and each request to the model is
 * a step of it. Only chunks that version 5 knows are sent, because an unknown one ends the stream
 * of a page: a call that waits for permission looks like one that runs, and a denied one like one
 * that failed. What the protocol has no word for (progress, the question for permission) is a
 * transient data chunk, which pages may listen to and do not keep.
 *
 * An `error` is the last chunk that a page looks at. A reply that was shown and then dropped cannot
 * be taken back in this protocol, so it ends with one.
 */
#include "routes/vercel/vercel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/event.h"

enum open_part { PART_NONE, PART_TEXT, PART_REASONING };

struct translation {
        char message[64]; /* of the current step; "" before the first */
        bool started;
        bool relayed;   /* an app's own chunks (vercel_app.c), which are shown as they came */
        bool failed;    /* nothing more is shown */
        bool stopped;   /* because somebody stopped the run */
        char why[1024]; /* the error's words */
        bool told;      /* the current message has shown text */
        enum open_part open;
        unsigned parts; /* begun so far; the next one's id */
        struct buf *out;
        struct jsonw w;
};

static void *begin(void)
{
        return calloc(1, sizeof(struct translation));
}

/* ---- chunks ---- */

static void chunk(struct translation *t, const char *type)
{
        projection_begin(&t->w, t->out, type);
}

static void chunk_end(struct translation *t)
{
        projection_end(&t->w, t->out);
}

static void put_part_id(struct translation *t)
{
        char id[32];
        snprintf(id, sizeof id, "part_%u", t->parts);
        jsonw_field_cstr(&t->w, "id", id);
}

static void close_part(struct translation *t)
{
        if (t->open == PART_NONE)
                return;
        chunk(t, t->open == PART_TEXT ? "text-end" : "reasoning-end");
        put_part_id(t);
        chunk_end(t);
        t->open = PART_NONE;
}

static void start(struct translation *t, const char *message)
{
        if (t->started)
                return;
        t->started = true;
        chunk(t, "start");
        jsonw_field_cstr(&t->w, "messageId", message);
        chunk_end(t);
}

static void end_step(struct translation *t)
{
        close_part(t);
        if (!t->message[0])
                return;
        chunk(t, "finish-step");
        chunk_end(t);
        t->message[0] = '\0';
}

/* A request to the model is a step. */
static void begin_step(struct translation *t, const char *message)
{
        if (strcmp(t->message, message) == 0)
                return;
        end_step(t);
        start(t, message);
        chunk(t, "start-step");
        chunk_end(t);
        snprintf(t->message, sizeof t->message, "%s", message);
        t->told = false;
}

static void put_piece(
    struct translation *t, enum open_part kind, const struct json *j, json_ref text)
{
        if (t->open != kind) {
                close_part(t);
                t->open = kind;
                t->parts++;
                chunk(t, kind == PART_TEXT ? "text-start" : "reasoning-start");
                put_part_id(t);
                chunk_end(t);
        }
        t->told = t->told || kind == PART_TEXT;
        chunk(t, kind == PART_TEXT ? "text-delta" : "reasoning-delta");
        put_part_id(t);
        jsonw_field_copy(&t->w, "delta", j, text);
        chunk_end(t);
}

/* ---- calls ---- */

/* The arguments of a call are a string; the page wants the value, where it is one. */
static void put_input(struct translation *t, const struct json *j, json_ref arguments)
{
        struct buf text;
        buf_init(&text, 0);
        json_string(j, arguments, &text, NULL);
        if (text.n && json_valid(text.p, text.n, NULL)) {
                json_single_line(text.p, text.n);
                jsonw_field_raw(&t->w, "input", buf_str(&text));
        } else {
                jsonw_field_copy(&t->w, "input", j, arguments);
        }
        t->out->failed = t->out->failed ? t->out->failed : text.failed;
        buf_release(&text);
}

static void put_call_ids(struct translation *t, const struct json *j, bool name)
{
        jsonw_field_copy(&t->w, "toolCallId", j, json_get(j, 0, "toolCallId"));
        if (name)
                jsonw_field_copy(&t->w, "toolName", j, json_get(j, 0, "toolName"));
        jsonw_field_bool(&t->w, "dynamic", true);
}

static void put_call(struct translation *t, const struct json *j)
{
        json_ref arguments = json_get(j, 0, "arguments");
        close_part(t);
        chunk(t, "tool-input-start");
        put_call_ids(t, j, true);
        chunk_end(t);
        chunk(t, "tool-input-delta");
        jsonw_field_copy(&t->w, "toolCallId", j, json_get(j, 0, "toolCallId"));
        jsonw_field_copy(&t->w, "inputTextDelta", j, arguments);
        chunk_end(t);
        chunk(t, "tool-input-available");
        put_call_ids(t, j, true);
        put_input(t, j, arguments);
        chunk_end(t);
}

static void put_output(struct translation *t, const struct json *j, bool is_error)
{
        json_ref content = json_get(j, 0, "content");
        chunk(t, is_error ? "tool-output-error" : "tool-output-available");
        put_call_ids(t, j, false);
        if (!is_error) {
                jsonw_field_raw(
                    &t->w, "output", content == JSON_NONE ? STR("\"\"") : json_raw(j, content));
        } else if (json_type(j, content) == JSON_STRING) {
                jsonw_field_copy(&t->w, "errorText", j, content);
        } else {
                jsonw_field_str(&t->w, "errorText", json_raw(j, content));
        }
        chunk_end(t);
}

/* What has no chunk of its own. */
static void put_data(struct translation *t, const char *type, const struct projected *e)
{
        chunk(t, type);
        jsonw_field_raw(&t->w, "data", str_span(e->data, e->n));
        jsonw_field_bool(&t->w, "transient", true);
        chunk_end(t);
}

/* ---- the end ---- */

/* An error is told when the run is over: a page that has read it may send its next message. */
static void note_failure(struct translation *t, const struct json *j)
{
        json_ref words = json_get(j, 0, "message");
        struct buf text;
        buf_init(&text, 0);
        if (words == JSON_NONE)
                words = json_get(j, 0, "reason");
        if (json_get(j, 0, "code") != JSON_NONE) {
                json_string(j, json_get(j, 0, "code"), &text, NULL);
                buf_puts(&text, ": ");
        }
        json_string(j, words, &text, NULL);
        close_part(t);
        t->failed = true;
        t->stopped = json_is(j, json_get(j, 0, "code"), "INTERRUPTED");
        snprintf(t->why, sizeof t->why, "%.*s", (int)(text.n < 1000 ? text.n : 1000),
            text.n ? text.p : "");
        buf_release(&text);
}

static void put_failure(struct translation *t)
{
        chunk(t, t->stopped ? "abort" : "error");
        if (!t->stopped)
                jsonw_field_cstr(&t->w, "errorText", t->why);
        chunk_end(t);
}

static const char *finish_reason(const struct json *j)
{
        json_ref reason = json_get(j, 0, "reason");
        return json_is(j, reason, "stop")             ? "stop"
               : json_is(j, reason, "length")         ? "length"
               : json_is(j, reason, "content_filter") ? "content-filter"
                                                      : "other";
}

static void put_finish(struct translation *t, const struct projected *e, const struct json *j)
{
        if (!t->relayed)
                start(t, e->run);
        if (t->failed) {
                put_failure(t);
        } else if (!t->relayed) {
                end_step(t);
                chunk(t, "finish");
                jsonw_field_cstr(&t->w, "finishReason", finish_reason(j));
                chunk_end(t);
        }
        buf_puts(t->out, "data: [DONE]\n\n");
}

/* ---- events ---- */

static void take_step(struct translation *t, const struct json *j)
{
        char *message = json_dup_string(j, json_get(j, 0, "messageId"));
        if (message)
                begin_step(t, message);
        free(message);
}

static void put_event(struct translation *t, const struct projected *e, const struct json *j)
{
        switch (event_find(e->type)) {
        case STENO_EVENT_RESPONSE_EVENT:
                t->relayed = true;
                buf_puts(t->out, "data: ");
                buf_put_str(t->out, json_raw(j, json_get(j, 0, "event")));
                buf_puts(t->out, "\n\n");
                break;
        case STENO_EVENT_REQUEST:
                take_step(t, j);
                break;
        case STENO_EVENT_MESSAGE:
                put_piece(t, PART_TEXT, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_THINKING:
                put_piece(t, PART_REASONING, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_TOOL_CALL_START:
                put_call(t, j);
                break;
        case STENO_EVENT_TOOL_CALL_STEP:
                put_data(t, "data-tool-call-step", e);
                break;
        case STENO_EVENT_TOOL_CALL_APPROVAL:
                put_data(t, "data-tool-call-approval", e);
                break;
        case STENO_EVENT_TOOL_CALL_COMPLETE:
                put_output(t, j, false);
                break;
        case STENO_EVENT_TOOL_CALL_ERROR:
                put_output(t, j, true);
                break;
        case STENO_EVENT_FINAL_MESSAGE:
                if (!t->told && json_inner(j, json_get(j, 0, "text")).n)
                        put_piece(t, PART_TEXT, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_MESSAGE_DROPPED:
        case STENO_EVENT_RUN_ERROR:
                note_failure(t, j);
                break;
        default:
                break;
        }
}

static bool event(void *state, const struct projected *e, struct buf *out)
{
        struct translation *t = state;
        struct json j;
        bool last = event_find(e->type) == STENO_EVENT_RUN_FINISHED;
        if (t->failed && !last)
                return true;
        json_init(&j);
        bool ok = json_parse(&j, e->data, e->n, NULL, NULL) == 0;
        t->out = out;
        if (ok && last)
                put_finish(t, e, &j);
        else if (ok)
                put_event(t, e, &j);
        json_release(&j);
        return ok;
}

const struct projection vercel_projection = {
    .name = "ui",
    .header = {"x-vercel-ai-ui-message-stream", "v1"},
    .begin = begin,
    .event = event,
};
