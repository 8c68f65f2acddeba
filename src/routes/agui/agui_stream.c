/*
 * agui_stream.c - the events of a run as AG-UI 1.0 has them.
 *
 * A reply is a text message, its thinking a reasoning message before it, its calls hang at the
 * message. Each message is ended before the next one begins. RUN_FINISHED or RUN_ERROR is the last
 * event, never both. What the protocol has no event for (progress, the question for permission, a
 * reply that was dropped) is a CUSTOM event with Steno's name and data.
 */
#include "routes/agui/agui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/event.h"

enum open_message { OPEN_NONE, OPEN_TEXT, OPEN_REASONING };

struct translation {
        char *thread;
        char message[64];  /* the reply */
        char current[100]; /* what is open; a second text of one reply has an id of its own */
        unsigned texts;    /* texts of this reply so far */
        unsigned thoughts;
        enum open_message open;
        bool told;   /* this reply has shown text */
        bool failed; /* nothing but RUN_ERROR comes */
        char *message_of_error;
        char *code;
        struct buf *out;
        struct jsonw w;
};

static void *begin(void)
{
        return calloc(1, sizeof(struct translation));
}

static void end(void *state)
{
        struct translation *t = state;
        if (!t)
                return;
        free(t->thread);
        free(t->message_of_error);
        free(t->code);
        free(t);
}

static void open_event(struct translation *t, const char *type)
{
        projection_begin(&t->w, t->out, type);
}

static void close_event(struct translation *t)
{
        projection_end(&t->w, t->out);
}

/* An event that has a message's id and nothing else but perhaps a role. */
static void put_plain(struct translation *t, const char *type, const char *role)
{
        open_event(t, type);
        jsonw_field_cstr(&t->w, "messageId", t->current);
        if (role)
                jsonw_field_cstr(&t->w, "role", role);
        close_event(t);
}

static void close_message(struct translation *t)
{
        if (t->open == OPEN_TEXT) {
                put_plain(t, "TEXT_MESSAGE_END", NULL);
        } else if (t->open == OPEN_REASONING) {
                put_plain(t, "REASONING_MESSAGE_END", NULL);
                put_plain(t, "REASONING_END", NULL);
        }
        t->open = OPEN_NONE;
}

static void open_text(struct translation *t)
{
        /* The first text has the id of the reply, under which the client sends it back. */
        if (t->texts++)
                snprintf(t->current, sizeof t->current, "%s-%u", t->message, t->texts);
        else
                snprintf(t->current, sizeof t->current, "%s", t->message);
        put_plain(t, "TEXT_MESSAGE_START", "assistant");
}

static void open_reasoning(struct translation *t)
{
        snprintf(t->current, sizeof t->current, "%s-reasoning-%u", t->message, ++t->thoughts);
        put_plain(t, "REASONING_START", NULL);
        put_plain(t, "REASONING_MESSAGE_START", "reasoning");
}

