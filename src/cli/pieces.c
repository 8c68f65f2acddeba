/*
 * pieces.c - see pieces.h. Shapes of OpenAI's chat and Responses APIs, Anthropic, Gemini and
 * Acontext are told apart by their members, part by part.
 */
#include "cli/pieces.h"

#include <string.h>

#include "base/arena.h"

struct walk {
        const struct json *j;
        struct arena arena;
        piece_fn each;
        void *ctx;
};

/* A string decoded, anything else as it stands in the text. */
static struct str text_of(struct walk *w, json_ref r)
{
        struct buf b;
        struct str s;

        if (json_type(w->j, r) == JSON_NOTHING || json_type(w->j, r) == JSON_NULL)
                return STR("");
        if (json_type(w->j, r) != JSON_STRING)
                return json_raw(w->j, r);
        if (!json_is_escaped(w->j, r))
                return json_inner(w->j, r);
        buf_init(&b, 0);
        json_string(w->j, r, &b, NULL);
        s = arena_dup(&w->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* The first of these members that is there. */
static json_ref any_of(struct walk *w, json_ref obj, const char *const *names)
{
        for (; *names != NULL; names++) {
                json_ref r = json_get(w->j, obj, *names);
                if (r != JSON_NONE && json_type(w->j, r) != JSON_NULL)
                        return r;
        }
        return JSON_NONE;
}
#define ANY(w, obj, ...) any_of(w, obj, (const char *const[]){__VA_ARGS__, NULL})

static void emit(struct walk *w, struct piece p)
{
        w->each(w->ctx, &p);
}

static void emit_text(struct walk *w, enum piece_kind kind, json_ref r)
{
        struct str s = text_of(w, r);

        if (s.n > 0)
                emit(w, (struct piece){.kind = kind, .body = s, .duration = -1});
}

/* The text of a result: a string, or the text parts of an array. */
static struct str result_text(struct walk *w, json_ref r)
{
        struct buf b;
        struct str s;

        if (json_type(w->j, r) != JSON_ARRAY)
                return text_of(w, r);
        buf_init(&b, 0);
        for (json_ref p = json_child(w->j, r); p != JSON_NONE; p = json_next(w->j, r, p)) {
                json_ref text = json_get(w->j, p, "text");
                if (b.n > 0)
                        buf_putc(&b, '\n');
                buf_put_str(&b, text != JSON_NONE ? text_of(w, text) : json_raw(w->j, p));
        }
        s = arena_dup(&w->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* Members of a result of Steno's own runs. */
static const char *ended_by(const struct walk *w, json_ref r)
{
        static const struct {
                const char *member;
                const char *word;
        } ENDS[] = {{"denied", "denied"}, {"interrupted", "stopped"}, {"cut", "cut off"}};
        for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++)
                if (json_bool(w->j, json_get(w->j, r, ENDS[i].member), false))
                        return ENDS[i].word;
        return NULL;
}

static void emit_result(struct walk *w, json_ref r, json_ref content)
{
        struct piece p = {.kind = PIECE_RESULT, .duration = -1};

        p.name = text_of(w, ANY(w, r, "toolName", "name"));
        p.server = text_of(w, json_get(w->j, r, "serverName"));
        p.id = text_of(w, ANY(w, r, "tool_call_id", "tool_use_id", "call_id", "toolCallId", "id"));
        p.body = result_text(w, content);
        p.failed = json_bool(w->j, ANY(w, r, "isError", "is_error"), false);
        p.ended = ended_by(w, r);
        json_double(w->j, json_get(w->j, r, "duration"), &p.duration);
        emit(w, p);
}

static void emit_call(struct walk *w, json_ref outer)
{
        json_ref fn = json_get(w->j, outer, "function");
        json_ref r = fn != JSON_NONE ? fn : outer;
        json_ref done = ANY(w, outer, "result", "error");

        emit(w, (struct piece){
                    .kind = PIECE_CALL,
                    .name = text_of(w, json_get(w->j, r, "name")),
                    .id = text_of(w, ANY(w, outer, "call_id", "id")),
                    .body = text_of(w, ANY(w, r, "arguments", "input", "args")),
                    .duration = -1,
                });
        if (done != JSON_NONE)
                emit_result(w, outer, done);
}

static void emit_media(struct walk *w, struct str name)
{
        emit(w, (struct piece){.kind = PIECE_MEDIA, .name = name, .duration = -1});
}

/* Gemini's parts have no type: the member that is there says what they are. */
static void gemini_part(struct walk *w, json_ref part)
{
        json_ref call = json_get(w->j, part, "functionCall");
        json_ref response = json_get(w->j, part, "functionResponse");
        json_ref inlined = ANY(w, part, "inlineData", "fileData");

        if (call != JSON_NONE)
                emit_call(w, call);
        else if (response != JSON_NONE)
                emit_result(w, response, json_get(w->j, response, "response"));
        else if (inlined != JSON_NONE)
                emit_media(w, text_of(w, json_get(w->j, inlined, "mimeType")));
        else if (json_get(w->j, part, "text") != JSON_NONE)
                emit_text(w,
                    json_bool(w->j, json_get(w->j, part, "thought"), false) ? PIECE_THINKING
                                                                            : PIECE_TEXT,
                    json_get(w->j, part, "text"));
        else
                emit_media(w, json_raw(w->j, part));
}

static void one_part(struct walk *w, json_ref part)
{
        struct str type = text_of(w, json_get(w->j, part, "type"));
        json_ref meta = json_get(w->j, part, "meta");

        if (json_type(w->j, part) == JSON_STRING)
                emit_text(w, PIECE_TEXT, part);
        else if (type.n == 0)
                gemini_part(w, part);
        else if (str_is(type, "text") || str_is(type, "input_text") ||
                 str_is(type, "output_text") || str_is(type, "summary_text") ||
                 str_is(type, "refusal"))
                emit_text(w, PIECE_TEXT, ANY(w, part, "text", "refusal"));
        else if (str_is(type, "thinking") || str_is(type, "reasoning"))
                emit_text(w, PIECE_THINKING, ANY(w, part, "thinking", "text"));
        else if (str_is(type, "tool-call"))
                emit_call(w, meta != JSON_NONE ? meta : part);
        else if (str_is(type, "tool-result"))
                emit_result(w, meta != JSON_NONE ? meta : part,
                    ANY(w, part, "text", "output", "result", "content"));
        else if (str_is(type, "tool_use") || str_is(type, "server_tool_use"))
                emit_call(w, part);
        else if (str_is(type, "tool_result"))
                emit_result(w, part, json_get(w->j, part, "content"));
        else
                emit_media(w, type);
}

static void parts(struct walk *w, json_ref r)
{
        if (json_type(w->j, r) != JSON_ARRAY) {
                emit_text(w, PIECE_TEXT, r);
                return;
        }
        for (json_ref p = json_child(w->j, r); p != JSON_NONE; p = json_next(w->j, r, p))
                one_part(w, p);
}

/* What a request has beside its messages: the prompt, wherever the API puts it. */
static void request(struct walk *w, json_ref r)
{
        json_ref prompt = ANY(w, r, "instructions", "system");
        json_ref gemini = ANY(w, r, "systemInstruction", "system_instruction");
        json_ref list = json_get(w->j, r, "instructionMessages");

        if (prompt != JSON_NONE)
                parts(w, prompt);
        if (gemini != JSON_NONE)
                parts(w, json_get(w->j, gemini, "parts"));
        for (json_ref m = json_child(w->j, list); m != JSON_NONE; m = json_next(w->j, list, m))
                parts(w, json_get(w->j, m, "content"));
}

static void model_error(struct walk *w, json_ref error)
{
        emit(w, (struct piece){
                    .kind = PIECE_ERROR,
                    .name = text_of(w, json_get(w->j, error, "code")),
                    .body = text_of(w, ANY(w, error, "message")),
                    .failed = true,
                    .duration = -1,
                });
}

static void message(struct walk *w)
{
        const struct json *j = w->j;
        json_ref calls = json_get(j, 0, "tool_calls");
        json_ref old_call = json_get(j, 0, "function_call");
        json_ref error = json_get(j, 0, "error");

        emit_text(w, PIECE_THINKING, ANY(w, 0, "reasoning_content", "reasoning"));
        parts(w, ANY(w, 0, "content", "parts"));
        for (json_ref k = json_child(j, calls); k != JSON_NONE; k = json_next(j, calls, k))
                emit_call(w, k);
        if (json_type(j, old_call) == JSON_OBJECT)
                emit_call(w, old_call);
        if (json_type(j, error) == JSON_OBJECT)
                model_error(w, error);
        if (json_is(j, json_get(j, 0, "partType"), "request"))
                request(w, json_get(j, 0, "request"));
}

/* An item of the Responses API; false when it is not one that needs its own showing. */
static bool response_item(struct walk *w)
{
        const struct json *j = w->j;
        json_ref type = json_get(j, 0, "type");

        if (json_is(j, type, "function_call"))
                emit_call(w, 0);
        else if (json_is(j, type, "function_call_output"))
                emit_result(w, 0, json_get(j, 0, "output"));
        else if (json_is(j, type, "reasoning"))
                emit(w, (struct piece){.kind = PIECE_THINKING,
                            .body = result_text(w, ANY(w, 0, "summary", "content")),
                            .duration = -1});
        else
                return false;
        return true;
}

int pieces_each(const struct json *j, piece_fn each, void *ctx)
{
        struct walk w = {.j = j, .each = each, .ctx = ctx};
        int rc;

        arena_init(&w.arena);
        if (json_is(j, json_get(j, 0, "role"), "tool"))
                emit_result(&w, 0, json_get(j, 0, "content"));
        else if (!response_item(&w))
                message(&w);
        rc = w.arena.failed ? STENO_ENOMEM : 0;
        arena_release(&w.arena);
        return rc;
}
