/*
 * context_tools.c - the context operations as tools of a model: one table, from which the
 * definitions for each provider are made, and an executor that answers text.
 *
 * A model's mistakes come back as words it can act on. Answers are small by their own caps and are
 * never materialized again (carry.c asks steno_is_context_tool).
 */
#include "api/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

struct parameter {
        const char *name;
        const char *type;
        const char *words;
        bool required;
};

#define PARAMETER_COUNT 8

struct context_tool {
        const char *name; /* "context_" before it, or "context." in a call */
        const char *words;
        struct parameter parameters[PARAMETER_COUNT];
        const char *answer;   /* the properties of its answer, as a JSON schema, without brackets */
        const char *required; /* and those that are always there */
};

/* Pieces of the schemas of answers. */
#define TEXT "{\"type\":\"string\"}"
#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"
#define FLAG "{\"type\":\"boolean\"}"
#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define COUNT_OR_NULL "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0},{\"type\":\"null\"}]}"
/* What the state of the file adds, and what was clamped. */
#define STATE ",\"unfinished\":" FLAG ",\"damaged\":" FLAG ",\"notes\":" TEXT

#define REF                                                                                        \
        {                                                                                          \
                "ref", "string", "The ref of a stored output, such as ctx_01J...", true            \
        }

static const struct context_tool TOOLS[] = {
    {"list", "Lists the stored outputs of this conversation, newest first. Use it to find a ref.",
        {{"kind", "string", "Only this kind: tool or terminal.", false},
            {"limit", "integer", "How many, 50 by default.", false},
            {"after", "string", "A ref: continue with the older ones after it.", false}},
        "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"id\":" TEXT ",\"kind\":" TEXT ",\"mimeType\":" TEXT ",\"byteSize\":" COUNT
        ",\"createdAt\":" COUNT ",\"hint\":" TEXT "},\"required\":[\"id\",\"mimeType\","
        "\"byteSize\"]}}",
        "\"items\""},
    {"read",
        "Reads a piece of a stored output: by bytes (offset, limit) or by lines (line, count). "
        "Continue from next_offset until done.",
        {REF, {"offset", "integer", "First byte, 0 by default.", false},
            {"limit", "integer", "Bytes, 8192 by default, 12288 at most.", false},
            {"line", "integer", "First line, counted from 1, instead of offset.", false},
            {"count", "integer", "Lines, with line.", false},
            {"encoding", "string", "base64 for the bytes as they are; text by default.", false}},
        "\"content\":" TEXT ",\"encoding\":" TEXT ",\"offset\":" COUNT ",\"next_offset\":" COUNT
        ",\"done\":" FLAG ",\"total_bytes\":" COUNT STATE,
        "\"content\",\"offset\",\"next_offset\",\"done\",\"total_bytes\""},
    {"tail", "Shows the last lines of a stored output. Cheap at any size.",
        {REF, {"lines", "integer", "How many, 200 by default, 2000 at most.", false},
            {"encoding", "string", "base64 for the bytes as they are; text by default.", false}},
        "\"content\":" TEXT ",\"encoding\":" TEXT ",\"first_line\":" COUNT_OR_NULL
        ",\"total_lines\":" COUNT_OR_NULL ",\"offset\":" COUNT ",\"total_bytes\":" COUNT STATE,
        "\"content\",\"first_line\",\"total_lines\",\"total_bytes\""},
    {"grep",
        "Searches a stored output with a regular expression (PCRE) and shows the matching lines "
        "with their numbers.",
        {REF, {"pattern", "string", "The regular expression.", true},
            {"max_results", "integer", "Matches to show, 50 by default.", false},
            {"context_lines", "integer", "Lines before and after each match, 0 by default.", false},
            {"case_sensitive", "boolean", "false by default.", false},
            {"from_line", "integer",
                "Only matches from this line on. Continue from next_line while truncated.", false},
            {"direction", "string",
                "backward: the last matches up to from_line. forward by default.", false}},
        "\"matches\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"line\":" COUNT ",\"byte_offset\":" COUNT ",\"content\":" TEXT ",\"encoding\":" TEXT
        ",\"window\":" FLAG ",\"before\":" TEXTS ",\"after\":" TEXTS
        "},\"required\":[\"line\",\"byte_offset\",\"content\"]}},\"total_matches\":" COUNT
        ",\"matches_before\":" COUNT ",\"truncated\":" FLAG ",\"next_line\":" COUNT STATE,
        "\"matches\",\"total_matches\",\"truncated\""},
};
#define TOOL_COUNT (sizeof TOOLS / sizeof *TOOLS)

