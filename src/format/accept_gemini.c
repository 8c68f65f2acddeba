/*
 * accept_gemini.c - the rules of Gemini's contents.
 *
 * The rule that most often ends a session (F1): a turn with function calls comes right after a user
 * turn or a turn of function responses. The next turn must have as many responses, with the names
 * of the calls.
 */
#include "format/accept.h"

#include <string.h>

static const struct str NO_CALL = {0};

struct call {
        struct str id; /* absent: calls and responses are matched by name only */
        struct str name;
        bool answered;
        struct call *next;
};

struct gemini {
        struct check *c;
        struct call *asked; /* the calls of the turn before */
        struct call **end;
        size_t asked_count;
        size_t asked_by;
        bool after_model; /* the turn before is the model's */
};

static const char *const DATA[] = {"text", "inlineData", "fileData", "functionCall",
    "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse", NULL};

static json_ref part_get(const struct json *j, json_ref part, size_t k)
{
        return json_get(j, part, DATA[k]);
}

static json_ref part_call(const struct json *j, json_ref part)
{
        return part_get(j, part, 3);
}

static json_ref part_response(const struct json *j, json_ref part)
{
        return part_get(j, part, 4);
}

static size_t count_parts(
    const struct json *j, json_ref parts, json_ref (*get)(const struct json *j, json_ref part))
{
        size_t n = 0;
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                n += get(j, p) != JSON_NONE;
        return n;
}

static bool is_bytes(struct str s)
{
        size_t n = s.n;
        for (size_t i = 0; i < 2 && n && s.p[n - 1] == '='; i++)
                n--;
        for (size_t i = 0; i < n; i++) {
                char c = s.p[i];
                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        strchr("+/-_", c)) ||
                    !c)
                        return false;
        }
        return n % 4 != 1;
}

static bool is_taken(const struct rules *r, struct str type)
{
        return rules_is_media(r->images, type) || rules_is_media(r->sounds, type) ||
               rules_is_media(r->files, type);
}

/* Checks the media of a part, or of a part of a response. */
static void check_media(struct gemini *g, size_t i, json_ref part)
{
        struct check *c = g->c;
        json_ref blob = json_get(c->j, part, "inlineData"), file = json_get(c->j, part, "fileData");
        json_ref types[] = {json_get(c->j, blob, "mimeType"), json_get(c->j, file, "mimeType")};
        for (size_t k = 0; k < 2; k++)
                if (json_type(c->j, types[k]) == JSON_STRING &&
                    !is_taken(c->rules, accept_text(c, types[k])))
                        accept_fail(c, "media_type", i, NO_CALL, "the media type is not accepted");
        struct str data = accept_text(c, json_get(c->j, blob, "data"));
        if (json_type(c->j, blob) == JSON_OBJECT && (!data.n || !is_bytes(data)))
                accept_fail(c, "base64", i, NO_CALL, "the data is not base64");
        struct str uri = accept_text(c, json_get(c->j, file, "fileUri"));
        bool cloud = str_starts(uri, "gs://") && uri.n > 5 && uri.p[5] != '/';
        if (json_type(c->j, file) == JSON_OBJECT && !cloud && !rules_is_address(uri, true))
                accept_fail(c, "file_uri", i, NO_CALL, "the URI does not name a stored file");
}

static void check_part(struct gemini *g, size_t i, json_ref part)
{
        const struct json *j = g->c->j;
        size_t have = 0;
        for (size_t k = 0; DATA[k]; k++)
                have += part_get(j, part, k) != JSON_NONE;
        if (have != 1)
                accept_fail(g->c, "part_data", i, NO_CALL,
                    "a part must hold exactly one of text, functionCall, functionResponse, "
                    "inlineData, fileData; this one holds %zu",
                    have);
        json_ref text = json_get(j, part, "text");
        if (text != JSON_NONE && accept_text(g->c, text).n == 0)
                accept_fail(g->c, "empty_text", i, NO_CALL, "a text part must not be empty");
        if (!is_bytes(accept_text(g->c, json_get(j, part, "thoughtSignature"))))
                accept_fail(g->c, "base64", i, NO_CALL, "the thoughtSignature is not base64");
        check_media(g, i, part);
        json_ref inner = json_get(j, json_get(j, part, "functionResponse"), "parts");
        bool list = json_type(j, inner) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, inner) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, inner, p))
                check_media(g, i, p);
}

static void note_call(struct gemini *g, size_t i, json_ref fc)
{
        struct check *c = g->c;
        struct str id = accept_text(c, json_get(c->j, fc, "id"));
        struct str name = accept_text(c, json_get(c->j, fc, "name"));
        json_ref args = json_get(c->j, fc, "args");
        if (!rules_is_name(c->rules, name))
                accept_fail(c, "tool_name", i, id, "a functionCall has no name that is accepted");
        if (args != JSON_NONE && json_type(c->j, args) != JSON_OBJECT)
                accept_fail(
                    c, "args_object", i, id, "the args of a functionCall must be an object");
        for (struct call *k = g->asked; k && id.n; k = k->next)
                if (str_eq(k->id, id))
                        accept_fail(
                            c, "duplicate_call", i, id, "two calls of the turn share an id");
        struct call *call = arena_zalloc(c->arena, sizeof *call);
        if (!call)
                return;
        call->id = id;
        call->name = name;
        *g->end = call;
        g->end = &call->next;
        g->asked_count++;
}

