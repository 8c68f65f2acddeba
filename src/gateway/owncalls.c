/*
 * owncalls.c - see owncalls.h
 */
#include "gateway/owncalls.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"

void owncalls_init(struct owncalls *h)
{
        *h = (struct owncalls){0};
        buf_init(&h->messages, 0);
        buf_init(&h->lead, 0);
        buf_init(&h->results, 0);
}

void owncalls_release(struct owncalls *h)
{
        buf_release(&h->messages);
        buf_release(&h->lead);
        buf_release(&h->results);
}

bool owncalls_is_own(struct str name)
{
        char z[32];
        if (name.n == 0 || name.n >= sizeof z)
                return false;
        snprintf(z, sizeof z, "%.*s", (int)name.n, name.p);
        return steno_is_context_tool(z);
}

bool owncalls_is_name(const struct json *j, json_ref name)
{
        return owncalls_is_own(json_inner(j, name));
}

bool owncalls_may_become_own(struct str begun)
{
        static const char *const heads[] = {"context_", "context."};
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
                size_t n = strlen(heads[i]);
                if (memcmp(begun.p, heads[i], begun.n < n ? begun.n : n) == 0)
                        return true;
        }
        return false;
}

/* Items that the endpoint has done itself. */
bool owncalls_is_call_item(const struct json *j, json_ref item)
{
        static const char *const done[] = {"web_search_call", "file_search_call",
            "code_interpreter_call", "image_generation_call", "mcp_call", "tool_search_call"};
        static const char suffix[] = "_call";
        struct str type = json_inner(j, json_get(j, item, "type"));
        size_t n = sizeof suffix - 1;
        for (size_t i = 0; i < sizeof done / sizeof *done; i++)
                if (str_is(type, done[i]))
                        return false;
        return str_is(type, "mcp_approval_request") ||
               (type.n > n && memcmp(type.p + type.n - n, suffix, n) == 0);
}

/* ---- one call ---- */

struct answering {
        struct steno_stubs *stubs;
        bool refused;
        struct owncalls *out;
        struct steno_error *err;
};

/* The answer of a tool, decoded. */
static int run(struct answering *a, const struct json *j, json_ref name, json_ref arguments,
    struct buf *text, bool *is_error)
{
        struct buf args;
        char *answer = NULL, *tool = json_dup_string(j, name);
        int rc = tool ? 0 : error_nomem(a->err);
        buf_init(&args, MESSAGE_MAX);
        /* A JSON text, or the value itself. */
        if (!json_string(j, arguments, &args, NULL))
                buf_put_str(&args, json_raw(j, arguments));
        *is_error = true;
        if (rc == 0 && a->refused)
                buf_printf(text,
                    "not run: the context tools were called in %d rounds of this turn already",
                    OWNCALLS_ROUNDS_MAX);
        else if (rc == 0)
                rc = steno_stubs_call(a->stubs, tool, args.p, args.n, &answer, is_error, a->err);
        if (answer)
                buf_puts(text, answer);
        steno_free(answer);
        free(tool);
        buf_release(&args);
        return rc ? rc : buf_check(text, a->err);
}

typedef void (*put_result_fn)(struct jsonw *w, const struct json *j, json_ref call, json_ref name,
    struct str text, bool is_error);

static int answer_one(struct answering *a, const struct json *j, json_ref call, json_ref name,
    json_ref arguments, put_result_fn put)
{
        struct buf text;
        bool is_error;
        buf_init(&text, 0);
        int rc = run(a, j, name, arguments, &text, &is_error);
        if (rc == 0) {
                struct buf *results = &a->out->results;
                if (results->n)
                        buf_putc(results, ',');
                struct jsonw w = jsonw_to(results);
                put(&w, j, call, name, buf_str(&text), is_error);
                a->out->own++;
        }
        buf_release(&text);
        return rc;
}

/* ---- the four APIs ---- */

/* Is there a text, or a list of something? */
static bool holds(const struct json *j, json_ref content)
{
        return json_type(j, content) == JSON_ARRAY ? json_child(j, content) != JSON_NONE
                                                   : json_inner(j, content).n > 0;
}

static void put_chat(struct jsonw *w, const struct json *j, json_ref call, json_ref name,
    struct str text, bool is_error)
{
        (void)name, (void)is_error;
        jsonw_object(w);
        jsonw_field_cstr(w, "role", "tool");
        jsonw_field_copy(w, "tool_call_id", j, json_get(j, call, "id"));
        jsonw_field_str(w, "content", text);
        jsonw_object_end(w);
}

