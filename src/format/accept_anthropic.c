/*
 * accept_anthropic.c - the rules of Anthropic's messages.
 *
 * The rule that most often ends a session (F1): each tool_use is answered by a tool_result at the
 * beginning of the very next message. Consecutive messages of one role are allowed: the provider
 * merges them, so they are checked as one turn.
 */
#include "format/accept.h"

#include <string.h>

static const struct str NO_CALL = {0};

struct anthropic {
        struct check *c;
        struct check_ids all;   /* all tool_use ids of the request */
        struct check_ids asked; /* the tool_use ids of the assistant turn before */
        size_t asked_by;
        const char *last_role;   /* "" before the first message */
        bool spoke;              /* this user turn has content that is not a tool_result */
        bool called;             /* this assistant turn has a tool_use */
        struct check_ids served; /* the server_tool_use ids of this message */
        size_t marks;            /* blocks with cache_control so far */
        bool short_mark;         /* a block before has a mark of five minutes */
        bool ends_thinking;      /* the last block of the assistant turn is thinking */
};

/* The characters of ids are limited: ^[a-zA-Z0-9_-]+$ */
static bool plain_id(struct str id)
{
        for (size_t i = 0; i < id.n; i++) {
                char ch = id.p[i];
                bool word = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') ||
                            (ch >= 'A' && ch <= 'Z') || ch == '_' || ch == '-';
                if (!word)
                        return false;
        }
        return id.n > 0;
}

static void close_asked(struct anthropic *a)
{
        for (size_t i = 0; i < a->asked.count; i++)
                if (!a->asked.list[i].answered)
                        accept_fail(a->c, "unanswered_call", a->asked_by, a->asked.list[i].id,
                            "no tool_result in the next message answers this tool_use");
        accept_ids_clear(&a->asked);
}

/* Checks the data or the address of an image or document. */
static void check_source(struct anthropic *a, size_t i, json_ref b)
{
        struct check *c = a->c;
        json_ref source = json_get(c->j, b, "source");
        json_ref type = json_get(c->j, source, "type");
        struct str data = accept_text(c, json_get(c->j, source, "data"));
        struct str media = accept_text(c, json_get(c->j, source, "media_type"));
        bool image = json_is(c->j, json_get(c->j, b, "type"), "image");
        const char *real = rules_image_type(data);
        if (json_type(c->j, source) != JSON_OBJECT)
                return;
        if (json_is(c->j, type, "url") &&
            !rules_is_address(accept_text(c, json_get(c->j, source, "url")), c->rules->https_only))
                accept_fail(
                    c, "source_url", i, NO_CALL, "a source of type url must be an https address");
        if (json_is(c->j, type, "base64") &&
            (!rules_is_base64(data) || (image && real && !str_is(media, real))))
                accept_fail(c, "source_data", i, NO_CALL,
                    "the data is not base64, or of another type than media_type says");
}

/* Checks that there are not too many cache marks, and that no mark of an hour comes after a mark of
 * five minutes. */
static void check_mark(struct anthropic *a, size_t i, json_ref b)
{
        struct check *c = a->c;
        json_ref mark = json_get(c->j, b, "cache_control");
        if (json_type(c->j, mark) != JSON_OBJECT)
                return;
        bool longer = json_is(c->j, json_get(c->j, mark, "ttl"), "1h");
        if (++a->marks == c->rules->cache_marks + 1)
                accept_fail(c, "cache_control_count", i, NO_CALL,
                    "more than %zu blocks have cache_control", c->rules->cache_marks);
        if (longer && a->short_mark)
                accept_fail(c, "cache_control_order", i, NO_CALL,
                    "cache_control of 1h must not come after one of 5m");
        a->short_mark |= !longer;
}

static bool starts_with(struct str s, const char *prefix)
{
        return str_starts(s, prefix);
}

/* Checks tools that the provider runs itself: call and result must be in one message. */
static void check_server_block(struct anthropic *a, size_t i, json_ref b, bool assistant)
{
        struct check *c = a->c;
        struct str type = accept_text(c, json_get(c->j, b, "type"));
        static const char END[] = "_tool_result";
        size_t n = sizeof END - 1;
        bool use = str_is(type, "server_tool_use");
        bool result = type.n > n && memcmp(type.p + type.n - n, END, n) == 0;
        bool fresh;
        if (!use && !result)
                return;
        struct str id = accept_text(c, json_get(c->j, b, use ? "id" : "tool_use_id"));
        if (!assistant)
                accept_fail(c, "block_role", i, id, "this block can only be in assistant messages");
        if (use && (!starts_with(id, "srvtoolu_") || memchr(id.p, '-', id.n) || !plain_id(id)))
                accept_fail(
                    c, "call_id", i, id, "the id of a server_tool_use begins with srvtoolu_");
        if (use && json_type(c->j, json_get(c->j, b, "input")) != JSON_OBJECT)
                accept_fail(c, "input_object", i, id, "the input of a tool must be an object");
        if (use)
                accept_ids_put(c, &a->served, id, &fresh);
        else if (!accept_ids_find(&a->served, id))
                accept_fail(c, "result_without_call", i, id, "no server_tool_use comes before it");
}

