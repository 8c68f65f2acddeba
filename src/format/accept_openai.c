/*
 * accept_openai.c - the rules of chat completions.
 *
 * The rule that most often ends a session (F1): an assistant message with tool_calls is followed by
 * tool messages that answer each id once, before any other message.
 */
#include "format/accept.h"

#include <string.h>

static const struct str NO_CALL = {0};

struct openai {
        struct check *c;
        struct check_ids group; /* ids of the calls in the assistant message that is being
                                   answered */
        size_t asked_by;
        bool in_group; /* since that message, there were only tool messages */
};

static void close_group(struct openai *o)
{
        for (size_t i = 0; i < o->group.count; i++)
                if (!o->group.list[i].answered)
                        accept_fail(o->c, "unanswered_call", o->asked_by, o->group.list[i].id,
                            "no tool message answers this call before the next message");
        accept_ids_clear(&o->group);
        o->in_group = false;
}

static bool is_file(struct check *c, json_ref file)
{
        const struct json *j = c->j;
        if (accept_text(c, json_get(j, file, "file_id")).n)
                return true;
        return accept_is_file(accept_text(c, json_get(j, file, "file_data"))) &&
               accept_text(c, json_get(j, file, "filename")).n;
}

static void check_part(struct check *c, size_t i, json_ref part, const char *type)
{
        const struct json *j = c->j;
        json_ref in = json_get(j, part, type);
        if (strcmp(type, "text") == 0) {
                if (json_type(j, in) != JSON_STRING || !accept_text(c, in).n)
                        accept_fail(c, "empty_text", i, NO_CALL, "a text part is empty");
        } else if (strcmp(type, "image_url") == 0) {
                if (!accept_is_image(c, accept_text(c, json_get(j, in, "url"))))
                        accept_fail(c, "image_url", i, NO_CALL,
                            "an image must be a web address or a data URL of an image type");
        } else if (strcmp(type, "input_audio") == 0) {
                if (!rules_is_base64(accept_text(c, json_get(j, in, "data"))))
                        accept_fail(c, "audio_data", i, NO_CALL, "the audio data is not base64");
        } else if (strcmp(type, "file") == 0 && !is_file(c, in)) {
                accept_fail(c, "file_data", i, NO_CALL,
                    "a file must be a file id, or a data URL together with a filename");
        }
}

static void check_parts(
    struct openai *o, size_t i, json_ref content, const char *const *types, const char *who)
{
        const struct json *j = o->c->j;
        size_t refusals = 0;
        if (json_count(j, content) == 0)
                accept_fail(o->c, "empty_content", i, NO_CALL, "content is an empty array");
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                size_t k = 0;
                while (types[k] && !json_is(j, type, types[k]))
                        k++;
                if (json_type(j, p) != JSON_OBJECT || !types[k]) {
                        accept_fail(o->c, "content_part", i, NO_CALL,
                            "a content part has a type that %s messages cannot have", who);
                        continue;
                }
                if (json_type(j, json_get(j, p, types[k])) == JSON_NOTHING)
                        accept_fail(o->c, "content_part", i, NO_CALL,
                            "a part of type %s must have a member %s", types[k], types[k]);
                else
                        check_part(o->c, i, p, types[k]);
                refusals += json_is(j, type, "refusal");
        }
        if (refusals && json_count(j, content) > 1)
                accept_fail(o->c, "refusal_part", i, NO_CALL, "a refusal must be the only part");
}

static void check_content(struct openai *o, size_t i, json_ref m, const char *const *types,
    bool may_be_null, const char *who)
{
        const struct json *j = o->c->j;
        json_ref content = json_get(j, m, "content");
        switch (json_type(j, content)) {
        case JSON_STRING:
                return;
        case JSON_ARRAY:
                check_parts(o, i, content, types, who);
                return;
        case JSON_NULL:
        case JSON_NOTHING:
                if (!may_be_null)
                        accept_fail(o->c, "content_required", i, NO_CALL,
                            "%s messages must have content", who);
                return;
        default:
                accept_fail(o->c, "content_type", i, NO_CALL,
                    "content is neither a string nor an array of parts");
        }
}