static const struct context_tool *find_tool(const char *name)
{
        if (strncmp(name, "context_", 8) != 0 && strncmp(name, "context.", 8) != 0)
                return NULL;
        for (size_t i = 0; i < TOOL_COUNT; i++)
                if (strcmp(name + 8, TOOLS[i].name) == 0)
                        return &TOOLS[i];
        return NULL;
}

bool steno_is_context_tool(const char *name)
{
        return find_tool(name) != NULL;
}

/* ---- definitions ---- */

static void put_schema(struct jsonw *w, const struct context_tool *t)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "object");
        jsonw_key(w, "properties");
        jsonw_object(w);
        for (size_t i = 0; i < PARAMETER_COUNT && t->parameters[i].name; i++) {
                jsonw_key(w, t->parameters[i].name);
                jsonw_object(w);
                jsonw_field_cstr(w, "type", t->parameters[i].type);
                jsonw_field_cstr(w, "description", t->parameters[i].words);
                jsonw_object_end(w);
        }
        jsonw_object_end(w);
        jsonw_key(w, "required");
        jsonw_array(w);
        for (size_t i = 0; i < PARAMETER_COUNT && t->parameters[i].name; i++)
                if (t->parameters[i].required)
                        jsonw_cstr(w, t->parameters[i].name);
        jsonw_array_end(w);
        jsonw_field_bool(w, "additionalProperties", false);
        jsonw_object_end(w);
}

static void put_answer_schema(struct jsonw *w, const struct context_tool *t)
{
        jsonw_key(w, "outputSchema");
        struct buf *b = jsonw_value(w);
        buf_printf(b, "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s]}", t->answer,
            t->required);
}

static void put_name(struct jsonw *w, const struct context_tool *t)
{
        struct buf name;
        buf_init(&name, 64);
        buf_printf(&name, "context_%s", t->name);
        jsonw_field_str(w, "name", buf_str(&name));
        jsonw_field_cstr(w, "description", t->words);
        buf_release(&name);
}

int steno_context_tools(const char *flavour, char **json, struct steno_error *err)
{
        static const struct {
                const char *name;
                const char *schema;
        } FLAVOURS[] = {
            {"openai", "parameters"}, {"anthropic", "input_schema"}, {"mcp", "inputSchema"}};
        const char *schema = NULL;
        struct buf out;
        for (size_t i = 0; i < 3; i++)
                if (strcmp(flavour, FLAVOURS[i].name) == 0)
                        schema = FLAVOURS[i].schema;
        if (!schema)
                return error_set(err, STENO_EINVAL, "there are no tools for \"%.40s\"", flavour);
        bool wrapped = strcmp(flavour, "openai") == 0;
        buf_init(&out, 64 * KIB);
        struct jsonw w = jsonw_to(&out);
        jsonw_array(&w);
        for (size_t i = 0; i < TOOL_COUNT; i++) {
                jsonw_object(&w);
                if (wrapped) {
                        jsonw_field_cstr(&w, "type", "function");
                        jsonw_key(&w, "function");
                        jsonw_object(&w);
                }
                put_name(&w, &TOOLS[i]);
                jsonw_key(&w, schema);
                put_schema(&w, &TOOLS[i]);
                if (strcmp(flavour, "mcp") == 0)
                        put_answer_schema(&w, &TOOLS[i]);
                if (wrapped)
                        jsonw_object_end(&w);
                jsonw_object_end(&w);
        }
        jsonw_array_end(&w);
        char *text = buf_take(&out, NULL);
        buf_release(&out);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}