static void check_tool_use(struct anthropic *a, size_t i, json_ref b)
{
        struct check *c = a->c;
        struct str id = accept_text(c, json_get(c->j, b, "id"));
        bool fresh = true;
        if (!plain_id(id))
                accept_fail(c, "call_id", i, id, "the id of a tool_use must match [a-zA-Z0-9_-]+");
        if (id.p && accept_ids_put(c, &a->all, id, &fresh) && !fresh)
                accept_fail(c, "duplicate_call", i, id, "tool_use ids must be unique");
        if (id.p)
                accept_ids_put(c, &a->asked, id, &fresh);
        accept_name(c, i, json_get(c->j, b, "name"), id);
        if (json_type(c->j, json_get(c->j, b, "input")) != JSON_OBJECT)
                accept_fail(c, "input_object", i, id, "the input of a tool_use must be an object");
        a->asked_by = i;
        a->called = true;
}

static void check_tool_result(struct anthropic *a, size_t i, json_ref b)
{
        struct check *c = a->c;
        struct str id = accept_text(c, json_get(c->j, b, "tool_use_id"));
        struct check_id *call = id.p ? accept_ids_find(&a->asked, id) : NULL;
        if (a->spoke)
                accept_fail(c, "results_first", i, id,
                    "tool_result blocks must come before any other content of the message");
        if (!call)
                accept_fail(c, "result_without_call", i, id,
                    "the message before it has no tool_use with this id");
        else if (call->answered)
                accept_fail(c, "duplicate_result", i, id, "each tool_use can have only one result");
        else
                call->answered = true;

        json_ref content = json_get(c->j, b, "content");
        enum json_type t = json_type(c->j, content);
        bool empty = t == JSON_NOTHING || (t == JSON_STRING && !accept_text(c, content).n) ||
                     (t == JSON_ARRAY && !json_count(c->j, content));
        if (empty && json_bool(c->j, json_get(c->j, b, "is_error"), false))
                accept_fail(c, "empty_error", i, id, "a result with is_error must have content");
        if (t != JSON_NOTHING && t != JSON_STRING && t != JSON_ARRAY)
                accept_fail(c, "result_content", i, id,
                    "the content of a tool_result is a string or an array of blocks");
        if (t != JSON_ARRAY)
                return;
        for (json_ref k = json_child(c->j, content); k != JSON_NONE;
             k = json_next(c->j, content, k)) {
                check_source(a, i, k);
                check_mark(a, i, k);
                if (json_is(c->j, json_get(c->j, k, "type"), "text") &&
                    !accept_says_something(c, json_get(c->j, k, "text")))
                        accept_fail(
                            c, "empty_text", i, id, "text content blocks must be non-empty");
        }
}

static void check_block(struct anthropic *a, size_t i, json_ref b, bool assistant)
{
        struct check *c = a->c;
        json_ref type = json_get(c->j, b, "type");
        bool result = json_is(c->j, type, "tool_result");
        bool thinking = json_is(c->j, type, "thinking");
        a->ends_thinking = thinking || json_is(c->j, type, "redacted_thinking");

        check_source(a, i, b);
        check_mark(a, i, b);
        check_server_block(a, i, b, assistant);
        if (json_type(c->j, type) != JSON_STRING) {
                accept_fail(c, "block_type", i, NO_CALL, "a content block has no type");
        } else if (json_is(c->j, type, "text")) {
                if (!accept_says_something(c, json_get(c->j, b, "text")))
                        accept_fail(c, "empty_text", i, NO_CALL,
                            "text content blocks must contain non-whitespace text");
        } else if (json_is(c->j, type, "tool_use")) {
                if (!assistant)
                        accept_fail(c, "block_role", i, accept_text(c, json_get(c->j, b, "id")),
                            "tool_use blocks can only be in assistant messages");
                check_tool_use(a, i, b);
        } else if (result) {
                if (assistant)
                        accept_fail(c, "block_role", i,
                            accept_text(c, json_get(c->j, b, "tool_use_id")),
                            "tool_result blocks can only be in user messages");
                check_tool_result(a, i, b);
        }
        if (a->ends_thinking && !assistant)
                accept_fail(
                    c, "block_role", i, NO_CALL, "thinking can only be in assistant messages");
        if (a->ends_thinking && a->called)
                accept_fail(c, "thinking_first", i, NO_CALL, "thinking comes after a tool_use");
        if (json_is(c->j, type, "redacted_thinking") &&
            accept_text(c, json_get(c->j, b, "data")).n == 0)
                accept_fail(c, "thinking_signature", i, NO_CALL, "redacted thinking has no data");
        if (thinking && accept_text(c, json_get(c->j, b, "signature")).n == 0)
                accept_fail(
                    c, "thinking_signature", i, NO_CALL, "a thinking block has no signature");
        if (!result)
                a->spoke = true;
}