static void match_response(struct gemini *g, size_t i, json_ref fr)
{
        struct check *c = g->c;
        struct str id = accept_text(c, json_get(c->j, fr, "id"));
        struct str name = accept_text(c, json_get(c->j, fr, "name"));
        if (!rules_is_name(c->rules, name))
                accept_fail(
                    c, "tool_name", i, id, "a functionResponse has no name that is accepted");
        if (json_type(c->j, json_get(c->j, fr, "response")) != JSON_OBJECT)
                accept_fail(c, "response_object", i, id,
                    "the response of a functionResponse must be an object");
        for (struct call *k = g->asked; k; k = k->next) {
                bool same_id = !id.n || !k->id.n || str_eq(k->id, id);
                if (k->answered || !same_id || !str_eq(k->name, name))
                        continue;
                k->answered = true;
                return;
        }
        accept_fail(c, "result_without_call", i, id,
            "no open functionCall of the turn before has this name and id");
}

static void forget_calls(struct gemini *g)
{
        g->asked = NULL;
        g->end = &g->asked;
        g->asked_count = 0;
}

static void check_responses(struct gemini *g, size_t i, json_ref parts, size_t count)
{
        const struct json *j = g->c->j;
        if (count == 0 && g->asked_count == 0)
                return;
        if (count == 0) {
                accept_fail(g->c, "unanswered_call", g->asked_by, g->asked->id,
                    "a turn with function calls is not followed by their responses");
        } else if (g->asked_count == 0) {
                accept_fail(g->c, "result_without_call", i, NO_CALL,
                    "a function response turn must come right after a function call turn");
        } else if (count != g->asked_count) {
                accept_fail(g->c, "response_count", i, NO_CALL,
                    "%zu function responses for %zu function calls", count, g->asked_count);
        }
        for (json_ref p = json_child(j, parts); count && g->asked_count && p != JSON_NONE;
             p = json_next(j, parts, p))
                if (part_response(j, p) != JSON_NONE)
                        match_response(g, i, part_response(j, p));
        forget_calls(g);
}

static void check_model_turn(struct gemini *g, size_t i, json_ref parts)
{
        const struct json *j = g->c->j;
        size_t calls = count_parts(j, parts, part_call);
        if (count_parts(j, parts, part_response) > 0)
                accept_fail(
                    g->c, "part_role", i, NO_CALL, "functionResponse parts belong to user turns");
        if (g->asked_count > 0) {
                accept_fail(g->c, "unanswered_call", g->asked_by, g->asked->id,
                    "a turn with function calls is not followed by their responses");
                forget_calls(g);
        }
        if (calls > 0 && (g->after_model || i == 0))
                accept_fail(g->c, "call_turn_order", i, NO_CALL,
                    "a function call turn must come right after a user turn or a function "
                    "response turn");
        g->asked_by = i;
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                if (part_call(j, p) != JSON_NONE)
                        note_call(g, i, part_call(j, p));
}

static void check_turn(struct gemini *g, size_t i, json_ref m, bool model)
{
        const struct json *j = g->c->j;
        json_ref parts = json_get(j, m, "parts");
        if (json_type(j, parts) != JSON_ARRAY || json_count(j, parts) == 0)
                accept_fail(g->c, "empty_parts", i, NO_CALL, "a turn must have at least one part");
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                check_part(g, i, p);
        if (model) {
                check_model_turn(g, i, parts);
        } else {
                if (count_parts(j, parts, part_call) > 0)
                        accept_fail(g->c, "part_role", i, NO_CALL,
                            "functionCall parts belong to model turns");
                check_responses(g, i, parts, count_parts(j, parts, part_response));
        }
        g->after_model = model;
}

void accept_gemini(struct check *c, json_ref list)
{
        const struct json *j = c->j;
        struct gemini g = {.c = c};
        forget_calls(&g);
        size_t i = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m), i++) {
                json_ref role = json_get(j, m, "role");
                bool model = json_is(j, role, "model");
                if (!model && !json_is(j, role, "user")) {
                        accept_fail(c, "role", i, NO_CALL, "role must be user or model");
                        continue;
                }
                if (i == 0 && model)
                        accept_fail(
                            c, "first_user", i, NO_CALL, "the first turn must be the user's");
                check_turn(&g, i, m, model);
        }
        if (g.asked_count > 0)
                accept_fail(c, "unanswered_call", g.asked_by, g.asked->id,
                    "a turn with function calls is not followed by their responses");
}
