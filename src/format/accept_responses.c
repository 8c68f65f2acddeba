/*
 * accept_responses.c - the rules of Responses input items, for an endpoint that keeps no state.
 *
 * The rule that most often ends a session (F1): "No tool output found for function call". A
 * reasoning item must be followed by the message or the call that the model made next.
 */
#include "format/accept.h"

#include <string.h>

#include "format/kinds.h"

static const struct str NO_CALL = {0};

struct responses {
        struct check *c;
        struct check_ids open; /* "kind id" of all calls; answered calls stay in it */
        struct check_ids ids;  /* ids of all items */
        size_t *asked_by;      /* for each place in `open`: the item that made the call */
        size_t asked_cap;
        size_t reasoning; /* number of the reasoning item that no output follows yet, from 1; 0:
                             none */
};

static bool is_message(struct check *c, json_ref item)
{
        json_ref type = json_get(c->j, item, "type");
        return json_is(c->j, type, "message") ||
               (type == JSON_NONE && json_get(c->j, item, "role") != JSON_NONE);
}

static void check_id(struct responses *r, size_t i, json_ref item)
{
        static const struct {
                const char *type;
                const char *prefix;
        } prefixes[] = {{"message", "msg"}, {"function_call", "fc"}, {"function_call_output", "fc"},
            {"reasoning", "rs"}, {"custom_tool_call", "ctc"}};
        struct check *c = r->c;
        struct str id = accept_text(c, json_get(c->j, item, "id"));
        json_ref type = json_get(c->j, item, "type");
        bool fresh = true;
        if (!id.p || json_is(c->j, type, "local_shell_call_output"))
                return;
        bool plain = id.n > 0 && id.n <= 64;
        for (size_t k = 0; k < id.n; k++)
                plain &= rules_is_name(&rules_responses, str_span(id.p + k, 1));
        if (!plain)
                accept_fail(
                    c, "item_id", i, NO_CALL, "the id of an item is up to 64 plain characters");
        for (size_t k = 0; plain && k < sizeof prefixes / sizeof *prefixes; k++) {
                bool same = strcmp(prefixes[k].type, "message") == 0
                                ? is_message(c, item)
                                : json_is(c->j, type, prefixes[k].type);
                if (same && !str_starts(id, prefixes[k].prefix))
                        accept_fail(c, "id_prefix", i, NO_CALL,
                            "the id of an item of this type begins with %s", prefixes[k].prefix);
        }
        if (accept_ids_put(c, &r->ids, id, &fresh) && !fresh)
                accept_fail(c, "duplicate_id", i, NO_CALL, "two items have this id");
}

static bool is_file(struct check *c, json_ref part)
{
        const struct json *j = c->j;
        struct str url = accept_text(c, json_get(j, part, "file_url"));
        if (accept_text(c, json_get(j, part, "file_id")).n ||
            (url.n && rules_is_address(url, false)))
                return true;
        return accept_is_file(accept_text(c, json_get(j, part, "file_data"))) &&
               accept_text(c, json_get(j, part, "filename")).n;
}

static void check_parts(struct responses *r, size_t i, json_ref list)
{
        struct check *c = r->c;
        const struct json *j = c->j;
        if (!json_count(j, list))
                accept_fail(c, "empty_content", i, NO_CALL, "the content has no parts");
        for (json_ref p = json_child(j, list); p != JSON_NONE; p = json_next(j, list, p)) {
                json_ref type = json_get(j, p, "type");
                bool text = json_is(j, type, "input_text") || json_is(j, type, "output_text");
                if (text && !accept_text(c, json_get(j, p, "text")).n)
                        accept_fail(c, "empty_text", i, NO_CALL, "a text part is empty");
                if (json_is(j, type, "input_image") &&
                    !accept_text(c, json_get(j, p, "file_id")).n &&
                    !accept_is_image(c, accept_text(c, json_get(j, p, "image_url"))))
                        accept_fail(c, "image_url", i, NO_CALL,
                            "an image must be a file id, a web address or a data URL of an image "
                            "type");
                if (json_is(j, type, "input_file") && !is_file(c, p))
                        accept_fail(c, "file_data", i, NO_CALL,
                            "a file must be a file id, an address, or a data URL with a filename");
        }
}

static void check_message(struct responses *r, size_t i, json_ref item)
{
        struct check *c = r->c;
        const struct json *j = c->j;
        json_ref content = json_get(j, item, "content");
        bool spoken = json_is(j, json_get(j, item, "role"), "assistant");
        if (json_type(j, content) == JSON_STRING && spoken && !accept_says_something(c, content))
                accept_fail(c, "empty_assistant", i, NO_CALL, "an assistant message is empty");
        if (json_type(j, content) != JSON_ARRAY)
                return;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                bool said = json_is(j, type, "output_text") || json_is(j, type, "refusal");
                if (json_type(j, type) == JSON_STRING && said != spoken)
                        accept_fail(c, "content_kind", i, NO_CALL,
                            "a part has a type that this role cannot have");
        }
        check_parts(r, i, content);
}

static struct str pair_key(struct check *c, const char *kind, struct str id)
{
        size_t n = strlen(kind);
        char *to = arena_alloc(c->arena, n + id.n + 1);
        if (!to)
                return (struct str){0};
        memcpy(to, kind, n);
        to[n] = ' ';
        if (id.n)
                memcpy(to + n + 1, id.p, id.n);
        return str_span(to, n + id.n + 1);
}