static void check_content(struct anthropic *a, size_t i, json_ref content, bool assistant)
{
        const struct json *j = a->c->j;
        if (json_type(j, content) == JSON_STRING) {
                if (!accept_says_something(a->c, content))
                        accept_fail(a->c, "empty_content", i, NO_CALL,
                            "messages must have non-empty content");
                a->spoke = true;
                a->ends_thinking = false;
                return;
        }
        if (json_type(j, content) != JSON_ARRAY) {
                accept_fail(a->c, "content_required", i, NO_CALL,
                    "content must be a string or an array of blocks");
                return;
        }
        if (json_count(j, content) == 0)
                accept_fail(
                    a->c, "empty_content", i, NO_CALL, "messages must have non-empty content");
        for (json_ref b = json_child(j, content); b != JSON_NONE; b = json_next(j, content, b))
                check_block(a, i, b, assistant);
}

static void begin_turn(struct anthropic *a, size_t i, const char *role)
{
        bool assistant = strcmp(role, "assistant") == 0;
        if (i == 0 && assistant)
                accept_fail(a->c, "first_user", i, NO_CALL, "the first message must be the user's");
        if (strcmp(a->last_role, role) == 0)
                return;
        if (assistant)
                close_asked(a);
        else if (a->ends_thinking)
                accept_fail(a->c, "thinking_last", i - 1, NO_CALL,
                    "the final block of an assistant message cannot be thinking");
        a->ends_thinking = false;
        a->spoke = false;
        a->called = false;
        a->last_role = role;
}

/* The last assistant message must not end in white space; the API refuses such a prefill. */
static void check_last(struct anthropic *a, size_t i, json_ref m)
{
        const struct json *j = a->c->j;
        if (strcmp(a->last_role, "assistant") != 0)
                return;
        json_ref content = json_get(j, m, "content");
        json_ref last = content;
        if (json_count(j, content) > 0)
                last = json_get(j, json_at(j, content, json_count(j, content) - 1), "text");
        struct str s = accept_text(a->c, last);
        if (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]))
                accept_fail(a->c, "trailing_space", i, NO_CALL,
                    "the final assistant content cannot end with trailing whitespace");
        if (a->ends_thinking)
                accept_fail(a->c, "thinking_last", i, NO_CALL,
                    "the final block of an assistant message cannot be thinking");
}

static void check_system(struct anthropic *a)
{
        struct check *c = a->c;
        json_ref system =
            json_type(c->j, 0) == JSON_OBJECT ? json_get(c->j, 0, "system") : JSON_NONE;
        if (system == JSON_NONE)
                return;
        if (rules_check(c->rules, "system", c->j, system, NULL, NULL) ||
            rules_has_lone(json_raw(c->j, system)))
                accept_fail(c, "system", 0, NO_CALL, "system is a string or a list of text blocks");
        bool list = json_type(c->j, system) == JSON_ARRAY;
        for (json_ref b = list ? json_child(c->j, system) : JSON_NONE; b != JSON_NONE;
             b = json_next(c->j, system, b)) {
                check_mark(a, 0, b);
                if (!accept_says_something(c, json_get(c->j, b, "text")))
                        accept_fail(c, "empty_text", 0, NO_CALL,
                            "text content blocks must contain non-whitespace text");
        }
}

void accept_anthropic(struct check *c, json_ref list)
{
        const struct json *j = c->j;
        struct anthropic a = {.c = c, .last_role = ""};
        check_system(&a);
        json_ref last = JSON_NONE;
        size_t i = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m), i++) {
                json_ref role = json_get(j, m, "role");
                bool assistant = json_is(j, role, "assistant");
                last = m;
                if (!assistant && !json_is(j, role, "user")) {
                        accept_fail(c, "role", i, NO_CALL,
                            "role must be user or assistant; a system prompt is a parameter");
                        continue;
                }
                begin_turn(&a, i, assistant ? "assistant" : "user");
                accept_ids_clear(&a.served);
                check_content(&a, i, json_get(j, m, "content"), assistant);
        }
        close_asked(&a);
        if (last != JSON_NONE)
                check_last(&a, i - 1, last);
}