static void put_piece(
    struct translation *t, enum open_message kind, const struct json *j, json_ref text)
{
        if (!json_inner(j, text).n)
                return;
        if (t->open != kind) {
                close_message(t);
                t->open = kind;
                if (kind == OPEN_TEXT)
                        open_text(t);
                else
                        open_reasoning(t);
        }
        t->told = t->told || kind == OPEN_TEXT;
        open_event(t, kind == OPEN_TEXT ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT");
        jsonw_field_cstr(&t->w, "messageId", t->current);
        jsonw_field_copy(&t->w, "delta", j, text);
        close_event(t);
}

static void put_call(struct translation *t, const struct json *j)
{
        json_ref id = json_get(j, 0, "toolCallId"), arguments = json_get(j, 0, "arguments");
        close_message(t);
        open_event(t, "TOOL_CALL_START");
        jsonw_field_copy(&t->w, "toolCallId", j, id);
        jsonw_field_copy(&t->w, "toolCallName", j, json_get(j, 0, "toolName"));
        jsonw_field_cstr(&t->w, "parentMessageId", t->message);
        close_event(t);
        if (json_inner(j, arguments).n) {
                open_event(t, "TOOL_CALL_ARGS");
                jsonw_field_copy(&t->w, "toolCallId", j, id);
                jsonw_field_copy(&t->w, "delta", j, arguments);
                close_event(t);
        }
        open_event(t, "TOOL_CALL_END");
        jsonw_field_copy(&t->w, "toolCallId", j, id);
        close_event(t);
}

static void put_result(struct translation *t, const struct json *j)
{
        json_ref content = json_get(j, 0, "content"), id = json_get(j, 0, "resultId");
        open_event(t, "TOOL_CALL_RESULT");
        jsonw_field_copy(
            &t->w, "messageId", j, id != JSON_NONE ? id : json_get(j, 0, "toolCallId"));
        jsonw_field_copy(&t->w, "toolCallId", j, json_get(j, 0, "toolCallId"));
        if (json_type(j, content) == JSON_STRING)
                jsonw_field_copy(&t->w, "content", j, content);
        else
                jsonw_field_str(&t->w, "content", json_raw(j, content));
        jsonw_field_cstr(&t->w, "role", "tool");
        close_event(t);
}

static void put_custom(struct translation *t, const struct projected *e)
{
        open_event(t, "CUSTOM");
        jsonw_field_cstr(&t->w, "name", e->type);
        jsonw_field_raw(&t->w, "value", str_span(e->data, e->n));
        close_event(t);
}

/* An error is sent only when the run is over, because a client that has read it may start the next
 * run. */
static void note_error(struct translation *t, const struct json *j)
{
        close_message(t);
        t->message_of_error = json_dup_string(j, json_get(j, 0, "message"));
        t->code = json_dup_string(j, json_get(j, 0, "code"));
        t->failed = true;
}

static void put_error(struct translation *t)
{
        open_event(t, "RUN_ERROR");
        jsonw_field_cstr(&t->w, "message", t->message_of_error ? t->message_of_error : "");
        if (t->code)
                jsonw_field_cstr(&t->w, "code", t->code);
        close_event(t);
}

/* RUN_STARTED and RUN_FINISHED name the thread and the run. */
static void put_run(struct translation *t, const struct projected *e, const char *type)
{
        close_message(t);
        open_event(t, type);
        jsonw_field_cstr(&t->w, "threadId", t->thread ? t->thread : "");
        jsonw_field_cstr(&t->w, "runId", e->run);
        close_event(t);
}

static void take_reply(struct translation *t, const struct json *j)
{
        char *id = json_dup_string(j, json_get(j, 0, "messageId"));
        close_message(t);
        snprintf(t->message, sizeof t->message, "%s", id ? id : "");
        t->texts = t->thoughts = 0;
        t->told = false;
        free(id);
}

static void put_event(struct translation *t, const struct projected *e, const struct json *j)
{
        switch (event_find(e->type)) {
        case STENO_EVENT_RUN_STARTED:
                t->thread = json_dup_string(j, json_get(j, 0, "conversation"));
                put_run(t, e, "RUN_STARTED");
                break;
        case STENO_EVENT_REQUEST:
                take_reply(t, j);
                break;
        case STENO_EVENT_MESSAGE:
                put_piece(t, OPEN_TEXT, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_THINKING:
                put_piece(t, OPEN_REASONING, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_TOOL_CALL_START:
                put_call(t, j);
                break;
        case STENO_EVENT_TOOL_CALL_COMPLETE:
        case STENO_EVENT_TOOL_CALL_ERROR:
                put_result(t, j);
                break;
        case STENO_EVENT_MESSAGE_DROPPED:
                close_message(t);
                put_custom(t, e);
                break;
        case STENO_EVENT_TOOL_CALL_STEP:
        case STENO_EVENT_TOOL_CALL_APPROVAL:
        case STENO_EVENT_MODEL_RETRY:
                put_custom(t, e);
                break;
        case STENO_EVENT_FINAL_MESSAGE:
                if (!t->told)
                        put_piece(t, OPEN_TEXT, j, json_get(j, 0, "text"));
                break;
        case STENO_EVENT_RUN_ERROR:
                note_error(t, j);
                break;
        case STENO_EVENT_RUN_FINISHED:
                if (t->failed)
                        put_error(t);
                else
                        put_run(t, e, "RUN_FINISHED");
                break;
        default:
                break;
        }
}

static bool event(void *state, const struct projected *e, struct buf *out)
{
        struct translation *t = state;
        struct json j;
        if (t->failed && event_find(e->type) != STENO_EVENT_RUN_FINISHED)
                return true;
        json_init(&j);
        bool ok = json_parse(&j, e->data, e->n, NULL, NULL) == 0;
        t->out = out;
        if (ok)
                put_event(t, e, &j);
        json_release(&j);
        return ok;
}

const struct projection agui_projection = {
    .name = "agui",
    .begin = begin,
    .end = end,
    .event = event,
};