static int answer_chat(struct answering *a, const struct json *j, json_ref m)
{
        json_ref calls = json_get(j, m, "tool_calls");
        int rc = 0;
        a->out->shown += holds(j, json_get(j, m, "content")) || holds(j, json_get(j, m, "refusal"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE && rc == 0;
             c = json_next(j, calls, c)) {
                json_ref f = json_get(j, c, "function");
                if (owncalls_is_name(j, json_get(j, f, "name")))
                        rc = answer_one(
                            a, j, c, json_get(j, f, "name"), json_get(j, f, "arguments"), put_chat);
                else
                        a->out->others++;
        }
        return rc;
}

static void put_item(struct jsonw *w, const struct json *j, json_ref call, json_ref name,
    struct str text, bool is_error)
{
        (void)name, (void)is_error;
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function_call_output");
        jsonw_field_copy(w, "call_id", j, json_get(j, call, "call_id"));
        jsonw_field_str(w, "output", text);
        jsonw_object_end(w);
}

static int answer_item(struct answering *a, const struct json *j, json_ref item)
{
        json_ref name = json_get(j, item, "name");
        if (json_is(j, json_get(j, item, "type"), "function_call") && owncalls_is_name(j, name))
                return answer_one(a, j, item, name, json_get(j, item, "arguments"), put_item);
        a->out->others += owncalls_is_call_item(j, item);
        a->out->shown += !json_is(j, json_get(j, item, "type"), "reasoning");
        return 0;
}

static void put_block(struct jsonw *w, const struct json *j, json_ref call, json_ref name,
    struct str text, bool is_error)
{
        (void)name;
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "tool_result");
        jsonw_field_copy(w, "tool_use_id", j, json_get(j, call, "id"));
        jsonw_field_str(w, "content", text);
        if (is_error)
                jsonw_field_bool(w, "is_error", true);
        jsonw_object_end(w);
}

static bool is_shown_block(const struct json *j, json_ref block)
{
        json_ref type = json_get(j, block, "type");
        if (json_is(j, type, "text"))
                return holds(j, json_get(j, block, "text"));
        return !json_is(j, type, "thinking") && !json_is(j, type, "redacted_thinking");
}

static int answer_blocks(struct answering *a, const struct json *j, json_ref m)
{
        json_ref content = json_get(j, m, "content");
        int rc = 0;
        for (json_ref b = json_child(j, content); b != JSON_NONE && rc == 0;
             b = json_next(j, content, b)) {
                if (!json_is(j, json_get(j, b, "type"), "tool_use")) {
                        a->out->shown += is_shown_block(j, b);
                        continue;
                }
                json_ref name = json_get(j, b, "name");
                if (owncalls_is_name(j, name))
                        rc = answer_one(a, j, b, name, json_get(j, b, "input"), put_block);
                else
                        a->out->others++;
        }
        return rc;
}

static void put_part(struct jsonw *w, const struct json *j, json_ref call, json_ref name,
    struct str text, bool is_error)
{
        json_ref id = json_get(j, call, "id");
        jsonw_object(w);
        jsonw_key(w, "functionResponse");
        jsonw_object(w);
        if (json_type(j, id) == JSON_STRING)
                jsonw_field_copy(w, "id", j, id);
        jsonw_field_copy(w, "name", j, name);
        jsonw_key(w, "response");
        jsonw_object(w);
        jsonw_field_str(w, is_error ? "error" : "output", text);
        jsonw_object_end(w);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static bool is_shown_part(const struct json *j, json_ref part)
{
        json_ref text = json_get(j, part, "text");
        return !json_bool(j, json_get(j, part, "thought"), false) &&
               (text == JSON_NONE || holds(j, text));
}

static int answer_parts(struct answering *a, const struct json *j, json_ref m)
{
        json_ref parts = json_get(j, m, "parts");
        int rc = 0;
        for (json_ref p = json_child(j, parts); p != JSON_NONE && rc == 0;
             p = json_next(j, parts, p)) {
                json_ref call = json_get(j, p, "functionCall");
                json_ref name = json_get(j, call, "name");
                if (json_type(j, call) != JSON_OBJECT) {
                        a->out->shown += is_shown_part(j, p);
                        continue;
                }
                if (owncalls_is_name(j, name))
                        rc = answer_one(a, j, call, name, json_get(j, call, "args"), put_part);
                else
                        a->out->others++;
        }
        return rc;
}

static const struct {
        const char *wire;
        int (*answer)(struct answering *a, const struct json *j, json_ref message);
        const char *before, *behind; /* of the results, where they are one message */
} SPELLINGS[] = {
    {"chat", answer_chat, NULL, NULL},
    {"responses", answer_item, NULL, NULL},
    {"anthropic", answer_blocks, "{\"role\":\"user\",\"content\":[", "]}"},
    {"gemini", answer_parts, "{\"role\":\"user\",\"parts\":[", "]}"},
};

static size_t spelling_of(const struct wire *w)
{
        size_t i = 0;
        while (strcmp(SPELLINGS[i].wire, w->name) != 0)
                i++;
        return i;
}

int owncalls_answer(const struct wire *w, struct str reply, struct steno_stubs *stubs, bool refused,
    struct owncalls *out, struct steno_error *err)
{
        struct answering a = {.stubs = stubs, .refused = refused, .out = out, .err = err};
        size_t s = spelling_of(w);
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, reply.p, reply.n, NULL, err);
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE && rc == 0;
             m = json_next(&j, 0, m)) {
                if (out->messages.n)
                        buf_putc(&out->messages, ',');
                buf_put_str(&out->messages, json_raw(&j, m));
                rc = SPELLINGS[s].answer(&a, &j, m);
        }
        if (rc == 0 && out->results.n && SPELLINGS[s].before && out->others) {
                buf_put_str(&out->lead, buf_str(&out->results));
        } else if (rc == 0 && out->results.n) {
                buf_putc(&out->messages, ',');
                buf_puts(&out->messages, SPELLINGS[s].before ? SPELLINGS[s].before : "");
                buf_put_str(&out->messages, buf_str(&out->results));
                buf_puts(&out->messages, SPELLINGS[s].behind ? SPELLINGS[s].behind : "");
        }
        if (rc == 0)
                rc = buf_check(&out->results, err);
        if (rc == 0)
                rc = buf_check(&out->messages, err);
        json_release(&j);
        return rc;
}
