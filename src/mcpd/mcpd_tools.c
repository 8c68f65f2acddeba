/*
 * mcpd_tools.c - lists the tools for a client, and calls them.
 *
 * The context_* tools come from the library, with the schemas of their arguments and answers. If
 * the scope is a project, each of them gets a parameter `conversation`.
 */
#include "mcpd/mcpd_call.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define TOOL_NAME_MAX 128
#define CONVERSATION                                                                               \
        "\"conversation\":{\"type\":\"string\",\"description\":\"The id of a conversation, as "    \
        "conversation_list shows it.\"}"
#define TEXT "{\"type\":\"string\"}"
#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define FLAG "{\"type\":\"boolean\"}"

/* The subject of one of our own tools. */
enum about {
        OF_CONVERSATION, /* in a project, the conversation must be named */
        OF_SCOPE,        /* the whole scope; in a project, a conversation may be named */
        OF_PROJECT,      /* the tool exists only if the scope is a project */
};

/* The tools that are not from the library. */
static const struct tool {
        const char *name;
        const char *words;
        enum about about;
        const char *properties;
        const char *needed; /* the required ones of these, as JSON strings */
        const char *answer;
        const char *required;
        int (*run)(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
            struct buf *out, struct steno_error *err);
} TOOLS[] = {
    {"conversation_read",
        "Reads messages of the conversation, oldest first, with long texts shortened. Without "
        "arguments it shows the newest ones. A shortened message is read whole with seq and "
        "offset.",
        OF_CONVERSATION,
        "\"after\":{\"type\":\"integer\",\"description\":\"Only messages after this seq; continue "
        "from next_after.\"},\"before\":{\"type\":\"integer\",\"description\":\"The newest "
        "messages before this seq.\"},\"limit\":{\"type\":\"integer\",\"description\":\"Messages, "
        "20 by default, 100 at most.\"},\"seq\":{\"type\":\"integer\",\"description\":\"Only the "
        "message with this seq, as JSON "
        "text.\"},\"offset\":{\"type\":\"integer\",\"description\":\"With seq: the first byte, 0 "
        "by default.\"}",
        "",
        "\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"seq\":" COUNT ",\"role\":" TEXT ",\"content\":" TEXT ",\"tool_call_id\":" TEXT
        ",\"name\":" TEXT ",\"tool_calls\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
        "\"properties\":{\"id\":" TEXT ",\"name\":" TEXT ",\"arguments\":" TEXT
        "}}},\"shortened\":" FLAG "},\"required\":[\"seq\",\"role\",\"content\"]}},"
        "\"has_more\":" FLAG ",\"next_after\":" COUNT ",\"last_seq\":" COUNT ",\"seq\":" COUNT
        ",\"content\":" TEXT ",\"offset\":" COUNT ",\"next_offset\":" COUNT ",\"done\":" FLAG
        ",\"total_bytes\":" COUNT ",\"notes\":" TEXT,
        "", mcpd_read},
    {"conversation_search",
        "Finds words in messages, calls, results and stored outputs. A query has words, "
        "\"phrases\", "
        "prefixes (wor*), -words that must not occur, /regular expressions/ and filters such as "
        "role:user, tool:NAME, is:error, in:output. A hit with a ref is read with context_read, "
        "one "
        "without with conversation_read and its seq.",
        OF_SCOPE,
        "\"query\":{\"type\":\"string\",\"description\":\"What to look "
        "for.\"},\"limit\":{\"type\":\"integer\",\"description\":\"Hits, 20 by default, 100 at "
        "most.\"},\"cursor\":{\"type\":\"string\",\"description\":\"next_cursor of the page "
        "before.\"}",
        "\"query\"",
        "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"conversation\":" TEXT ",\"seq\":" COUNT ",\"role\":" TEXT ",\"ref\":" TEXT
        ",\"snippet\":" TEXT "},\"required\":[\"conversation\",\"seq\",\"snippet\"]}},"
        "\"next_cursor\":" TEXT ",\"partial\":" FLAG ",\"missing\":" COUNT,
        "\"items\"", mcpd_search},
    {"conversation_list", "Lists the conversations of the project, newest activity first.",
        OF_PROJECT,
        "\"query\":{\"type\":\"string\",\"description\":\"Words that the title or the id must "
        "contain.\"},\"limit\":{\"type\":\"integer\",\"description\":\"How many, 20 by "
        "default.\"},\"cursor\":{\"type\":\"string\",\"description\":\"next_cursor of the page "
        "before.\"}",
        "",
        "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":" TEXT
        "},\"required\":[\"id\"]}},\"next_cursor\":" TEXT,
        "\"items\"", mcpd_list},
};
#define TOOL_COUNT (sizeof TOOLS / sizeof *TOOLS)