static void check_call(struct openai *o, size_t i, json_ref call)
{
        struct check *c = o->c;
        const struct json *j = c->j;
        struct str id = accept_text(c, json_get(j, call, "id"));
        if (id.n == 0) {
                accept_fail(c, "call_id", i, NO_CALL, "a tool call has no id");
        } else {
                bool fresh = true;
                if (accept_ids_put(c, &o->group, id, &fresh) && !fresh)
                        accept_fail(
                            c, "duplicate_call", i, id, "the message makes two calls with this id");
        }
        bool custom = json_is(j, json_get(j, call, "type"), "custom");
        if (!custom && !json_is(j, json_get(j, call, "type"), "function"))
                accept_fail(c, "call_type", i, id, "type must be function or custom");
        json_ref body = json_get(j, call, custom ? "custom" : "function");
        accept_name(c, i, json_get(j, body, "name"), id);
        accept_call_id(c, i, json_get(j, call, "id"));
        if (json_type(j, json_get(j, body, custom ? "input" : "arguments")) != JSON_STRING)
                accept_fail(c, "arguments_string", i, id, "arguments must be a string");
}

static void check_assistant(struct openai *o, size_t i, json_ref m)
{
        static const char *const types[] = {"text", "refusal", NULL};
        const struct json *j = o->c->j;
        json_ref calls = json_get(j, m, "tool_calls");
        bool has_calls = false;
        if (json_type(j, calls) == JSON_ARRAY) {
                has_calls = true;
                if (json_count(j, calls) == 0)
                        accept_fail(
                            o->c, "empty_tool_calls", i, NO_CALL, "tool_calls is an empty array");
                for (json_ref k = json_child(j, calls); k != JSON_NONE; k = json_next(j, calls, k))
                        check_call(o, i, k);
        } else if (json_type(j, calls) != JSON_NOTHING) {
                accept_fail(o->c, "tool_calls_type", i, NO_CALL, "tool_calls is not an array");
        }
        if (json_count(j, calls) > o->c->rules->calls_max)
                accept_fail(o->c, "too_many_calls", i, NO_CALL,
                    "%u calls in one message, at most %zu", json_count(j, calls),
                    o->c->rules->calls_max);
        accept_name(o->c, i, json_get(j, json_get(j, m, "function_call"), "name"), NO_CALL);
        json_ref content = json_get(j, m, "content");
        bool refuses = json_type(j, json_get(j, m, "refusal")) == JSON_STRING;
        bool asks = has_calls || json_type(j, json_get(j, m, "function_call")) == JSON_OBJECT;
        if (!asks && !refuses && json_type(j, content) == JSON_STRING &&
            !accept_says_something(o->c, content))
                accept_fail(o->c, "empty_assistant", i, NO_CALL, "an assistant message is empty");
        bool other = json_type(j, json_get(j, m, "function_call")) == JSON_OBJECT ||
                     json_type(j, json_get(j, m, "refusal")) == JSON_STRING ||
                     json_type(j, json_get(j, m, "audio")) == JSON_OBJECT;
        check_content(o, i, m, types, has_calls || other, "assistant");
        o->asked_by = i;
        o->in_group = true;
}

static void check_tool(struct openai *o, size_t i, json_ref m)
{
        static const char *const types[] = {"text", NULL};
        struct check *c = o->c;
        check_content(o, i, m, types, false, "tool");
        struct str id = accept_text(c, json_get(c->j, m, "tool_call_id"));
        if (!id.p) {
                accept_fail(c, "tool_call_id", i, NO_CALL, "a tool message has no tool_call_id");
                return;
        }
        accept_call_id(c, i, json_get(c->j, m, "tool_call_id"));
        struct check_id *call = o->in_group ? accept_ids_find(&o->group, id) : NULL;
        if (!call)
                accept_fail(c, "result_without_call", i, id,
                    "no assistant message before it makes this call");
        else if (call->answered)
                accept_fail(c, "duplicate_result", i, id, "the call was answered before");
        else
                call->answered = true;
}

void accept_openai(struct check *c, json_ref list)
{
        static const char *const text_only[] = {"text", NULL};
        static const char *const user[] = {"text", "image_url", "input_audio", "file", NULL};
        const struct json *j = c->j;
        struct openai o = {.c = c};
        size_t i = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m), i++) {
                json_ref role = json_get(j, m, "role");
                if (json_is(j, role, "tool")) {
                        check_tool(&o, i, m);
                        continue;
                }
                close_group(&o);
                accept_name(c, i, json_get(j, m, "name"), NO_CALL);
                if (json_type(j, m) != JSON_OBJECT)
                        accept_fail(c, "message_type", i, NO_CALL, "a message is not an object");
                else if (json_is(j, role, "assistant"))
                        check_assistant(&o, i, m);
                else if (json_is(j, role, "user"))
                        check_content(&o, i, m, user, false, "user");
                else if (json_is(j, role, "system") || json_is(j, role, "developer"))
                        check_content(&o, i, m, text_only, false, "system");
                else if (!json_is(j, role, "function"))
                        accept_fail(c, "role", i, NO_CALL,
                            "role must be system, developer, user, assistant or tool");
        }
        close_group(&o);
}