/* ---- a model's call ---- */

/* An error text for arguments that the tool does not have: a misspelt argument must not be ignored
 * in silence. */
static bool name_unknown(const struct context_tool *t, const struct json *args, struct buf *text)
{
        for (json_ref k = json_child(args, 0); k != JSON_NONE; k = json_next_key(args, 0, k)) {
                bool known = false;
                for (size_t i = 0; i < PARAMETER_COUNT && t->parameters[i].name; i++)
                        known = known || json_is(args, k, t->parameters[i].name);
                if (known)
                        continue;
                buf_printf(text, "context_%s has no parameter %.*s; it has:", t->name,
                    (int)(json_raw(args, k).n < 60 ? json_raw(args, k).n : 60),
                    json_raw(args, k).p);
                for (size_t i = 0; i < PARAMETER_COUNT && t->parameters[i].name; i++)
                        buf_printf(text, "%s %s", i ? "," : "", t->parameters[i].name);
                return true;
        }
        return false;
}

static int hand_over(struct buf *text, char **out, struct steno_error *err)
{
        char *z = buf_take(text, NULL);
        buf_release(text);
        if (!z)
                return error_nomem(err);
        *out = z;
        return 0;
}

/* An error that the model can act on, as a text; false for any other error. */
static bool in_words(
    const struct context_tool *t, int rc, const struct steno_error *why, struct buf *text)
{
        switch (rc) {
        case STENO_ENOTFOUND:
                buf_printf(text, "%s. context_list shows the refs there are.", why->msg);
                return true;
        case STENO_EPROTO:
        case STENO_EINVAL:
        case STENO_ELIMIT:
        case STENO_ECORRUPT:
                buf_printf(text, "context_%s: %s", t->name, why->msg);
                return true;
        default:
                return false;
        }
}

int context_call(const struct context_shelf *shelf, const char *name, struct str args,
    const struct context_watch *watch, char **text, bool *is_error, struct steno_error *err)
{
        const struct context_tool *t = find_tool(name);
        struct steno_error why = {0};
        struct json j;
        struct buf words;
        int rc = 0;
        if (!t)
                return error_set(err, STENO_EINVAL, "\"%.60s\" is not a context tool", name);
        buf_init(&words, 64 * KIB);
        json_init(&j);
        *is_error = true;
        int unread = args.n ? json_parse(&j, args.p, args.n, NULL, &why) : 0;
        if (unread) {
                buf_printf(&words, "context_%s: the arguments %s: %s", t->name,
                    unread == STENO_ELIMIT ? "cannot be read" : "are not JSON", why.msg);
        } else if (args.n && json_type(&j, 0) != JSON_OBJECT) {
                buf_printf(&words, "context_%s: the arguments must be an object", t->name);
        } else if (!args.n || !name_unknown(t, &j, &words)) {
                rc = context_run(shelf, t->name, args, watch, text, &why);
                *is_error = rc != 0;
        }
        json_release(&j);
        if (!*is_error) {
                buf_release(&words);
                return 0;
        }
        if (rc && !in_words(t, rc, &why, &words)) {
                buf_release(&words);
                if (err)
                        *err = why;
                return rc;
        }
        return hand_over(&words, text, err);
}

int steno_context_call(struct steno_conv *conv, const char *name, const char *args, size_t n,
    char **text, bool *is_error, struct steno_error *err)
{
        return steno_context_call_with(conv, name, args, n, NULL, text, is_error, err);
}

int steno_context_call_with(struct steno_conv *conv, const char *name, const char *args, size_t n,
    const struct steno_context_options *opt, char **text, bool *is_error, struct steno_error *err)
{
        struct context_watch watch = {0};
        struct context_conv shelf;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        if (opt)
                watch = (struct context_watch){opt->progress, opt->progress_ctx};
        context_conv_init(&shelf, conv);
        rc = context_call(&shelf.shelf, name, str_span(args, n), &watch, text, is_error, err);
        if (rc == 0 && !*is_error)
                context_count(conv, name + strlen("context_"));
        return rc;
}