static const struct tool *find_tool(const struct mcpd_scope *scope, const char *name)
{
        for (size_t i = 0; i < TOOL_COUNT; i++)
                if (strcmp(TOOLS[i].name, name) == 0 &&
                    (TOOLS[i].about != OF_PROJECT || !scope->conversation))
                        return &TOOLS[i];
        return NULL;
}

/* ---- the list ---- */

static void put_annotations(struct jsonw *w)
{
        jsonw_field_raw(w, "annotations",
            STR("{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"
                "\"openWorldHint\":false}"));
}

/* Writes a tool of the library unchanged, except that in a project it gets one more parameter. */
static void put_context_tool(
    struct jsonw *w, const struct mcpd_scope *scope, const struct json *j, json_ref tool)
{
        struct json_edits edits;
        struct buf text, required;
        json_ref schema = json_get(j, tool, "inputSchema");
        json_ref list = json_get(j, schema, "required");
        json_edits_init(&edits);
        buf_init(&text, 64 * KIB);
        buf_init(&required, 4 * KIB);
        struct str rest = json_raw(j, list);
        buf_printf(&required, "[\"conversation\"%s%.*s", json_count(j, list) ? "," : "",
            (int)rest.n - 1, rest.p + 1);
        if (!scope->conversation) {
                json_edit_add_member(
                    &edits, j, json_get(j, schema, "properties"), STR(CONVERSATION));
                json_edit_replace(&edits, j, list, buf_str(&required));
        }
        if (json_edits_apply(&edits, j, tool, &text) == 0 && text.n) {
                text.n--; /* without its closing bracket */
                jsonw_raw(w, buf_str(&text));
                struct jsonw more = jsonw_behind(w->b);
                put_annotations(&more);
                jsonw_object_end(&more);
        }
        buf_release(&required);
        buf_release(&text);
        json_edits_release(&edits);
}

static void put_tool(struct jsonw *w, const struct mcpd_scope *scope, const struct tool *t)
{
        bool named = !scope->conversation && t->about != OF_PROJECT;
        bool must = named && t->about == OF_CONVERSATION;
        jsonw_object(w);
        jsonw_field_cstr(w, "name", t->name);
        jsonw_field_cstr(w, "description", t->words);
        jsonw_key(w, "inputSchema");
        buf_printf(jsonw_value(w),
            "{\"type\":\"object\",\"properties\":{%s%s},\"required\":[%s%s],"
            "\"additionalProperties\":false}",
            t->properties, named ? "," CONVERSATION : "", t->needed,
            must ? "\"conversation\"" : "");
        jsonw_key(w, "outputSchema");
        buf_printf(jsonw_value(w), "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s]}",
            t->answer, t->required);
        put_annotations(w);
        jsonw_object_end(w);
}

/* Is there a cursor? All tools are on one page, so this is an error. */
static bool has_cursor(struct mcpd_call *c)
{
        bool given = json_get(&c->m->j, c->m->params, "cursor") != JSON_NONE;
        if (given)
                mcpd_fail(c, MCPD_PARAMS, "the cursor is not from this server");
        return given;
}