static void note_call(struct responses *r, size_t i, struct str key, struct str id)
{
        struct check *c = r->c;
        bool fresh = true;
        struct check_id *e = accept_ids_put(c, &r->open, key, &fresh);
        if (!e)
                return;
        if (!fresh && !e->answered)
                accept_fail(c, "duplicate_call", i, id, "an open call has this id already");
        e->answered = false;
        size_t at = (size_t)(e - r->open.list);
        if (at >= r->asked_cap) {
                size_t cap = r->asked_cap ? r->asked_cap * 2 : 64;
                size_t *to = arena_zalloc(c->arena, cap * sizeof *to);
                if (!to)
                        return;
                if (at)
                        memcpy(to, r->asked_by, at * sizeof *to);
                r->asked_by = to;
                r->asked_cap = cap;
        }
        r->asked_by[at] = i;
}

static void check_pair(struct responses *r, size_t i, json_ref item)
{
        struct check *c = r->c;
        bool answer;
        const struct kinds_row *k = kinds_find(c->j, item, &answer);
        if (!k || !k->answer)
                return;
        struct str id = accept_text(c, kinds_id(c->j, item, k));
        struct str key = pair_key(c, k->call, id);
        if (!k->name && !answer)
                accept_name(c, i, json_get(c->j, item, "name"), id);
        accept_call_id(c, i, json_get(c->j, item, "call_id"));
        if (!answer) {
                note_call(r, i, key, id);
                return;
        }
        struct check_id *e = accept_ids_find(&r->open, key);
        if (!e)
                accept_fail(c, "result_without_call", i, id, "no call has this id");
        else if (e->answered)
                accept_fail(c, "duplicate_result", i, id, "the call was answered before");
        else
                e->answered = true;
        json_ref output = json_get(c->j, item, "output");
        if (json_type(c->j, output) == JSON_ARRAY && k->kind != CALL_SHELL)
                check_parts(r, i, output);
        struct str shot = accept_text(c, json_get(c->j, output, "image_url"));
        if (k->kind == CALL_COMPUTER && shot.n && !accept_is_image(c, shot))
                accept_fail(c, "image_url", i, id, "the screenshot is not an image");
}

/* Approvals are paired like calls, but a request may stay open. */
static void check_approval(struct responses *r, size_t i, json_ref item)
{
        struct check *c = r->c;
        json_ref type = json_get(c->j, item, "type");
        bool fresh;
        if (json_is(c->j, type, "mcp_approval_request")) {
                struct str id = accept_text(c, json_get(c->j, item, "id"));
                struct check_id *e =
                    accept_ids_put(c, &r->ids, pair_key(c, "approval", id), &fresh);
                if (e)
                        e->answered = false;
        } else if (json_is(c->j, type, "mcp_approval_response")) {
                struct str id = accept_text(c, json_get(c->j, item, "approval_request_id"));
                struct check_id *e = accept_ids_find(&r->ids, pair_key(c, "approval", id));
                if (!e)
                        accept_fail(
                            c, "result_without_call", i, id, "no approval request has this id");
                else if (e->answered)
                        accept_fail(
                            c, "duplicate_result", i, id, "the request was answered before");
                else
                        e->answered = true;
        }
}

/* Is the item output of a model, so that it may follow reasoning? */
static bool is_spoken(struct check *c, json_ref item)
{
        static const char *const also[] = {
            "mcp_list_tools", "mcp_approval_request", "tool_search_call", "program", NULL};
        json_ref type = json_get(c->j, item, "type");
        bool answer;
        if (is_message(c, item))
                return json_is(c->j, json_get(c->j, item, "role"), "assistant");
        if (kinds_find(c->j, item, &answer))
                return !answer;
        for (size_t i = 0; also[i]; i++)
                if (json_is(c->j, type, also[i]))
                        return true;
        return false;
}

static void check_reasoning(struct responses *r, size_t i, json_ref item)
{
        if (item != JSON_NONE && json_is(r->c->j, json_get(r->c->j, item, "type"), "reasoning")) {
                r->reasoning = r->reasoning ? r->reasoning : i + 1;
                return;
        }
        if (r->reasoning && (item == JSON_NONE || !is_spoken(r->c, item)))
                accept_fail(r->c, "reasoning_follower", r->reasoning - 1, NO_CALL,
                    "no output of the model follows this reasoning");
        r->reasoning = 0;
}

void accept_responses(struct check *c, json_ref list)
{
        const struct json *j = c->j;
        struct responses r = {.c = c};
        size_t i = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m), i++) {
                json_ref type = json_get(j, m, "type");
                check_reasoning(&r, i, m);
                check_id(&r, i, m);
                if (is_message(c, m))
                        check_message(&r, i, m);
                else if (type == JSON_NONE || json_is(j, type, "item_reference"))
                        accept_fail(c, "item_reference", i, NO_CALL,
                            "the endpoint keeps no items that could be referred to");
                check_pair(&r, i, m);
                check_approval(&r, i, m);
        }
        check_reasoning(&r, i, JSON_NONE);
        for (size_t k = 0; k < r.open.count; k++)
                if (!r.open.list[k].answered)
                        accept_fail(c, "unanswered_call", k < r.asked_cap ? r.asked_by[k] : 0,
                            r.open.list[k].id, "no output answers this call");
}