void mcpd_tools_list(struct mcpd_call *c)
{
        struct steno_error err = {0};
        struct json j;
        char *json = NULL;
        if (has_cursor(c))
                return;
        if (c->scope->fixtures) {
                mcpd_fixtures_tools(c);
                return;
        }
        json_init(&j);
        int rc = steno_context_tools("mcp", &json, &err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, &err);
        if (rc) {
                mcpd_fail_with(c, rc, &err);
        } else {
                jsonw_key(&c->w, "tools");
                jsonw_array(&c->w);
                for (json_ref t = json_child(&j, 0); t != JSON_NONE; t = json_next(&j, 0, t))
                        put_context_tool(&c->w, c->scope, &j, t);
                for (size_t i = 0; i < TOOL_COUNT; i++)
                        if (TOOLS[i].about != OF_PROJECT || !c->scope->conversation)
                                put_tool(&c->w, c->scope, &TOOLS[i]);
                jsonw_array_end(&c->w);
        }
        json_release(&j);
        steno_free(json);
}

/* ---- results ---- */

static void put_text(struct jsonw *w, struct str text)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "text");
        jsonw_field_str(w, "text", text);
        jsonw_object_end(w);
}

/* Writes a text for the model instead of a result. */
static void put_mistake(struct mcpd_call *c, struct str words)
{
        jsonw_key(&c->w, "content");
        jsonw_array(&c->w);
        put_text(&c->w, words);
        jsonw_array_end(&c->w);
        jsonw_field_bool(&c->w, "isError", true);
}

/* Writes links to the artifacts that context_list returned. */
static void put_links(struct mcpd_call *c, const char *conversation, struct str json)
{
        struct json j;
        json_init(&j);
        if (json_parse(&j, json.p, json.n, NULL, NULL) == 0) {
                json_ref items = json_get(&j, 0, "items");
                for (json_ref r = json_child(&j, items); r != JSON_NONE;
                     r = json_next(&j, items, r))
                        mcpd_put_link(&c->w, c->scope, conversation, &j, r, "resource_link");
        }
        json_release(&j);
}

static void put_result(
    struct mcpd_call *c, const char *tool, const char *conversation, struct str json)
{
        jsonw_key(&c->w, "content");
        jsonw_array(&c->w);
        put_text(&c->w, json);
        bool listed =
            steno_is_context_tool(tool) && strcmp(tool + sizeof "context_" - 1, "list") == 0;
        if (listed && mcpd_has_links(c))
                put_links(c, conversation, json);
        jsonw_array_end(&c->w);
        jsonw_field_raw(&c->w, "structuredContent", json);
        jsonw_field_bool(&c->w, "isError", false);
}

/* ---- a call ---- */

/* A call of a tool. `args` has the tool's arguments without the conversation. */
struct work {
        const char *tool;
        const struct tool *own; /* NULL: a tool of the library */
        struct buf args;
        struct json j;
        struct buf conversation;
        bool named;
};

static void fail_or_explain(struct mcpd_call *c, const char *tool, int rc, struct steno_error *err)
{
        struct buf words;
        if (rc != STENO_ENOTFOUND && rc != STENO_EPROTO && rc != STENO_EINVAL &&
            rc != STENO_ELIMIT && rc != STENO_ECORRUPT) {
                mcpd_fail_with(c, rc, err);
                return;
        }
        buf_init(&words, 4 * KIB);
        buf_printf(&words, "%s: %s", tool, err->msg);
        put_mistake(c, buf_str(&words));
        buf_release(&words);
}

static void call_context(struct mcpd_call *c, struct work *k, struct steno_conv *conv)
{
        struct steno_error err = {0};
        struct steno_context_options opt = {
            .size = sizeof opt, .progress = mcpd_progress, .progress_ctx = c};
        char *text = NULL;
        bool is_error = false;
        int rc = steno_context_call_with(
            conv, k->tool, k->args.p, k->args.n, &opt, &text, &is_error, &err);
        if (rc)
                mcpd_fail_with(c, rc, &err);
        else if (is_error)
                put_mistake(c, str_of(text));
        else
                put_result(c, k->tool, steno_conv_id(conv), str_of(text));
        steno_free(text);
}

/* Names the parameters that a tool of ours does not have. */
static bool name_unknown(struct mcpd_call *c, const struct work *k)
{
        struct buf quoted, words;
        bool unknown = false;
        buf_init(&quoted, 4 * KIB);
        buf_init(&words, 4 * KIB);
        for (json_ref key = json_child(&k->j, 0); key != JSON_NONE && !unknown;
             key = json_next_key(&k->j, 0, key)) {
                struct str name = json_raw(&k->j, key);
                buf_clear(&quoted);
                buf_printf(&quoted, "%.*s:{", name.n < 60 ? (int)name.n : 60, name.p);
                unknown = !strstr(k->own->properties, buf_cstr(&quoted));
                if (unknown) {
                        buf_printf(&words, "%s has no parameter %.*s", k->tool,
                            name.n < 60 ? (int)name.n : 60, name.p);
                        put_mistake(c, buf_str(&words));
                }
        }
        buf_release(&quoted);
        buf_release(&words);
        return unknown;
}

static void call_own(struct mcpd_call *c, struct work *k, struct steno_conv *conv)
{
        struct steno_error err = {0};
        struct buf answer;
        if (name_unknown(c, k))
                return;
        buf_init(&answer, 16 * MIB);
        int rc = k->own->run(c->scope, conv, &k->j, &answer, &err);
        if (rc == 0)
                rc = buf_check(&answer, &err);
        if (rc)
                fail_or_explain(c, k->tool, rc, &err);
        else
                put_result(c, k->tool, NULL, buf_str(&answer));
        buf_release(&answer);
}

/* Copies the arguments; in a project, without the conversation. */
static int take_arguments(struct mcpd_call *c, struct work *k, struct steno_error *err)
{
        static const char *const NAMED[] = {"conversation", NULL};
        const struct json *j = &c->m->j;
        json_ref args = json_get(j, c->m->params, "arguments");
        struct json_edits edits;
        if (args == JSON_NONE || json_type(j, args) == JSON_NULL) {
                buf_puts(&k->args, "{}");
                return json_parse(&k->j, k->args.p, k->args.n, NULL, err);
        }
        if (json_type(j, args) != JSON_OBJECT)
                return error_set(err, STENO_EPROTO, "the arguments must be an object");
        json_edits_init(&edits);
        k->named = json_string(j, json_get(j, args, "conversation"), &k->conversation, NULL);
        if (!c->scope->conversation)
                json_edit_remove_members(&edits, j, args, NAMED);
        int rc = json_edits_apply(&edits, j, args, &k->args);
        json_edits_release(&edits);
        if (rc == 0)
                rc = buf_check(&k->args, err);
        if (rc == 0 && k->named && memchr(k->conversation.p, '\0', k->conversation.n))
                rc = error_set(err, STENO_EPROTO, "conversation must not contain a NUL");
        return rc ? rc : json_parse(&k->j, k->args.p, k->args.n, NULL, err);
}

static void run_tool(struct mcpd_call *c, struct work *k)
{
        struct steno_error err = {0};
        struct steno_conv *conv = NULL;
        int rc = take_arguments(c, k, &err);
        bool whole =
            k->own && (k->own->about == OF_PROJECT ||
                          (k->own->about == OF_SCOPE && !c->scope->conversation && !k->named));
        if (rc == 0 && !whole)
                rc = mcpd_open(c, k->named ? buf_cstr(&k->conversation) : NULL, &conv, &err);
        if (rc)
                fail_or_explain(c, k->tool, rc, &err);
        else if (k->own)
                call_own(c, k, conv);
        else
                call_context(c, k, conv);
        steno_conv_close(conv);
}

void mcpd_tools_call(struct mcpd_call *c)
{
        struct buf name;
        struct work k = {0};
        if (c->scope->fixtures) {
                mcpd_fixtures_call(c);
                return;
        }
        buf_init(&name, TOOL_NAME_MAX + 1);
        buf_init(&k.args, MCPD_MESSAGE_MAX);
        buf_init(&k.conversation, ID_MAX + 1);
        json_init(&k.j);
        k.tool = mcpd_param(c, "name", &name);
        if (k.tool)
                k.own = find_tool(c->scope, k.tool);
        if (!k.tool || (!k.own && !steno_is_context_tool(k.tool)))
                mcpd_fail(c, MCPD_PARAMS, "there is no tool \"%s\"", k.tool ? k.tool : "");
        else
                run_tool(c, &k);
        json_release(&k.j);
        buf_release(&k.conversation);
        buf_release(&k.args);
        buf_release(&name);
}
